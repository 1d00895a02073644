import type { BudgetPolicy, DenialDetails } from "../../../src/domain/agent/policy.ts";

/**
 * The rules of decisions.md section 5 a second time, written from the specification and not from the code, in the
 * slowest and plainest way: a list of payments, and sums over it.
 */
export interface BookedPayment {
  readonly id: string;
  readonly amountCents: number;
  readonly createdAt: number;
  readonly payloadHash: string;
  /** Passed policy: sent or held, whatever became of it. */
  readonly accepted: boolean;
  readonly expiresAt: number;
  /** `held` waits for a person, `sent` may be changed by its rail, `over` by nothing. */
  place: "held" | "sent" | "over";
  status: "pending" | "approved" | "denied" | "failed" | "expired" | "reversed";
  /** UTC day its amount counts on. */
  day: string;
}

export interface Verdict {
  readonly code: string;
  readonly details: DenialDetails | null;
}

const DAY = 24 * 60 * 60 * 1_000;
const HOUR = 60 * 60 * 1_000;

export const dayOf = (at: number): string => new Date(at).toISOString().split("T")[0] ?? "";
const midnightAfter = (at: number): number => Date.parse(`${dayOf(at + DAY)}T00:00:00.000Z`);

const cents = (payments: readonly BookedPayment[]): number =>
  payments.reduce((total, payment) => total + payment.amountCents, 0);

export class Book {
  readonly payments = new Map<string, BookedPayment>();
  readonly byKey = new Map<string, BookedPayment>();
  policy: BudgetPolicy;
  version = 1;
  paused = false;

  constructor(policy: BudgetPolicy) {
    this.policy = policy;
  }

  #accepted(except: BookedPayment | null): BookedPayment[] {
    return [...this.payments.values()].filter((payment) => payment.accepted && payment !== except);
  }

  sum(status: "pending" | "approved", except: BookedPayment | null = null): number {
    return cents(this.#accepted(except).filter((payment) => payment.status === status));
  }

  used(except: BookedPayment | null = null): number {
    return this.sum("pending", except) + this.sum("approved", except);
  }

  spentOn(day: string, except: BookedPayment | null = null): number {
    const ofDay = this.#accepted(except).filter((payment) => payment.day === day);
    return cents(ofDay.filter(({ status }) => status === "pending" || status === "approved"));
  }

  countOn(day: string, except: BookedPayment | null = null): number {
    return this.#accepted(except).filter((payment) => dayOf(payment.createdAt) === day).length;
  }

  /** When the payments of the hour that ends now were made, newest first. */
  ofHour(now: number, except: BookedPayment | null = null): number[] {
    return this.#accepted(except)
      .filter((payment) => now - payment.createdAt < HOUR)
      .map((payment) => payment.createdAt)
      .toSorted((a, b) => b - a);
  }

  /** What the agent's lifecycle and limits say to an amount, `own` not counted; the first that fails. */
  verdict(amountCents: number, now: number, own: BookedPayment | null = null): Verdict | null {
    if (this.paused) return { code: "AGENT_PAUSED", details: null };
    return this.#amounts(amountCents, now, own) ?? this.#counts(now, own);
  }

  #amounts(amountCents: number, now: number, own: BookedPayment | null): Verdict | null {
    const { perTransactionLimitCents: each, budgetCents, dailySpendLimitCents: daily } = this.policy;
    if (each !== null && amountCents > each)
      return {
        code: "PER_TRANSACTION_LIMIT_EXCEEDED",
        details: { limit: each, remaining: each, resetsAt: null },
      };
    const left = budgetCents - this.used(own);
    if (amountCents > left)
      return {
        code: "BUDGET_EXCEEDED",
        details: { limit: budgetCents, remaining: left < 0 ? 0 : left, resetsAt: null },
      };
    if (daily === null) return null;
    const leftToday = daily - this.spentOn(dayOf(now), own);
    if (amountCents <= leftToday) return null;
    const remaining = leftToday < 0 ? 0 : leftToday;
    return {
      code: "DAILY_SPEND_LIMIT_EXCEEDED",
      details: { limit: daily, remaining, resetsAt: midnightAfter(now) },
    };
  }

  #counts(now: number, own: BookedPayment | null): Verdict | null {
    const { hourlyVelocityLimit: hourly, dailyVelocityLimit: daily } = this.policy;
    if (hourly !== null && this.ofHour(now, own).length >= hourly) {
      // A later payment has its turn when fewer than the limit are left, and this one counts among them.
      const last = hourly === 0 ? undefined : this.ofHour(now)[hourly - 1];
      const resetsAt = last === undefined ? null : last + HOUR;
      return { code: "HOURLY_VELOCITY_EXCEEDED", details: { limit: hourly, remaining: 0, resetsAt } };
    }
    if (daily !== null && this.countOn(dayOf(now), own) >= daily)
      return {
        code: "DAILY_VELOCITY_EXCEEDED",
        details: { limit: daily, remaining: 0, resetsAt: midnightAfter(now) },
      };
    return null;
  }

  needsApproval(amountCents: number): boolean {
    const threshold = this.policy.autoApprovalThresholdCents;
    return threshold !== null && (threshold === 0 || amountCents > threshold);
  }
}
