import type { Activities, UnfinishedPayment } from "../activities/types.ts";
import { isArmed } from "../src/domain/ledger/payment.ts";
import { type Due, dueNow, expedite, postpone, type SweepSettings } from "../src/domain/ledger/due.ts";
import type { LedgerCommand, LedgerReply } from "../src/domain/ledger/commands.ts";
import { recordedCalendar } from "../src/domain/ledger/levels.ts";
import {
  type Account,
  type AccountSummary,
  type Ledger,
  levelOf,
  type OpenPayment,
  profileIn,
  summaryOf,
} from "../src/domain/ledger/state.ts";
import { perRail, type Rail, RAILS } from "../src/domain/ledger/payment.ts";
import { confirmationOf, type Execution } from "../src/messages/ledger.ts";

/** Maximum payments, records and limits per activity. */
const PAYMENTS_AT_ONCE_MAX = 20;
const RECORDS_AT_ONCE_MAX = 500;
const LIMITS_AT_ONCE_MAX = 50;
/** Maximum actors per activity. Each is told by an update of its own, which takes tens of milliseconds. */
const ACTORS_AT_ONCE_MAX = 200;

/**
 * Maximum concurrent activities of a ledger's sweeps, by pool, so that a hanging rail takes no capacity from the
 * records.
 */
const SWEEPS_MAX: Readonly<Record<Pool, number>> = {
  ...perRail(() => 6),
  record: 2,
  cap: 1,
  limits: 2,
  actor: 1,
};

/** Maximum doublings of the backoff of a failing record or limit: the longest pause is 2^6 times the first. */
const BACKOFF_DOUBLINGS_MAX = 6;

export interface SweepPorts {
  readonly activities: Pick<Activities, "mirrorLimits" | "tellActors" | "writeAccounts" | "writeCaps"> & {
    /** Executes payments of one rail, so that a hanging rail does not delay the others. */
    executePayments(
      rail: Rail,
      input: { payments: readonly UnfinishedPayment[] },
    ): Promise<readonly Execution[]>;
  };
  readonly judge: (command: LedgerCommand) => LedgerReply;
  readonly now: () => number;
  readonly onFailed: (names: readonly string[], error: unknown) => void;
  /** Whether the run is about to end. Anything started would end with it. */
  readonly isEnding: () => boolean;
  /** Emits a command without an effect, after a sweep has ended or a timer found nothing due. */
  readonly emitCommand: () => void;
}

type Kind = DueWork["kind"];

/** Consecutive failures in this run, and the end of the backoff. */
interface Backoff {
  readonly failures: number;
  readonly until: number;
}

/** Pool of activities. Payments have one for each rail. */
type Pool = Exclude<Kind, "payment"> | Rail;

/**
 * Executes effects that were not confirmed in time, since the deciding process may have died. Sweeps run concurrently
 * with updates, so that a rail that is down delays nothing else.
 */
export class LedgerSweeps {
  readonly #ledger: Ledger;
  readonly #settings: SweepSettings;
  readonly #ports: SweepPorts;
  /** Keys being swept in this run, and the number of activities in each pool. */
  readonly #sweeping = new Set<string>();
  readonly #running: Record<Pool, number> = { ...perRail(() => 0), record: 0, cap: 0, limits: 0, actor: 0 };
  readonly #backoffs = new Map<string, Backoff>();
  /** Failed payments and their agents, until the payments are known to have succeeded. */
  readonly #failed: Readonly<Record<Rail, Map<string, string>>> = perRail(() => new Map());
  /** Accounts whose policy is still to be mirrored to their wallets' limits. */
  readonly #unmirrored = new Set<string>();
  /** Accounts whose agents' actors are still to be told of a pause, a resume or a stop. */
  readonly #untold = new Set<string>();
  /** Accounts with a change that no server was told of. */
  readonly #unshared = new Set<string>();
  /** Lower bound on the time at which something is due. A sweep determines the exact time. */
  nextAt = 0;

  constructor(ledger: Ledger, settings: SweepSettings, ports: SweepPorts) {
    this.#ports = ports;
    this.#ledger = ledger;
    this.#settings = settings;
    for (const account of ledger.accounts.values()) {
      this.#note(account);
      for (const [id, { failures, payment }] of account.open)
        if (failures !== undefined) this.#failed[payment.request.rail].set(id, account.agentId);
    }
  }

  /** Notes a changed account with work due at `dueAt`. */
  noteChange(dueAt: number, account: Account): void {
    this.#note(account);
    const { agentId } = account;
    const isDue = this.#unmirrored.has(agentId) || this.#untold.has(agentId);
    this.nextAt = Math.min(this.nextAt, isDue ? 0 : dueAt);
  }

  /** Writes the records of these accounts without waiting for a server to do it. */
  recordAtOnce(accounts: readonly Account[]): void {
    for (const { agentId } of accounts) this.#unshared.add(agentId);
    if (accounts.length > 0) this.recheck();
  }

  /** Notes that something may be due before `nextAt`. */
  recheck(): void {
    this.nextAt = 0;
  }

  /** Clears `nextAt` if nothing is due any more, so that no timer runs for confirmed work. */
  clearIfIdle(now: number): void {
    const { openPayments } = this.#ledger;
    const isOwed = [this.#unmirrored, this.#untold, this.#unshared, this.#backoffs, this.#sweeping].some(
      ({ size }) => size > 0,
    );
    // A busy ledger is not scanned with each update.
    if (openPayments > 0 || isOwed) return;
    const { due, nextAt } = dueNow(this.#ledger, this.#settings, now);
    if (due.length === 0 && nextAt === Infinity) this.nextAt = Infinity;
  }

  #note(account: Account): void {
    const { agentId, isStatusTold, mirroredPolicyVersion, policyVersion, revokedKeyId, status } = account;
    const isOpen = status !== "closed";
    const set = (those: Set<string>, isIn: boolean) => (isIn ? those.add(agentId) : those.delete(agentId));
    set(this.#unmirrored, isOpen && mirroredPolicyVersion < policyVersion);
    set(this.#untold, isOpen && (!isStatusTold || revokedKeyId !== null));
  }

  /** Starts activities for the work that is due. */
  sweep(now: number): void {
    const { due, nextAt } = dueNow(this.#ledger, this.#settings, now, this.#unshared);
    this.nextAt = nextAt;
    const waiting = due.filter((each) => this.#isFree(nameOf(each), now));
    const payments = waiting.filter(isPayment);
    for (const rail of RAILS) {
      const own = payments.filter((each) => each.rail === rail);
      this.#inBatches(own, PAYMENTS_AT_ONCE_MAX, (some) => this.#payments(rail, some));
    }
    this.#inBatches(waiting.filter(isRecord), RECORDS_AT_ONCE_MAX, (some) => this.#records(some));
    this.#inBatches(waiting.filter(isCap), RECORDS_AT_ONCE_MAX, (some) => this.#caps(some));
    const limits = this.#next("limits", this.#unmirrored, { atOnce: LIMITS_AT_ONCE_MAX, now });
    this.#inBatches(limits, LIMITS_AT_ONCE_MAX, (some) => this.#limits(some));
    const actors = this.#next("actor", this.#untold, { atOnce: ACTORS_AT_ONCE_MAX, now });
    this.#inBatches(actors, ACTORS_AT_ONCE_MAX, (some) => this.#actors(some));
  }

  /**
   * Returns the agents for which activities can be started. There may be thousands, and this runs at the end of each
   * activity.
   */
  #next<K extends "actor" | "limits">(
    kind: K,
    agentIds: ReadonlySet<string>,
    { atOnce, now }: { readonly atOnce: number; readonly now: number },
  ): readonly { readonly kind: K; readonly agentId: string }[] {
    const capacity = atOnce * (SWEEPS_MAX[kind] - this.#running[kind]);
    const next: { kind: K; agentId: string }[] = [];
    for (const agentId of agentIds) {
      if (next.length >= capacity) break;
      if (this.#isFree(`${kind} ${agentId}`, now)) next.push({ kind, agentId });
    }
    return next;
  }

  /** Whether an item is neither being swept nor backing off. An item in backoff becomes due at the end of it. */
  #isFree(name: string, now: number): boolean {
    if (this.#sweeping.has(name)) return false;
    const until = this.#backoffs.get(name)?.until ?? 0;
    if (until <= now) return true;
    this.nextAt = Math.min(this.nextAt, until);
    return false;
  }

  #inBatches<T extends DueWork>(
    due: readonly T[],
    size: number,
    work: (some: readonly T[]) => Promise<void>,
  ): void {
    for (let from = 0; from < due.length; from += size) {
      const some = due.slice(from, from + size);
      const [first] = some;
      if (first === undefined || this.#running[poolOf(first)] >= SWEEPS_MAX[poolOf(first)]) return;
      this.#run(poolOf(first), some, () => work(some));
    }
  }

  #run(pool: Pool, some: readonly DueWork[], work: () => Promise<void>): void {
    const names = some.map(nameOf);
    for (const name of names) this.#sweeping.add(name);
    this.#running[pool] += 1;
    void work()
      .catch((error: unknown) => {
        this.#ports.onFailed(names, error);
        // Payments have their own backoff.
        if (!some.every(isPayment)) this.#backOff(names, NONE);
      })
      .finally(() => {
        for (const name of names) this.#sweeping.delete(name);
        this.#running[pool] -= 1;
        // Capacity is free for waiting work. The ledger's timer stays, unless something is due sooner.
        if (!this.#ports.isEnding()) this.sweep(this.#ports.now());
        this.emitCommand();
      });
  }

  /** Emits a command without an effect, since only an update's own task may end without one. */
  emitCommand(): void {
    this.#ports.emitCommand();
  }

  /** Backs off failed items, for longer after each further failure. */
  #backOff(tried: readonly string[], done: ReadonlySet<string>): void {
    for (const name of tried) {
      if (done.has(name)) {
        this.#backoffs.delete(name);
        continue;
      }
      const failures = (this.#backoffs.get(name)?.failures ?? 0) + 1;
      const pauseMs = this.#settings.sweepAfterMs * 2 ** Math.min(failures - 1, BACKOFF_DOUBLINGS_MAX);
      this.#backoffs.set(name, { failures, until: this.#ports.now() + pauseMs });
    }
  }

  /**
   * Retries a rail's failed payments sooner, because the rail has responded here or to a server that confirmed a
   * payment.
   */
  railAnswered(rail: Rail): void {
    for (const [transactionId, agentId] of this.#failed[rail]) {
      const account = this.#ledger.accounts.get(agentId);
      if (account === undefined) continue;
      this.nextAt = Math.min(this.nextAt, expedite(account, transactionId, this.#settings));
    }
    // Each payment is expedited once.
    this.#failed[rail].clear();
  }

  async #payments(rail: Rail, due: readonly DuePayment[]): Promise<void> {
    const payments = due.flatMap(({ agentId, transactionId }) => this.#toExecute(agentId, transactionId));
    if (payments.length === 0) return;
    const done = await this.#ports.activities.executePayments(rail, { payments }).catch((error: unknown) => {
      // A failed payment is retried after the others.
      for (const { agentId, transactionId } of due) this.#postpone(agentId, transactionId, "failed", rail);
      throw error;
    });
    // Called before new failures are noted: an outcome of one payment says nothing about another in the same activity.
    if (done.some(({ outcome }) => outcome !== null)) this.railAnswered(rail);
    payments.forEach(({ profile: { agentId }, payment: { request } }, index) => {
      const result = done[index];
      // A server has executed the payment in the meantime, or it failed; it is then due again after the others.
      if (result === undefined || result.revision === 0) {
        const reason = result?.hasFailed === true ? "failed" : "waits";
        this.#postpone(agentId, request.transactionId, reason, rail);
      }
      if (result !== undefined) this.#ports.judge(confirmationOf(agentId, result));
    });
  }

  #toExecute(agentId: string, transactionId: string): readonly UnfinishedPayment[] {
    const overdue = this.#overdue(agentId, transactionId);
    if (overdue === undefined) return [];
    const isOverdue = overdue.confirmedRevision >= overdue.payment.revision;
    // The approval's workflow has not expired the payment, or its network has not charged it in time.
    if (isOverdue && (overdue.payment.phase === "held" || isArmed(overdue.payment)))
      this.#ports.judge({ kind: "expire", agentId, transactionId });
    const account = this.#ledger.accounts.get(agentId);
    const open = account?.open.get(transactionId);
    if (account === undefined || open === undefined) return [];
    const { dueAt: _dueAt, ...rest } = open;
    account.open.set(transactionId, rest);
    return [{ profile: profileIn(this.#ledger, account), payment: open.payment }];
  }

  #overdue(agentId: string, transactionId: string): OpenPayment | undefined {
    return this.#ledger.accounts.get(agentId)?.open.get(transactionId);
  }

  #postpone(agentId: string, transactionId: string, reason: "waits" | "failed", rail: Rail): void {
    const account = this.#ledger.accounts.get(agentId);
    if (account === undefined) return;
    postpone(account, transactionId, this.#ports.now(), reason);
    if (reason === "failed" && account.open.get(transactionId)?.isExpedited !== true)
      this.#failed[rail].set(transactionId, agentId);
  }

  async #records(due: readonly DueRecord[]): Promise<void> {
    const accounts = due.flatMap(({ agentId }) => this.#ledger.accounts.get(agentId) ?? []).map(summaryOf);
    if (accounts.length === 0) return;
    const written = new Set(await this.#ports.activities.writeAccounts({ accounts }));
    const records = accounts.filter(({ agentId }) => written.has(agentId)).map(recordOf);
    this.#ports.judge({ kind: "confirm_records", records });
    for (const { agentId } of records) this.#unshared.delete(agentId);
    this.#backOff(
      due.map(nameOf),
      new Set(records.map(({ agentId }) => nameOf({ kind: "record", agentId }))),
    );
  }

  async #caps(due: readonly DueCap[]): Promise<void> {
    const { projectId } = this.#ledger;
    const caps = due.map(({ teamId }) => {
      if (teamId !== null) return { teamId, cap: levelOf(this.#ledger, teamId).cap };
      return { teamId, cap: this.#ledger.project.cap, ...recordedCalendar(this.#ledger) };
    });
    await this.#ports.activities.writeCaps({ projectId, caps });
    const recorded = caps.map(({ teamId, cap: { version } }) => ({ teamId, version }));
    this.#ports.judge({ kind: "confirm_caps", caps: recorded });
    const names = due.map(nameOf);
    this.#backOff(names, new Set(names));
  }

  /** Mirrors changed policies at once, concurrently with payments, which do not wait for this. */
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
      this.#backOff(due.map(nameOf), new Set(mirrored.map((agentId) => nameOf({ kind: "limits", agentId }))));
    } finally {
      this.#noteAll(due);
    }
  }

  /**
   * Tells agents' actors at once, because operators filter by the actors' state, and only an actor can revoke its key.
   */
  async #actors(due: readonly DueActor[]): Promise<void> {
    const accounts = due.flatMap(({ agentId }) => {
      const account = this.#ledger.accounts.get(agentId);
      if (account === undefined || account.status === "closed") return [];
      const { revision, revokedKeyId, status } = account;
      return [{ agentId, status, revision, revokedKeyId }];
    });
    for (const { agentId } of due) this.#untold.delete(agentId);
    try {
      const told = new Set(
        accounts.length === 0 ? [] : await this.#ports.activities.tellActors({ accounts }),
      );
      const actors = accounts
        .filter(({ agentId }) => told.has(agentId))
        .map(({ agentId, revokedKeyId, status }) => ({ agentId, status, revokedKeyId }));
      this.#ports.judge({ kind: "confirm_actors", actors });
      this.#backOff(
        due.map(nameOf),
        new Set(actors.map(({ agentId }) => nameOf({ kind: "actor", agentId }))),
      );
    } finally {
      this.#noteAll(due);
    }
  }

  #noteAll(due: readonly (DueLimits | DueActor)[]): void {
    for (const { agentId } of due) {
      const account = this.#ledger.accounts.get(agentId);
      if (account !== undefined) this.#note(account);
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
interface DueActor {
  readonly kind: "actor";
  readonly agentId: string;
}
type DueWork = Due | DueLimits | DueActor;

const isPayment = (due: DueWork): due is DuePayment => due.kind === "payment";
const isRecord = (due: DueWork): due is DueRecord => due.kind === "record";
const isCap = (due: DueWork): due is DueCap => due.kind === "cap";

const poolOf = (due: DueWork): Pool => (due.kind === "payment" ? due.rail : due.kind);

function nameOf(due: DueWork): string {
  const kind: Kind = due.kind;
  if (due.kind === "payment") return `${kind} ${due.transactionId}`;
  return due.kind === "cap" ? `${kind} ${due.teamId ?? ""}` : `${kind} ${due.agentId}`;
}
