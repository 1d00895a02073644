import type { RailOutcome, TransactionStatus } from "../../../src/domain/agent/payment.ts";
import type { BudgetPolicy, DenialDetails } from "../../../src/domain/agent/policy.ts";
import type { AgentLifecycle, AgentProfile } from "../../../src/domain/agent/state.ts";
import type { CapAnswer } from "../../../src/domain/budget/report.ts";
import { JournalBook } from "./journal-book.ts";
import { KeyBook } from "./key-book.ts";
import type { KeysAtFirst } from "./observer.ts";

/** A payment as the book has it: what may become of it, in the slowest and plainest way. */
export interface BookedPayment {
  readonly id: string;
  readonly agentId: string;
  readonly payloadHash: string;
  readonly amountCents: number;
  readonly createdAt: number;
  /** The UTC day of that. */
  readonly createdOn: string;
  readonly expiresAt: number;
  /** Whether a person is asked. */
  readonly needsPerson: boolean;
  /** Whether the budget was to be asked when it was decided. */
  readonly isAsked: boolean;
  status: TransactionStatus;
  /** Nothing more can become of it. */
  isOver: boolean;
  /** Passed policy, so that the velocity limits count it. */
  isCounted: boolean;
  /** UTC day its amount counts on. */
  day: string;
  approvedAt: number | null;
  /** What the agent still waits to hear from the budget. */
  ask: "reserve" | "recheck" | null;
  /** What the budget said first. */
  reserveAnswer: CapAnswer | null;
  recheckAnswer: CapAnswer | null;
  /** Whether the caps of team and project count it while it is reserved or spent. */
  isUnderCaps: boolean;
  isCaptured: boolean;
  isReversed: boolean;
  rail: RailOutcome["status"] | "final" | null;
  recorded: { revision: number; status: TransactionStatus } | null;
  /** What was written down under each revision. */
  readonly written: Map<number, string>;
  /** It was let through, and is not to be sent any more. */
  isWithdrawn: boolean;
  /** Whether the agent has heard that something was carried out for it since it is over. */
  isConfirmed: boolean;
  /** As its agent has shown it last. */
  shown: TransactionStatus;
}

export interface Verdict {
  readonly code: string;
  readonly details: DenialDetails | null;
}

const DAY = 24 * 60 * 60 * 1_000;
const HOUR = 60 * 60 * 1_000;

export const dayOf = (at: number): string => new Date(at).toISOString().split("T")[0] ?? "";
const midnightAfter = (at: number): number => Date.parse(`${dayOf(at + DAY)}T00:00:00.000Z`);
const orZero = (cents: number): number => (cents < 0 ? 0 : cents);

export const isMoney = (status: TransactionStatus): boolean => status === "pending" || status === "approved";

/**
 * The one book of an agent, whoever puts commands to it: what its payments, limits, counts, keys and life must be. Written
 * from the rules and not from the code, in the slowest and plainest way: lists, and sums over them.
 */
export class AgentBook {
  readonly agentId: string;
  readonly teamId: string;
  readonly keys: KeyBook;
  readonly journal = new JournalBook();
  readonly byKey = new Map<string, BookedPayment>();
  readonly payments: BookedPayment[] = [];
  policy: BudgetPolicy;
  version = 1;
  lifecycle: AgentLifecycle = "active";
  archivedAt: number | null = null;
  /** Until when some process may begin to send what it has leave to. */
  leaveUntil = 0;
  /** While it is paused: from when on nobody begins to send anything. */
  quietAt: number | null = null;
  #archivedBy: "user" | "organization_key" | null = null;
  isDetached = false;
  name: string;
  /** Of its record, and what the record of this revision shows. */
  revision = 0;
  record = "";
  /** The newest replacement of its team's budget that it has heard of. */
  budgetEpoch = 0;
  /** What the newest replacement of its team's budget said; null: nothing, or a person changed it since. */
  budgetByTeam: number | null = null;
  spentCents = 0;
  reservedCents = 0;
  /** Of both, what the caps count. */
  underCapsCents = 0;

  constructor({ agentId, name, teamId }: AgentProfile, policy: BudgetPolicy, keys: KeysAtFirst) {
    this.agentId = agentId;
    this.teamId = teamId;
    this.name = name;
    this.policy = policy;
    this.keys = new KeyBook(keys);
  }

  add(payment: BookedPayment, keyHash: string): void {
    this.byKey.set(keyHash, payment);
    this.payments.push(payment);
    this.#count(payment, 1);
  }

  /** A payment's money moves with its status, and with nothing else. */
  change(payment: BookedPayment, change: Partial<BookedPayment>): void {
    this.#count(payment, -1);
    Object.assign(payment, change);
    this.#count(payment, 1);
  }

  #count({ amountCents, isUnderCaps, status }: BookedPayment, sign: 1 | -1): void {
    if (status === "pending") this.reservedCents += sign * amountCents;
    if (status === "approved") this.spentCents += sign * amountCents;
    if (isMoney(status) && isUnderCaps) this.underCapsCents += sign * amountCents;
  }

  /** Who waits for a person. */
  held(): BookedPayment[] {
    return this.payments.filter(isHeld);
  }

  /** Decided and not over, and no person is to be asked. */
  onTheirWay(): BookedPayment[] {
    return this.payments.filter((one) => one.status === "pending" && !one.isOver && !isHeld(one));
  }

  /** What its key has asked for, and was not sent, is not to be sent any more. */
  withdraw(): void {
    for (const payment of this.onTheirWay()) payment.isWithdrawn = true;
  }

  get usedCents(): number {
    return this.spentCents + this.reservedCents;
  }

  /** By anybody, for anything: a request with its key, or a payment. */
  wasUsed(): boolean {
    return this.keys.authenticatedAt !== null || this.payments.length > 0;
  }

  isArchivedByMachine(): boolean {
    return this.#archivedBy === "organization_key";
  }

  archive(by: "user" | "organization_key", now: number): void {
    this.lifecycle = "archived";
    this.#archivedBy = by;
    this.archivedAt = now;
    this.keys.die();
    this.journal.happened("agent.archived", now);
  }

  needsPerson(amountCents: number): boolean {
    const threshold = this.policy.autoApprovalThresholdCents;
    return threshold !== null && (threshold === 0 || amountCents > threshold);
  }

  /** What the agent's life and its own limits say to an amount, `own` not counted; the first that fails. */
  verdict(amountCents: number, now: number, own: BookedPayment | null = null): Verdict | null {
    if (this.lifecycle !== "active") {
      return { code: this.lifecycle === "paused" ? "AGENT_PAUSED" : "AGENT_ARCHIVED", details: null };
    }
    return this.#amounts(amountCents, now, own) ?? this.#counts(now, own);
  }

  /** What the agent's budget shows. */
  usage(now: number): { todayCents: number; todayCount: number; lastHourCount: number } {
    const today = dayOf(now);
    return {
      todayCents: this.#spentOn(today, null),
      todayCount: this.#countOn(today, null),
      lastHourCount: this.#ofHour(now, null).length,
    };
  }

  #amounts(amountCents: number, now: number, own: BookedPayment | null): Verdict | null {
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
    const leftToday = daily - this.#spentOn(dayOf(now), own);
    if (amountCents <= leftToday) return null;
    const details = { limit: daily, remaining: orZero(leftToday), resetsAt: midnightAfter(now) };
    return { code: "DAILY_SPEND_LIMIT_EXCEEDED", details };
  }

  #counts(now: number, own: BookedPayment | null): Verdict | null {
    const { dailyVelocityLimit: daily, hourlyVelocityLimit: hourly } = this.policy;
    if (hourly !== null && this.#ofHour(now, own).length >= hourly) {
      // A later payment has its turn when fewer than the limit are left, and this one counts among them.
      const last = hourly === 0 ? undefined : this.#ofHour(now, null)[hourly - 1];
      const resetsAt = last === undefined ? null : last + HOUR;
      return { code: "HOURLY_VELOCITY_EXCEEDED", details: { limit: hourly, remaining: 0, resetsAt } };
    }
    if (daily !== null && this.#countOn(dayOf(now), own) >= daily) {
      const details = { limit: daily, remaining: 0, resetsAt: midnightAfter(now) };
      return { code: "DAILY_VELOCITY_EXCEEDED", details };
    }
    return null;
  }

  #spentOn(day: string, own: BookedPayment | null): number {
    let cents = 0;
    for (const payment of this.payments) {
      if (payment !== own && payment.day === day && isMoney(payment.status)) cents += payment.amountCents;
    }
    return cents;
  }

  #countOn(day: string, own: BookedPayment | null): number {
    return this.payments.filter((one) => one !== own && one.isCounted && one.createdOn === day).length;
  }

  /** When the payments of the hour that ends now were made, newest first. */
  #ofHour(now: number, own: BookedPayment | null): number[] {
    return this.payments
      .filter((one) => now - one.createdAt < HOUR && one !== own && one.isCounted)
      .map(({ createdAt }) => createdAt)
      .toSorted((a, b) => b - a);
  }
}

export const isHeld = ({ approvedAt, isOver, needsPerson }: BookedPayment): boolean =>
  needsPerson && approvedAt === null && !isOver;
