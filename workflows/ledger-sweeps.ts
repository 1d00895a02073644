import { log, proxyActivities, upsertSearchAttributes } from "@temporalio/workflow";
import type { Activities } from "../activities/types.ts";
import { type Due, dueNow, isWithItsApproval, putOff, type SweepSettings } from "../src/domain/ledger/due.ts";
import { judge } from "../src/domain/ledger/judge.ts";
import {
  type Account,
  type Ledger,
  levelOf,
  type OpenPayment,
  profileIn,
  summaryOf,
} from "../src/domain/ledger/state.ts";
import { confirmationOf } from "../src/messages/ledger.ts";
import { projectIdKey } from "../src/messages/search-attributes.ts";

/** Payments, records and limits that one activity sees to at once. */
const PAYMENTS_AT_ONCE_MAX = 20;
const RECORDS_AT_ONCE_MAX = 100;
const LIMITS_AT_ONCE_MAX = 50;

/** Activities of a ledger's sweeps at the same time. */
const SWEEPS_MAX = 10;

const { executePayments, mirrorLimits, writeAccounts, writeCaps } = proxyActivities<Activities>({
  startToCloseTimeout: "20 seconds",
  // What does not succeed by then makes room for the others, and is taken up again in its turn.
  scheduleToCloseTimeout: "2 minutes",
  retry: { initialInterval: "1 second", backoffCoefficient: 2, maximumInterval: "1 minute" },
});

type Kind = "payment" | "record" | "cap" | "limits";

/**
 * What a ledger sees to itself, since nobody has in time: whoever decided may have died before acting. Sweeps run beside the updates, so
 * that one rail that is down holds up nothing else.
 */
export class LedgerSweeps {
  readonly #ledger: Ledger;
  readonly #settings: SweepSettings;
  /** What is being swept in this run. */
  readonly #sweeping = new Set<string>();
  #running = 0;
  /** Accounts whose policy is still to be mirrored into their wallets' limits. */
  readonly #unmirrored = new Set<string>();
  /** No later than when something is due; found out exactly by looking. */
  nextAt = 0;

  constructor(ledger: Ledger, settings: SweepSettings) {
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
      .catch((error: unknown) => log.warn("a sweep failed and will be repeated", { names, error }))
      .finally(() => {
        for (const name of names) this.#sweeping.delete(name);
        this.#running -= 1;
        this.lookAgain();
        // No task but an update's own ends without a command.
        upsertSearchAttributes([{ key: projectIdKey, value: this.#ledger.projectId }]);
      });
  }

  async #payments(due: readonly DuePayment[]): Promise<void> {
    const payments = due.flatMap(({ agentId, transactionId }) => this.#toExecute(agentId, transactionId));
    if (payments.length === 0) return;
    const done = await executePayments({ payments }).catch((error: unknown) => {
      // What cannot be carried out now comes again after the others.
      for (const { agentId, transactionId } of due) this.#putOff(agentId, transactionId);
      throw error;
    });
    payments.forEach(({ profile: { agentId }, payment: { request } }, place) => {
      const result = done[place];
      // Somebody else has seen to it meanwhile, or it could not be done; if it was not, it comes again after the others.
      if (result === undefined || result.revision === 0) this.#putOff(agentId, request.transactionId);
      if (result !== undefined) judge(this.#ledger, confirmationOf(agentId, result), Date.now());
    });
  }

  #toExecute(agentId: string, transactionId: string) {
    const overdue = this.#overdue(agentId, transactionId);
    if (overdue === undefined) return [];
    const isOverdue = overdue.confirmedRevision >= overdue.payment.revision;
    // Its approval's workflow was to expire it.
    if (isOverdue && overdue.payment.phase === "held")
      judge(this.#ledger, { kind: "expire", agentId, transactionId }, Date.now());
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
    if (account !== undefined) putOff(account, transactionId, Date.now());
  }

  async #records(due: readonly DueRecord[]): Promise<void> {
    const accounts = due.flatMap(({ agentId }) => this.#ledger.accounts.get(agentId) ?? []).map(summaryOf);
    if (accounts.length === 0) return;
    await writeAccounts({ accounts });
    const records = accounts.map(({ agentId, revision }) => ({ agentId, revision }));
    judge(this.#ledger, { kind: "confirm_records", records }, Date.now());
  }

  async #caps(due: readonly DueCap[]): Promise<void> {
    const { projectId } = this.#ledger;
    const caps = due.map(({ teamId }) => {
      const level = teamId === null ? this.#ledger.project : levelOf(this.#ledger, teamId);
      return { teamId, cap: level.cap };
    });
    await writeCaps({ projectId, caps });
    const recorded = caps.map(({ teamId, cap: { version } }) => ({ teamId, version }));
    judge(this.#ledger, { kind: "confirm_caps", caps: recorded }, Date.now());
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
      if (limits.length > 0) await mirrorLimits({ limits });
      for (const { agentId, policyVersion } of limits)
        judge(this.#ledger, { kind: "confirm_limits", agentId, policyVersion }, Date.now());
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
