import type { Activities, UnfinishedPayment } from "../activities/types.ts";
import { type Due, dueNow, isWithItsApproval, putOff, type SweepSettings } from "../src/domain/ledger/due.ts";
import type { LedgerCommand, LedgerReply } from "../src/domain/ledger/commands.ts";
import {
  type Account,
  type AccountSummary,
  type Ledger,
  levelOf,
  type OpenPayment,
  profileIn,
  summaryOf,
} from "../src/domain/ledger/state.ts";
import { type Rail, RAILS } from "../src/domain/agent/payment.ts";
import { confirmationOf, type ExecutionResult } from "../src/messages/ledger.ts";
import { SweepPace } from "./sweep-pace.ts";

/** Payments, records and limits that one activity sees to at once. */
const PAYMENTS_AT_ONCE_MAX = 20;
const RECORDS_AT_ONCE_MAX = 100;
const LIMITS_AT_ONCE_MAX = 50;

/** Activities of a ledger's sweeps at the same time, by what they see to: a rail that hangs takes no room from the records. */
const SWEEPS_MAX: Readonly<Record<Place, number>> = { card: 6, wallet: 6, record: 2, cap: 1, limits: 2 };

/** What sweeps need of whoever runs the ledger. */
export interface SweepPorts {
  readonly activities: Pick<Activities, "mirrorLimits" | "writeAccounts" | "writeCaps"> & {
    /** Payments of one rail: one that hangs holds up none of the other. */
    executePayments(
      rail: Rail,
      input: { payments: readonly UnfinishedPayment[] },
    ): Promise<readonly ExecutionResult[]>;
  };
  /** Puts a command to the ledger. */
  readonly judge: (command: LedgerCommand) => LedgerReply;
  readonly now: () => number;
  readonly onFailed: (names: readonly string[], error: unknown) => void;
  /** The run is about to end, and what is begun would end with it. */
  readonly isEnding: () => boolean;
  /** Leaves a command without an effect: a sweep has ended, well or not, or a timer had nothing to say. */
  readonly leaveCommand: () => void;
}

type Kind = (Due | DueLimits)["kind"];

/** Where something has its activities: of payments each rail is a place of its own. */
type Place = Exclude<Kind, "payment"> | Rail;

/**
 * What a ledger sees to itself, since nobody has in time: whoever decided may have died before acting. Sweeps run beside the updates, so
 * that one rail that is down holds up nothing else.
 */
export class LedgerSweeps {
  readonly #ledger: Ledger;
  readonly #settings: SweepSettings;
  readonly #ports: SweepPorts;
  /** What is being swept in this run, and in how many activities. */
  readonly #sweeping = new Set<string>();
  readonly #running: Record<Place, number> = { card: 0, wallet: 0, record: 0, cap: 0, limits: 0 };
  readonly #pace: SweepPace;
  /** Accounts whose policy is still to be mirrored into their wallets' limits. */
  readonly #unmirrored = new Set<string>();
  /** No later than when something is due; found out exactly by looking. */
  nextAt = 0;

  constructor(ledger: Ledger, settings: SweepSettings, ports: SweepPorts) {
    this.#ports = ports;
    this.#ledger = ledger;
    this.#settings = settings;
    this.#pace = new SweepPace(settings.sweepAfterMs);
    for (const account of ledger.accounts.values()) this.#noteLimits(account);
  }

  /** An account has changed, and has something to see to by then. */
  expect(dueAt: number, account: Account): void {
    this.#noteLimits(account);
    this.nextAt = Math.min(this.nextAt, this.#unmirrored.has(account.agentId) ? 0 : dueAt);
  }

  /** Something may be due sooner than was known. */
  lookAgain(): void {
    this.nextAt = 0;
  }

  #noteLimits({ agentId, mirroredPolicyVersion, policyVersion, standing }: Account): void {
    if (mirroredPolicyVersion < policyVersion && standing !== "closed") this.#unmirrored.add(agentId);
    else this.#unmirrored.delete(agentId);
  }

  /** Begins to see to what is due by now. */
  sweep(now: number): void {
    const { due, nextAt } = dueNow(this.#ledger, this.#settings, now);
    this.nextAt = nextAt;
    const limits = [...this.#unmirrored].map((agentId) => ({ kind: "limits", agentId }) as const);
    const waiting = [...due, ...limits].filter((each) => this.#isFree(each, now));
    const payments = waiting.filter(isPayment);
    for (const rail of RAILS) {
      const own = payments.filter((each) => each.rail === rail);
      this.#inBatches(own, PAYMENTS_AT_ONCE_MAX, (some) => this.#payments(rail, some));
    }
    this.#inBatches(waiting.filter(isRecord), RECORDS_AT_ONCE_MAX, (some) => this.#records(some));
    this.#inBatches(waiting.filter(isCap), RECORDS_AT_ONCE_MAX, (some) => this.#caps(some));
    this.#inBatches(waiting.filter(isLimits), LIMITS_AT_ONCE_MAX, (some) => this.#limits(some));
  }

  /** Whether nobody sees to it, and it is not let alone for a while; if it is, it comes again then. */
  #isFree(due: Due | DueLimits, now: number): boolean {
    const name = nameOf(due);
    if (this.#sweeping.has(name)) return false;
    const until = this.#pace.letAloneUntil(name);
    if (until <= now || (isPayment(due) && due.isWoken)) return true;
    this.nextAt = Math.min(this.nextAt, until);
    return false;
  }

  #inBatches<T extends Due | DueLimits>(
    due: readonly T[],
    size: number,
    work: (some: readonly T[]) => Promise<void>,
  ): void {
    for (let from = 0; from < due.length; from += size) {
      const some = due.slice(from, from + size);
      const [first] = some;
      if (first === undefined || this.#running[placeOf(first)] >= SWEEPS_MAX[placeOf(first)]) return;
      this.#run(placeOf(first), some, () => work(some));
    }
  }

  #run(place: Place, some: readonly (Due | DueLimits)[], work: () => Promise<void>): void {
    const names = some.map(nameOf);
    for (const name of names) this.#sweeping.add(name);
    this.#running[place] += 1;
    void work()
      .catch((error: unknown) => {
        this.#ports.onFailed(names, error);
        this.#note(some, NONE);
      })
      .finally(() => {
        for (const name of names) this.#sweeping.delete(name);
        this.#running[place] -= 1;
        // There is room for what waits. The ledger's timer stays as it is, unless something is due sooner.
        if (!this.#ports.isEnding()) this.sweep(this.#ports.now());
        this.leaveCommand();
      });
  }

  /** A command without an effect, since no task but an update's own may end without one. */
  leaveCommand(): void {
    this.#ports.leaveCommand();
  }

  /** Of what was tried, what was not done is let alone for a while, the longer the more often it has failed. */
  #note(tried: readonly (Due | DueLimits)[], done: ReadonlySet<string>): void {
    for (const each of tried) {
      const name = nameOf(each);
      if (done.has(name)) this.#pace.done(name);
      else this.#pace.failed(name, isPayment(each) ? each.rail : "records", this.#ports.now());
    }
  }

  /** A rail has answered, here or to whoever confirms a payment: what it had failed is worth another try. */
  railAnswered(rail: Rail): void {
    this.nextAt = Math.min(this.nextAt, this.#pace.answered(rail));
  }

  async #payments(rail: Rail, due: readonly DuePayment[]): Promise<void> {
    const payments = due.flatMap(({ agentId, transactionId }) => this.#toExecute(agentId, transactionId));
    if (payments.length === 0) return;
    const done = await this.#ports.activities.executePayments(rail, { payments }).catch((error: unknown) => {
      // What cannot be carried out now comes again after the others.
      for (const { agentId, transactionId } of due) this.#putOff(agentId, transactionId);
      throw error;
    });
    payments.forEach(({ profile: { agentId }, payment: { request } }, place) => {
      const result = done[place];
      // Somebody else has seen to it meanwhile, or it could not be done; if it was not, it comes again after the others.
      if (result === undefined || result.revision === 0) this.#putOff(agentId, request.transactionId);
      if (result !== undefined) this.#ports.judge(confirmationOf(agentId, result));
      if (result !== undefined && result.outcome !== null) this.railAnswered(rail);
    });
    const failed = new Set(
      done.flatMap(({ hasFailed, transactionId }) => (hasFailed === true ? [transactionId] : [])),
    );
    const others = due.filter(({ transactionId }) => !failed.has(transactionId)).map(nameOf);
    this.#note(due, new Set(others));
  }

  #toExecute(agentId: string, transactionId: string) {
    const overdue = this.#overdue(agentId, transactionId);
    if (overdue === undefined) return [];
    const isOverdue = overdue.confirmedRevision >= overdue.payment.revision;
    // Its approval's workflow was to expire it.
    if (isOverdue && overdue.payment.phase === "held")
      this.#ports.judge({ kind: "expire", agentId, transactionId });
    const account = this.#ledger.accounts.get(agentId);
    const open = account?.open.get(transactionId);
    if (account === undefined || open === undefined) return [];
    const { dueAt: _dueAt, ...rest } = open;
    account.open.set(transactionId, rest);
    const isTakenOver = isOverdue && isWithItsApproval(open.payment);
    const executor = isTakenOver ? { executor: "approval" as const } : {};
    return [{ profile: profileIn(this.#ledger, account), payment: open.payment, ...executor }];
  }

  #overdue(agentId: string, transactionId: string): OpenPayment | undefined {
    return this.#ledger.accounts.get(agentId)?.open.get(transactionId);
  }

  #putOff(agentId: string, transactionId: string): void {
    const account = this.#ledger.accounts.get(agentId);
    if (account !== undefined) putOff(account, transactionId, this.#ports.now());
  }

  async #records(due: readonly DueRecord[]): Promise<void> {
    const accounts = due.flatMap(({ agentId }) => this.#ledger.accounts.get(agentId) ?? []).map(summaryOf);
    if (accounts.length === 0) return;
    const written = new Set(await this.#ports.activities.writeAccounts({ accounts }));
    const records = accounts.filter(({ agentId }) => written.has(agentId)).map(recordOf);
    this.#ports.judge({ kind: "confirm_records", records });
    this.#note(due, new Set(records.map(({ agentId }) => nameOf({ kind: "record", agentId }))));
  }

  async #caps(due: readonly DueCap[]): Promise<void> {
    const { projectId } = this.#ledger;
    const caps = due.map(({ teamId }) => {
      const level = teamId === null ? this.#ledger.project : levelOf(this.#ledger, teamId);
      return { teamId, cap: level.cap };
    });
    await this.#ports.activities.writeCaps({ projectId, caps });
    const recorded = caps.map(({ teamId, cap: { version } }) => ({ teamId, version }));
    this.#ports.judge({ kind: "confirm_caps", caps: recorded });
    this.#note(due, new Set(due.map(nameOf)));
  }

  /** A changed policy is mirrored at once, and beside the payments: none of them waits for it. */
  async #limits(due: readonly DueLimits[]): Promise<void> {
    const limits = due.flatMap(({ agentId }) => {
      const account = this.#ledger.accounts.get(agentId);
      if (account === undefined) return [];
      const { policy, policyVersion } = account;
      return [{ agentId, policy, policyVersion }];
    });
    for (const { agentId } of due) this.#unmirrored.delete(agentId);
    try {
      const mirrored = limits.length === 0 ? [] : await this.#ports.activities.mirrorLimits({ limits });
      const isMirrored = new Set(mirrored);
      for (const { agentId, policyVersion } of limits) {
        if (isMirrored.has(agentId)) this.#ports.judge({ kind: "confirm_limits", agentId, policyVersion });
      }
      this.#note(due, new Set(mirrored.map((agentId) => nameOf({ kind: "limits", agentId }))));
    } finally {
      for (const { agentId } of due) {
        const account = this.#ledger.accounts.get(agentId);
        if (account !== undefined) this.#noteLimits(account);
      }
    }
  }
}

const NONE: ReadonlySet<string> = new Set();

const recordOf = ({ agentId, revision }: AccountSummary) => ({ agentId, revision });

type DuePayment = Extract<Due, { readonly kind: "payment" }>;
type DueRecord = Extract<Due, { readonly kind: "record" }>;
type DueCap = Extract<Due, { readonly kind: "cap" }>;
interface DueLimits {
  readonly kind: "limits";
  readonly agentId: string;
}

const isPayment = (due: Due | DueLimits): due is DuePayment => due.kind === "payment";
const isRecord = (due: Due | DueLimits): due is DueRecord => due.kind === "record";
const isCap = (due: Due | DueLimits): due is DueCap => due.kind === "cap";
const isLimits = (due: Due | DueLimits): due is DueLimits => due.kind === "limits";

const placeOf = (due: Due | DueLimits): Place => (due.kind === "payment" ? due.rail : due.kind);

function nameOf(due: Due | DueLimits): string {
  const kind: Kind = due.kind;
  if (due.kind === "payment") return `${kind} ${due.transactionId}`;
  return due.kind === "cap" ? `${kind} ${due.teamId ?? ""}` : `${kind} ${due.agentId}`;
}
