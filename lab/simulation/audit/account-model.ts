import type { RailOutcome, TransactionStatus } from "../../../src/domain/ledger/payment.ts";
import type { BudgetPolicy, DenialDetails } from "../../../src/domain/ledger/policy.ts";
import type { NewAccount, AccountStatus } from "../../../src/domain/ledger/state.ts";
import type { RuleCheck } from "../../../src/domain/rules/rules.ts";
import type { Raised } from "../../../src/domain/ledger/raises.ts";
import type { Totals } from "../../../src/domain/ledger/state.ts";
import { type BookedPayment, type CountedPart, countedSince, sum } from "./booked-payment.ts";
import { addedCents, type IncreaseModel } from "./increases-model.ts";
import { EventModel } from "./event-model.ts";
import { must } from "./violation.ts";

/** A payment as the book has it: what may become of it, in the slowest and plainest way. */
export interface PaymentModel {
  readonly id: string;
  readonly agentId: string;
  readonly keyHash: string;
  readonly payloadHash: string;
  readonly fingerprint: string;
  readonly recipient: string;
  readonly amountMc: number;
  /** Effects of its network, as far as the ledger was told. */
  readonly books: BookedPayment;
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
  approvedAt: number | null;
  /** Whether its rail has it, as far as the ledger has received. */
  isFollowed: boolean;
  /** Whether its rail has accepted it. */
  isCaptured: boolean;
  rail: RailOutcome["status"] | null;
  recorded: { revision: number; status: TransactionStatus } | null;
  /** Records by revision. */
  readonly written: Map<number, string>;
  /** It was let through, and is not to be sent any more. */
  isWithdrawn: boolean;
  /** Of the ledger's payment, and the newest one whose effects are known to be done. */
  revision: number;
  confirmedRevision: number;
}

/** A decision on a raise, as the ledger must have judged it. */
export interface RaiseModel {
  readonly raiseId: string;
  /** Its place among those of its agent. */
  readonly number: number;
  readonly outcome: "raised" | "raise_not_needed" | "raise_impossible";
  readonly raised: readonly Raised[];
}

export interface Verdict {
  readonly code: string;
  readonly details: DenialDetails | null;
  /** Delay after `details` at which it may still reset. */
  readonly laterMs?: number;
}

/** Thousandths in a cent. */
export const MC = 1_000;

const DAY = 24 * 60 * 60 * 1_000;
export const HOUR = 60 * 60 * 1_000;

const dayOf = (at: number): string => new Date(at).toISOString().split("T")[0] ?? "";
const midnightAfter = (at: number): number => Date.parse(`${dayOf(at + DAY)}T00:00:00.000Z`);
/** Returns the cents that are left, a started cent not counted. */
export const wholeCents = (mc: number): number => (mc < 0 ? 0 : Math.floor(mc / MC));

/** Returns where a payment's money is: on hold until its network has said anything. */
export function moneyOf({ amountMc, books, status }: PaymentModel): Totals {
  if (books.isBooked) return { reservedMc: books.heldMc, spentMc: books.spentMc };
  return { reservedMc: status === "pending" ? amountMc : 0, spentMc: 0 };
}

const totalOf = (payment: PaymentModel): number => {
  const { reservedMc, spentMc } = moneyOf(payment);
  return reservedMc + spentMc;
};

export const countedOn = (payment: PaymentModel, day: string): number => {
  if (payment.books.isBooked) return payment.books.countedOn(day);
  return payment.books.day === day ? totalOf(payment) : 0;
};

/** Statuses that may follow on a status. From an end, only a network brings another. */
const CHANGES: Readonly<Record<string, readonly TransactionStatus[]>> = {
  pending: ["pending", "approved", "denied", "failed", "expired", "reversed"],
  approved: ["approved", "reversed"],
  reversed: ["approved"],
  failed: ["approved", "reversed"],
};

/** Whether a record may follow another, with some missed in between. */
export const mayFollow = (before: TransactionStatus, after: TransactionStatus): boolean =>
  before === after || CHANGES[before]?.includes(after) === true;

/** Steps of a payment on its rail, which its revision counts. */
const stepsOnRail = ({ isFollowed, isOver }: PaymentModel): number => (isOver ? 2 : isFollowed ? 1 : 0);

/** Latest time of a ledger: where its clock has gone back, buckets are as wide as then, also of agents that did not pay. */
export interface LedgerClock {
  latest: number;
}

/**
 * The one book of an agent's account: what its payments, limits and counts must be. Written from the rules and not from the code, in
 * the slowest and plainest way: lists, and sums over them.
 */
export class AccountModel {
  readonly agentId: string;
  readonly teamId: string;
  readonly journal = new EventModel();
  /** Contents of its record, by revision. */
  readonly written = new Map<number, string>();
  readonly byKey = new Map<string, PaymentModel>();
  readonly payments: PaymentModel[] = [];
  /** Amounts of its payments, by when they count in windows. */
  readonly parts = new Map<string, readonly CountedPart[]>();
  name: string;
  /** As it was set; increases are beside it. */
  policy: BudgetPolicy;
  increases: readonly IncreaseModel[] = [];
  newestRaise: RaiseModel | null = null;
  version = 1;
  status: AccountStatus = "active";
  /** The key that may pay, and the revision of the agent's actor that name, key and end are from. */
  keyId: string | null;
  followedRevision = 0;
  /** The newest version of its restrictions that a payment was judged by. */
  rulesVersion = 0;
  /** Keys that a stop has revoked: none of them ever pays again, whatever the agent's actor says of it. */
  readonly stoppedKeys = new Set<string>();
  /** Number of pauses and resumptions. */
  turns = 0;
  /** The highest permit and the highest fence that the ledger gave. */
  #permit = 0;
  #fence = 0;
  spentMc = 0;
  reservedMc = 0;
  /** The newest day, and the newest time, that anything was counted on. */
  #newestDay = "";
  #newestCountedAt = 0;
  readonly #clock: LedgerClock;

  constructor({ agentId, keyId, name, policy, teamId }: NewAccount, clock: LedgerClock) {
    this.#clock = clock;
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
    this.#newestDay = payment.books.day;
  }

  /** A payment's money moves with its status and its books, and with nothing else. `by`: what its revision follows from. */
  change(
    payment: PaymentModel,
    {
      by,
      change,
      now,
    }: { readonly by: "person" | "rail" | "books"; readonly change: () => void; readonly now: number },
  ): void {
    const { status } = payment;
    const [had, ownDay, steps] = [moneyOf(payment), payment.books.day, stepsOnRail(payment)];
    this.#count(payment, -1);
    change();
    this.#count(payment, 1);
    must(mayFollow(status, payment.status), `${payment.id} was ${status} and became ${payment.status}`);
    must(by === "books" || status === "pending" || status === payment.status, `${payment.id} changed twice`);
    if (by === "person") payment.revision += 1;
    else payment.revision += (by === "books" ? 3 : stepsOnRail(payment)) - steps;
    const has = moneyOf(payment);
    const isMoved = had.reservedMc !== has.reservedMc || had.spentMc !== has.spentMc;
    if (isMoved || ownDay !== payment.books.day) this.counted(now);
  }

  #count(payment: PaymentModel, sign: 1 | -1): void {
    const { reservedMc, spentMc } = moneyOf(payment);
    this.reservedMc += sign * reservedMc;
    this.spentMc += sign * spentMc;
  }

  /** Its account was dropped, and came back with what the records say was counted last. */
  cameBack(day: string): void {
    this.#newestDay = day;
  }

  countedSince(since: number): number {
    return countedSince(this.parts.values(), since);
  }

  /** Something was counted now: what comes later is not counted on a day before that. */
  counted(now: number): void {
    this.#newestDay = this.dayOf(now);
  }

  /** Returns the day, which never goes back with the clock. */
  dayOf(now: number): string {
    const today = dayOf(now);
    return this.#newestDay > today ? this.#newestDay : today;
  }

  /** Returns the longest time that a window may count: a bucket more at its end. */
  longestMs(windowMs: number, now: number): number {
    const aheadMs = this.#clock.latest - now;
    if (aheadMs > 0) return windowMs + (aheadMs + windowMs) / 2.5;
    return windowMs * (windowMs <= HOUR ? 1 + 1 / 32 : 1 + 1 / 4);
  }

  countedAt(now: number): number {
    return Math.max(now, this.#newestCountedAt);
  }

  /** Payments that wait for a person. */
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

  /** Withdraws payments of its key that were not sent. */
  withdraw(): void {
    for (const payment of this.inFlight()) payment.isWithdrawn = true;
  }

  get usedMc(): number {
    return this.spentMc + this.reservedMc;
  }

  needsPerson(amountMc: number): boolean {
    const threshold = this.policy.autoApprovalThresholdCents;
    return threshold !== null && (threshold === 0 || amountMc > threshold * MC);
  }

  /** Returns the first objection of the agent's life and own limits to an amount, `own` not counted. */
  verdict(
    amountMc: number,
    now: number,
    {
      hourMs,
      own,
      spend,
      windowsAt,
    }: {
      readonly hourMs: number;
      /** Instant that windows and increases are judged at. */
      readonly windowsAt: number;
      readonly own: PaymentModel | null;
      /** Verdict of its spend limits by period. */
      readonly spend: () => Verdict | null;
    },
  ): Verdict | null {
    if (this.status !== "active") {
      return { code: this.status === "paused" ? "AGENT_PAUSED" : "AGENT_ARCHIVED", details: null };
    }
    return this.#amounts(amountMc, now, own, windowsAt) ?? spend() ?? this.#counts(now, hourMs, own);
  }

  /** Returns the usage that the agent's budget shows. */
  usage(now: number): { todayCents: number; todayCount: number } {
    const today = this.dayOf(now);
    return { todayCents: Math.ceil(this.spentOn(today, null) / MC), todayCount: this.#countOn(today, null) };
  }

  /** Returns how many payments the hour may count: at least its own, at most those of its last bucket, too. */
  hourCounts(now: number): { least: number; most: number } {
    return {
      least: this.#ofHour(now, HOUR, null).length,
      most: this.#ofHour(now, this.longestMs(HOUR, now), null).length,
    };
  }

  #amounts(amountMc: number, now: number, own: PaymentModel | null, at: number): Verdict | null {
    const { budgetCents, dailySpendLimitCents, perTransactionLimitCents: each } = this.policy;
    if (each !== null && amountMc > each * MC) {
      const details = { limit: each, remaining: each, resetsAt: null };
      return { code: "PER_TRANSACTION_LIMIT_EXCEEDED", details };
    }
    const leftMc = budgetCents * MC - this.usedMc + (own?.amountMc ?? 0);
    if (amountMc > leftMc) {
      const details = { limit: budgetCents, remaining: wholeCents(leftMc), resetsAt: null };
      return { code: "BUDGET_EXCEEDED", details };
    }
    if (dailySpendLimitCents === null) return null;
    const daily = dailySpendLimitCents + addedCents(this.increases, "daily_spend", at);
    const leftTodayMc = daily * MC - this.spentOn(this.dayOf(now), own);
    if (amountMc <= leftTodayMc) return null;
    const details = { limit: daily, remaining: wholeCents(leftTodayMc), resetsAt: this.dayEndsAt(now) };
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
      const details = { limit: daily, remaining: 0, resetsAt: this.dayEndsAt(now) };
      return { code: "DAILY_VELOCITY_EXCEEDED", details };
    }
    return null;
  }

  dayEndsAt(now: number): number {
    const day = this.dayOf(now);
    return day > dayOf(now) ? midnightAfter(Date.parse(day)) : midnightAfter(now);
  }

  /**
   * Returns the rules that flag a payment that is not denied, and whether its threshold does, with `windows` as they
   * are set or as long as they may count.
   */
  flags(
    amountMc: number,
    fingerprint: string,
    rules: readonly RuleCheck[],
    { now, windows }: { readonly now: number; readonly windows: "exact" | "longest" },
  ): Set<string> {
    const flags = new Set<string>();
    if (this.needsPerson(amountMc)) flags.add("agent_threshold");
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

  spentOn(day: string, own: PaymentModel | null): number {
    return sum(this.payments.map((payment) => (payment === own ? 0 : countedOn(payment, day))));
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
