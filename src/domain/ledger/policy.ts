import { mcOf, remainingOf } from "../money.ts";
import { RESTRICTION_CODES } from "../rules/restrictions.ts";
import {
  type Period,
  PERIODS,
  type PerPeriod,
  UTC_CALENDAR,
  type WindowBounds,
  windowBounds,
} from "./calendar.ts";
import { RAIL_FAILURE_CODES } from "./rail-failures.ts";
import type { Usage } from "./usage.ts";
import { countToday, countWithinHour, dayResetsAt, slotFreeAt, spentToday } from "./usage.ts";
import { keptIncreases, limitNow, type WindowedLimit } from "./increases.ts";
import { amountsOf, exceededLimit, type SpendLimit, type SpendLimits, type Windows } from "./windows.ts";

/** An agent's budget policy. `null` means no such limit. */
export interface BudgetPolicy extends SpendLimits {
  readonly budgetCents: number;
  /** 0: every payment needs approval; n: payments above n do; null: none does, within the budget. */
  readonly autoApprovalThresholdCents: number | null;
  readonly perTransactionLimitCents: number | null;
  readonly dailySpendLimitCents: number | null;
  readonly hourlyVelocityLimit: number | null;
  readonly dailyVelocityLimit: number | null;
}

/** A partial policy: a missing field stays, `null` or an empty array clears it. */
export type BudgetPolicyPatch = { readonly [K in keyof Omit<BudgetPolicy, "increases">]?: BudgetPolicy[K] };

const LIMIT_DENIAL_CODES = [
  "PER_TRANSACTION_LIMIT_EXCEEDED",
  "BUDGET_EXCEEDED",
  "DAILY_SPEND_LIMIT_EXCEEDED",
  "SPEND_LIMIT_EXCEEDED",
  "HOURLY_VELOCITY_EXCEEDED",
  "DAILY_VELOCITY_EXCEEDED",
  "TEAM_CAP_EXCEEDED",
  "TEAM_SPEND_LIMIT_EXCEEDED",
  "PROJECT_CAP_EXCEEDED",
  "PROJECT_SPEND_LIMIT_EXCEEDED",
] as const;
export type LimitDenialCode = (typeof LIMIT_DENIAL_CODES)[number];

export const DENIAL_CODES = [
  ...LIMIT_DENIAL_CODES,
  ...RESTRICTION_CODES,
  "AGENT_PAUSED",
  "AGENT_ARCHIVED",
  "APPROVAL_DENIED",
  "APPROVAL_EXPIRED",
  "CANCELLED_BY_AGENT",
  ...RAIL_FAILURE_CODES,
] as const;
export type DenialCode = (typeof DENIAL_CODES)[number];

const POLICY_CODES: ReadonlySet<DenialCode> = new Set<DenialCode>([
  ...LIMIT_DENIAL_CODES,
  ...RESTRICTION_CODES,
]);
/** Whether a limit or a restriction refused the payment. */
export const isPolicyDenial = (code: DenialCode): boolean => POLICY_CODES.has(code);

export interface DenialDetails {
  /** Cents, or a number of payments for velocity limits. */
  readonly limit: number;
  readonly remaining: number;
  /** Epoch milliseconds; null if nothing resets. */
  readonly resetsAt: number | null;
  /** Only of a spend limit. */
  readonly period?: Period;
}

export interface Denial {
  readonly code: DenialCode;
  readonly reason: string;
  /** Null unless a limit denied or failed the payment. */
  readonly details: DenialDetails | null;
}

/** A denial by a limit, with its remaining amount. */
export type LimitDenial = Denial & { readonly code: LimitDenialCode; readonly details: DenialDetails };

/** A held payment's own reservation, which does not count against it when it is checked again. */
interface OwnReservation {
  readonly amountMc: number;
  /** UTC date on which the reservation is counted. */
  readonly day: string;
  readonly countedAt: number;
  /** Part of the reservation in each window. */
  readonly windowsMc?: PerPeriod;
}

export const dollars = (cents: number): string => `${(cents / 100).toFixed(2)} USD`;

export const limitDenial = (
  code: LimitDenialCode,
  reason: string,
  limit: number,
  remaining: number,
  resetsAt: number | null,
): LimitDenial => ({ code, reason, details: { limit, remaining, resetsAt } });

/**
 * Checks the agent's hard limits in the documented order; the first that fails determines the denial. Null if all hold.
 * `own` is the payment's own reservation when it is checked again on approval.
 */
export function checkLimits(
  policy: BudgetPolicy,
  usage: Usage,
  amountMc: number,
  now: number,
  own: OwnReservation | null = null,
  bounds: WindowBounds = windowBounds(UTC_CALENDAR, now),
): Denial | null {
  return (
    checkPerTransaction(policy, amountMc) ??
    checkBudget(policy, usage, amountMc, own) ??
    checkDailySpend(policy, usage, amountMc, now, own, bounds) ??
    checkSpendLimits("agent", policy, usage.windows, bounds, amountMc, own?.windowsMc) ??
    checkHourlyVelocity(policy, usage, now, own) ??
    checkDailyVelocity(policy, usage, now, own)
  );
}

function checkPerTransaction(policy: BudgetPolicy, amountMc: number): Denial | null {
  const limit = policy.perTransactionLimitCents;
  if (limit === null || amountMc <= mcOf(limit)) return null;
  const reason = `The payment is above the limit of ${dollars(limit)} per transaction.`;
  return limitDenial("PER_TRANSACTION_LIMIT_EXCEEDED", reason, limit, limit, null);
}

function checkBudget(
  policy: BudgetPolicy,
  usage: Usage,
  amountMc: number,
  own: OwnReservation | null,
): Denial | null {
  const usedMc = usage.spentMc + usage.reservedMc - (own?.amountMc ?? 0);
  if (usedMc + amountMc <= mcOf(policy.budgetCents)) return null;
  const remaining = remainingOf(policy.budgetCents, usedMc);
  const reason = `The payment exceeds the remaining budget: ${dollars(remaining)} of ${dollars(policy.budgetCents)}.`;
  return limitDenial("BUDGET_EXCEEDED", reason, policy.budgetCents, remaining, null);
}

function checkDailySpend(
  policy: BudgetPolicy,
  usage: Usage,
  amountMc: number,
  now: number,
  own: OwnReservation | null,
  bounds: WindowBounds,
): Denial | null {
  if (policy.dailySpendLimitCents === null) return null;
  const limit = limitNow(policy, "daily_spend", policy.dailySpendLimitCents, bounds.at);
  const today = spentToday(usage, now);
  const ownToday = own !== null && own.day === today.date ? own.amountMc : 0;
  const usedMc = today.amountMc - ownToday;
  if (usedMc + amountMc <= mcOf(limit)) return null;
  const remaining = remainingOf(limit, usedMc);
  const reason = `The payment exceeds what remains for today: ${dollars(remaining)} of ${dollars(limit)}.`;
  return limitDenial("DAILY_SPEND_LIMIT_EXCEEDED", reason, limit, remaining, dayResetsAt(usage, now));
}

const SPEND_LIMIT_CODES = {
  agent: "SPEND_LIMIT_EXCEEDED",
  team: "TEAM_SPEND_LIMIT_EXCEEDED",
  project: "PROJECT_SPEND_LIMIT_EXCEEDED",
} as const;

/**
 * Checks the spend limits of one level. Of several without room, the one with the longest period determines the denial.
 */
export function checkSpendLimits(
  level: keyof typeof SPEND_LIMIT_CODES,
  set: SpendLimits,
  windows: Windows,
  bounds: WindowBounds,
  amountMc: number,
  ownMc?: PerPeriod,
): LimitDenial | null {
  const exceeded = exceededLimit(set, windows, bounds, amountMc, ownMc);
  if (exceeded === null) return null;
  const { limitCents, period, resetsAt, usedMc } = exceeded;
  const remaining = remainingOf(limitCents, usedMc);
  const whose = level === "agent" ? "" : ` for the ${level}`;
  const reason = `The payment exceeds what remains${whose} this ${period}: ${dollars(remaining)} of ${dollars(limitCents)}.`;
  const denial = limitDenial(SPEND_LIMIT_CODES[level], reason, limitCents, remaining, resetsAt);
  return { ...denial, details: { ...denial.details, period } };
}

function checkHourlyVelocity(
  policy: BudgetPolicy,
  usage: Usage,
  now: number,
  own: OwnReservation | null,
): Denial | null {
  const limit = policy.hourlyVelocityLimit;
  if (limit === null) return null;
  const used = countWithinHour(usage, now, own?.countedAt ?? null);
  if (used < limit) return null;
  const reason = `The agent has made its ${limit} payments of the last hour.`;
  return limitDenial("HOURLY_VELOCITY_EXCEEDED", reason, limit, 0, slotFreeAt(usage, limit, now));
}

function checkDailyVelocity(
  policy: BudgetPolicy,
  usage: Usage,
  now: number,
  own: OwnReservation | null,
): Denial | null {
  const limit = policy.dailyVelocityLimit;
  if (limit === null) return null;
  const used = countToday(usage, now, own?.day ?? null);
  if (used < limit) return null;
  const reason = `The agent has made its ${limit} payments of today.`;
  return limitDenial("DAILY_VELOCITY_EXCEEDED", reason, limit, 0, dayResetsAt(usage, now));
}

/** Whether the payment exceeds the agent's own threshold and must wait for a person. */
export function isAboveThreshold(policy: BudgetPolicy, amountMc: number): boolean {
  const threshold = policy.autoApprovalThresholdCents;
  if (threshold === null) return false;
  return threshold === 0 || amountMc > mcOf(threshold);
}

/**
 * Returns the policy after a patch, in which an absent field differs from a null one (`exactOptionalPropertyTypes`).
 */
export function patchPolicy(policy: BudgetPolicy, patch: BudgetPolicyPatch): BudgetPolicy {
  const { increases: _increases, spendLimits, ...patched } = { ...policy, ...patch };
  const after = { ...patched, ...withSpendLimits(spendLimits) };
  return { ...after, ...keptIncreases(policy, windowedOf(policy), windowedOf(after)) };
}

const windowedOf = (policy: BudgetPolicy): ReadonlyMap<WindowedLimit, number> => {
  const { dailySpendLimitCents } = policy;
  const daily = dailySpendLimitCents === null ? [] : [["daily_spend", dailySpendLimitCents] as const];
  return new Map<WindowedLimit, number>([...daily, ...amountsOf(policy)]);
};

/** Returns the stored field: shortest period first, missing without limits. */
export const withSpendLimits = (
  spendLimits: readonly SpendLimit[] | undefined,
): { readonly spendLimits?: readonly SpendLimit[] } =>
  spendLimits === undefined || spendLimits.length === 0
    ? {}
    : { spendLimits: spendLimits.toSorted((one, other) => placeOf(one) - placeOf(other)) };

const placeOf = ({ period }: SpendLimit): number => PERIODS.indexOf(period);
