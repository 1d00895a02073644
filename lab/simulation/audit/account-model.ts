import type { RailOutcome, TransactionStatus } from "../../../src/domain/ledger/payment.ts";
import type { BudgetPolicy, DenialDetails } from "../../../src/domain/ledger/policy.ts";
import type { NewAccount, AccountStatus } from "../../../src/domain/ledger/state.ts";
import type { RuleCheck } from "../../../src/domain/rules/rules.ts";
import { EventModel } from "./event-model.ts";
import { must } from "./violation.ts";

/** A payment as the book has it: what may become of it, in the slowest and plainest way. */
export interface PaymentModel {
  readonly id: string;
  readonly agentId: string;
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly fingerprint: string;
  readonly amountCents: number;
  readonly createdAt: number;
  /** When it counts: never before what was counted earlier. */
  readonly countedAt: number;
  /** The UTC day that its count is on, which may be later than that where the clock has gone back; its amount may move to a later one. */
  readonly countedOn: string;
  readonly expiresAt: number;
  /** Whether a person is asked. */
  readonly needsPerson: boolean;
  /** Passed policy, so that the velocity limits count it. */
  readonly isCounted: boolean;
  status: TransactionStatus;
  /** Nothing more can become of it. */
  isOver: boolean;
  /** UTC day its amount counts on. */
  day: string;
  approvedAt: number | null;
  /** Whether its rail has it, as far as the ledger has received. */
  isFollowed: boolean;
  isCaptured: boolean;
  isReversed: boolean;
  rail: RailOutcome["status"] | "final" | null;
  recorded: { revision: number; status: TransactionStatus } | null;
  /** What was written down under each revision. */
  readonly written: Map<number, string>;
  /** It was let through, and is not to be sent any more. */
  isWithdrawn: boolean;
  /** How often it has changed, and the newest change whose effects are known to be done. */
  revision: number;
  confirmedRevision: number;
}

export interface Verdict {
  readonly code: string;
  readonly details: DenialDetails | null;
  /** How much later than `details` say it may reset. */
  readonly laterMs?: number;
}

const DAY = 24 * 60 * 60 * 1_000;
export const HOUR = 60 * 60 * 1_000;

const dayOf = (at: number): string => new Date(at).toISOString().split("T")[0] ?? "";
const midnightAfter = (at: number): number => Date.parse(`${dayOf(at + DAY)}T00:00:00.000Z`);
const orZero = (cents: number): number => (cents < 0 ? 0 : cents);

export const isMoney = (status: TransactionStatus): boolean => status === "pending" || status === "approved";

/** What may follow on a status. */
const CHANGES: Readonly<Record<string, readonly TransactionStatus[]>> = {
  pending: ["pending", "approved", "denied", "failed", "expired", "reversed"],
  approved: ["approved", "reversed"],
};

/** The same of a record, which may have missed some in between. */
export const mayFollow = (before: TransactionStatus, after: TransactionStatus): boolean =>
  before === after || CHANGES[before]?.includes(after) === true;

/**
 * The one book of an agent's account: what its payments, limits and counts must be. Written from the rules and not from the code, in
 * the slowest and plainest way: lists, and sums over them.
 */
export class AccountModel {
  readonly agentId: string;
  readonly teamId: string;
  readonly journal = new EventModel();
  readonly byKey = new Map<string, PaymentModel>();
  readonly payments: PaymentModel[] = [];
  name: string;
  policy: BudgetPolicy;
  version = 1;
  status: AccountStatus = "active";
  /** The key that may pay, and the revision of the agent's actor that name, key and end are from. */
  keyId: string | null;
  followedRevision = 0;
  /** Keys that a stop has revoked: none of them ever pays again, whatever the agent's actor says of it. */
  readonly stoppedKeys = new Set<string>();
  /** How often it was paused or resumed. */
  turns = 0;
  /** The highest permit and the highest fence that the ledger gave. */
  #permit = 0;
  #fence = 0;
  spentCents = 0;
  reservedCents = 0;
  /** The newest day, and the newest time, that anything was counted on. */
  #newestDay = "";
  #newestCountedAt = 0;
  /** The latest time there was: where the clock has gone back, buckets are as wide as then. */
  #latest = 0;

  constructor({ agentId, keyId, name, policy, teamId }: NewAccount) {
    this.agentId = agentId;
    this.teamId = teamId;
    this.name = name;
    this.policy = policy;
    this.keyId = keyId;
  }

  /** A permit that was given before a fence is below it, and none given after. */
  permitted(permit: number): void {
    must(permit >= this.#permit && permit > this.#fence, "a permit is below an earlier one, or a fence");
    this.#permit = permit;
  }

  fenced(fence: number): void {
    must(fence >= this.#fence && fence > this.#permit, "a fence is below an earlier one, or a permit");
    this.#fence = fence;
  }

  add(payment: PaymentModel): void {
    this.byKey.set(payment.keyHash, payment);
    this.payments.push(payment);
    this.#count(payment, 1);
    if (!payment.isCounted) return;
    this.#newestCountedAt = payment.countedAt;
    this.#newestDay = payment.day;
  }

  /** A payment's money moves with its status, and with nothing else; whatever was held or spent comes to an end once. */
  change(payment: PaymentModel, change: Partial<PaymentModel>, now: number): void {
    const { status } = payment;
    must(change.status === undefined || mayFollow(status, change.status), `${payment.id} changed twice`);
    const wasMoney = isMoney(status);
    this.#count(payment, -1);
    Object.assign(payment, change, { revision: payment.revision + 1 });
    this.#count(payment, 1);
    if (status !== payment.status && (wasMoney || isMoney(payment.status))) this.counted(now);
  }

  #count({ amountCents, status }: PaymentModel, sign: 1 | -1): void {
    if (status === "pending") this.reservedCents += sign * amountCents;
    if (status === "approved") this.spentCents += sign * amountCents;
  }

  /** Something was counted now: what comes later is not counted on a day before that. */
  counted(now: number): void {
    this.#newestDay = this.dayOf(now);
  }

  /** Where the clock goes back over midnight, days do not. */
  dayOf(now: number): string {
    const today = dayOf(now);
    return this.#newestDay > today ? this.#newestDay : today;
  }

  /** How long a window may count: a bucket at its end longer. */
  longestMs(windowMs: number, now: number): number {
    this.#latest = Math.max(this.#latest, now);
    const aheadMs = this.#latest - now;
    if (aheadMs > 0) return windowMs + (aheadMs + windowMs) / 2.5;
    return windowMs * (windowMs <= HOUR ? 1 + 1 / 32 : 1 + 1 / 4);
  }

  countedAt(now: number): number {
    return Math.max(now, this.#newestCountedAt);
  }

  /** Who waits for a person. */
  held(): PaymentModel[] {
    return this.payments.filter(isHeld);
  }

  /** Something is left to be done for them. */
  open(): PaymentModel[] {
    return this.payments.filter((one) => !isClosed(one));
  }

  /** Decided and not over, and no person is to be asked. */
  inFlight(): PaymentModel[] {
    return this.payments.filter((one) => one.status === "pending" && !one.isOver && !isHeld(one));
  }

  /** What its key has asked for, and was not sent, is not to be sent any more. */
  withdraw(): void {
    for (const payment of this.inFlight()) payment.isWithdrawn = true;
  }

  get usedCents(): number {
    return this.spentCents + this.reservedCents;
  }

  needsPerson(amountCents: number): boolean {
    const threshold = this.policy.autoApprovalThresholdCents;
    return threshold !== null && (threshold === 0 || amountCents > threshold);
  }

  /** What the agent's life and its own limits say to an amount, `own` not counted; the first that fails. */
  verdict(
    amountCents: number,
    now: number,
    { hourMs, own }: { readonly hourMs: number; readonly own: PaymentModel | null },
  ): Verdict | null {
    if (this.status !== "active") {
      return { code: this.status === "paused" ? "AGENT_PAUSED" : "AGENT_ARCHIVED", details: null };
    }
    return this.#amounts(amountCents, now, own) ?? this.#counts(now, hourMs, own);
  }

  /** What the agent's budget shows. */
  usage(now: number): { todayCents: number; todayCount: number } {
    const today = this.dayOf(now);
    return { todayCents: this.#spentOn(today, null), todayCount: this.#countOn(today, null) };
  }

  /** How many payments the hour may count: never fewer than it has, and those of its last bucket. */
  hourCounts(now: number): { least: number; most: number } {
    return {
      least: this.#ofHour(now, HOUR, null).length,
      most: this.#ofHour(now, this.longestMs(HOUR, now), null).length,
    };
  }

  #amounts(amountCents: number, now: number, own: PaymentModel | null): Verdict | null {
    const { budgetCents, dailySpendLimitCents: daily, perTransactionLimitCents: each } = this.policy;
    if (each !== null && amountCents > each) {
      const details = { limit: each, remaining: each, resetsAt: null };
      return { code: "PER_TRANSACTION_LIMIT_EXCEEDED", details };
    }
    const left = budgetCents - this.usedCents + (own?.amountCents ?? 0);
    if (amountCents > left) {
      const details = { limit: budgetCents, remaining: orZero(left), resetsAt: null };
      return { code: "BUDGET_EXCEEDED", details };
    }
    if (daily === null) return null;
    const leftToday = daily - this.#spentOn(this.dayOf(now), own);
    if (amountCents <= leftToday) return null;
    const details = { limit: daily, remaining: orZero(leftToday), resetsAt: this.#dayEndsAt(now) };
    return { code: "DAILY_SPEND_LIMIT_EXCEEDED", details };
  }

  #counts(now: number, hourMs: number, own: PaymentModel | null): Verdict | null {
    const { dailyVelocityLimit: daily, hourlyVelocityLimit: hourly } = this.policy;
    if (hourly !== null && this.#ofHour(now, hourMs, own).length >= hourly) {
      // A later payment has its turn when fewer than the limit are left, and this one counts among them.
      const last = hourly === 0 ? undefined : this.#ofHour(now, hourMs, null)[hourly - 1];
      const resetsAt = last === undefined ? null : last + HOUR;
      const laterMs = this.longestMs(HOUR, now) - HOUR;
      return {
        code: "HOURLY_VELOCITY_EXCEEDED",
        details: { limit: hourly, remaining: 0, resetsAt },
        laterMs,
      };
    }
    if (daily !== null && this.#countOn(this.dayOf(now), own) >= daily) {
      const details = { limit: daily, remaining: 0, resetsAt: this.#dayEndsAt(now) };
      return { code: "DAILY_VELOCITY_EXCEEDED", details };
    }
    return null;
  }

  #dayEndsAt(now: number): number {
    const day = this.dayOf(now);
    return day > dayOf(now) ? midnightAfter(Date.parse(day)) : midnightAfter(now);
  }

  /**
   * Which rules flag a payment that is not denied, and whether its threshold does. `windows`: as windows are said to be, or as long as
   * they may count.
   */
  flags(
    amountCents: number,
    fingerprint: string,
    rules: readonly RuleCheck[],
    { now, windows }: { readonly now: number; readonly windows: "exact" | "longest" },
  ): Set<string> {
    const flags = new Set<string>();
    if (this.needsPerson(amountCents)) flags.add("agent_threshold");
    for (const rule of rules) {
      if (rule.type === "velocity") {
        const windowMs = rule.windowSeconds * 1_000;
        const since = now - (windows === "exact" ? windowMs : this.longestMs(windowMs, now));
        const recent = this.payments.filter((one) => one.isCounted && one.countedAt > since);
        if (recent.length >= rule.count) flags.add(rule.type);
      } else if (rule.type === "duplicate") {
        const since = now - rule.windowSeconds * 1_000;
        const isSimilar = (one: PaymentModel): boolean =>
          one.fingerprint === fingerprint && one.status !== "denied" && one.createdAt > since;
        if (this.payments.some(isSimilar)) flags.add(rule.type);
      } else flags.add(rule.type);
    }
    return flags;
  }

  #spentOn(day: string, own: PaymentModel | null): number {
    let cents = 0;
    for (const payment of this.payments) {
      if (payment !== own && payment.day === day && isMoney(payment.status)) cents += payment.amountCents;
    }
    return cents;
  }

  #countOn(day: string, own: PaymentModel | null): number {
    return this.payments.filter((one) => one !== own && one.isCounted && one.countedOn === day).length;
  }

  /** When the payments of the hour that ends now were made, newest first. */
  #ofHour(now: number, hourMs: number, own: PaymentModel | null): number[] {
    return this.payments
      .filter((one) => now - one.countedAt < hourMs && one !== own && one.isCounted)
      .map(({ countedAt }) => countedAt)
      .toSorted((a, b) => b - a);
  }
}

export const isHeld = ({ approvedAt, isOver, needsPerson }: PaymentModel): boolean =>
  needsPerson && approvedAt === null && !isOver;

/** All is done for it. */
export const isClosed = ({ confirmedRevision, isOver, revision }: PaymentModel): boolean =>
  isOver && confirmedRevision >= revision;
