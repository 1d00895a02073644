import type { Activities } from "../activities/types.ts";
import { type Due, dueNow, isWithItsApproval, putOff, type SweepSettings } from "../src/domain/ledger/due.ts";
import type { LedgerCommand, LedgerReply } from "../src/domain/ledger/commands.ts";
import {
  type Account,
  type Ledger,
  levelOf,
  type OpenPayment,
  profileIn,
  summaryOf,
} from "../src/domain/ledger/state.ts";
import { confirmationOf } from "../src/messages/ledger.ts";

/** Payments, records and limits that one activity sees to at once. */
const PAYMENTS_AT_ONCE_MAX = 20;
const RECORDS_AT_ONCE_MAX = 100;
const LIMITS_AT_ONCE_MAX = 50;

/** Activities of a ledger's sweeps at the same time. */
const SWEEPS_MAX = 10;

/** What sweeps need of whoever runs the ledger. */
export interface SweepPorts {
  readonly activities: Pick<Activities, "executePayments" | "mirrorLimits" | "writeAccounts" | "writeCaps">;
  /** Puts a command to the ledger. */
  readonly judge: (command: LedgerCommand) => LedgerReply;
  readonly now: () => number;
  readonly onFailed: (names: readonly string[], error: unknown) => void;
  /** A sweep has ended, well or not. */
  readonly onEnded: () => void;
}

type Kind = "payment" | "record" | "cap" | "limits";

/**
 * What a ledger sees to itself, since nobody has in time: whoever decided may have died before acting. Sweeps run beside the updates, so
 * that one rail that is down holds up nothing else.
 */
export class LedgerSweeps {
  readonly #ledger: Ledger;
  readonly #settings: SweepSettings;
  readonly #ports: SweepPorts;
  /** What is being swept in this run. */
  readonly #sweeping = new Set<string>();
  #running = 0;
  /** Accounts whose policy is still to be mirrored into their wallets' limits. */
  readonly #unmirrored = new Set<string>();
  /** No later than when something is due; found out exactly by looking. */
  nextAt = 0;

  constructor(ledger: Ledger, settings: SweepSettings, ports: SweepPorts) {
    this.#ports = ports;
    this.#ledger = ledger;
    this.#settings = settings;
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
  }

  /** Begins to see to what is due by now. */
  sweep(now: number): void {
    const { due, nextAt } = dueNow(this.#ledger, this.#settings, now);
    this.nextAt = nextAt;
    const waiting = due.filter((each) => !this.#sweeping.has(nameOf(each)));
    this.#inBatches(waiting.filter(isPayment), PAYMENTS_AT_ONCE_MAX, (some) => this.#payments(some));
    this.#inBatches(waiting.filter(isRecord), RECORDS_AT_ONCE_MAX, (some) => this.#records(some));
    this.#inBatches(waiting.filter(isCap), RECORDS_AT_ONCE_MAX, (some) => this.#caps(some));
    const limits = [...this.#unmirrored]
      .map((agentId) => ({ kind: "limits", agentId }) as const)
      .filter((each) => !this.#sweeping.has(nameOf(each)));
    this.#inBatches(limits, LIMITS_AT_ONCE_MAX, (some) => this.#limits(some));
  }

  #inBatches<T extends Due | DueLimits>(
    due: readonly T[],
    size: number,
    work: (some: readonly T[]) => Promise<void>,
  ): void {
    for (let from = 0; from < due.length && this.#running < SWEEPS_MAX; from += size) {
      const some = due.slice(from, from + size);
      this.#run(some, () => work(some));
    }
  }

  #run(some: readonly (Due | DueLimits)[], work: () => Promise<void>): void {
    const names = some.map(nameOf);
    for (const name of names) this.#sweeping.add(name);
    this.#running += 1;
    void work()
      .catch((error: unknown) => this.#ports.onFailed(names, error))
      .finally(() => {
        for (const name of names) this.#sweeping.delete(name);
        this.#running -= 1;
        this.lookAgain();
        this.#ports.onEnded();
      });
  }

  async #payments(due: readonly DuePayment[]): Promise<void> {
    const payments = due.flatMap(({ agentId, transactionId }) => this.#toExecute(agentId, transactionId));
    if (payments.length === 0) return;
    const done = await this.#ports.activities.executePayments({ payments }).catch((error: unknown) => {
      // What cannot be carried out now comes again after the others.
      for (const { agentId, transactionId } of due) this.#putOff(agentId, transactionId);
      throw error;
    });
    payments.forEach(({ profile: { agentId }, payment: { request } }, place) => {
      const result = done[place];
      // Somebody else has seen to it meanwhile, or it could not be done; if it was not, it comes again after the others.
      if (result === undefined || result.revision === 0) this.#putOff(agentId, request.transactionId);
      if (result !== undefined) this.#ports.judge(confirmationOf(agentId, result));
    });
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
    await this.#ports.activities.writeAccounts({ accounts });
    const records = accounts.map(({ agentId, revision }) => ({ agentId, revision }));
    this.#ports.judge({ kind: "confirm_records", records });
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
      if (limits.length > 0) await this.#ports.activities.mirrorLimits({ limits });
      for (const { agentId, policyVersion } of limits)
        this.#ports.judge({ kind: "confirm_limits", agentId, policyVersion });
    } finally {
      for (const { agentId } of due) {
        const account = this.#ledger.accounts.get(agentId);
        if (account !== undefined) this.#noteLimits(account);
      }
    }
  }
}

type DuePayment = Extract<Due, { readonly kind: "payment" }>;
type DueRecord = Extract<Due, { readonly kind: "record" }>;
type DueCap = Extract<Due, { readonly kind: "cap" }>;
interface DueLimits {
  readonly kind: "limits";
  readonly agentId: string;
}

const isPayment = (due: Due): due is DuePayment => due.kind === "payment";
const isRecord = (due: Due): due is DueRecord => due.kind === "record";
const isCap = (due: Due): due is DueCap => due.kind === "cap";

function nameOf(due: Due | DueLimits): string {
  const kind: Kind = due.kind;
  if (due.kind === "payment") return `${kind} ${due.transactionId}`;
  return due.kind === "cap" ? `${kind} ${due.teamId ?? ""}` : `${kind} ${due.agentId}`;
}
