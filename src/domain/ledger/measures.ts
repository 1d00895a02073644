import { usedCents } from "../money.ts";
import { BREACH_LIMITS } from "./books.ts";
import { usedOf } from "./caps.ts";
import { limitNow } from "./increases.ts";
import { type SpendLimits, usesOf, type Windows } from "./windows.ts";
import { PERIODS, type WindowBounds } from "./calendar.ts";
import { addedInEach, countedOn } from "./counted.ts";
import { moneyOf, type StoredPayment, totalOf } from "./payment.ts";
import { type Account, type Ledger, type Level, levelOf } from "./state.ts";
import { countToday, countWithinHour, dayResetsAt, spentToday } from "./usage.ts";
import type { LimitUse } from "./thresholds.ts";

const DAY_MS = 86_400_000;

/** A limit on amounts, with its present value and use. */
export type StandingLimit = Omit<LimitUse, "addedMc">;

/** Returns all limits on amounts over an account, except the limit per payment. */
export function standingLimits(
  ledger: Ledger,
  { policy, teamId, usage }: Account,
  bounds: WindowBounds,
  now: number,
): readonly StandingLimit[] {
  const { budgetCents: limitCents } = policy;
  return [
    { level: "agent", limit: "budget", limitCents, usedMc: usedOf(usage), ...NO_WINDOW },
    ...dailyLimit(policy, usage, bounds, now),
    ...windowedLimits("agent", policy, usage.windows, bounds),
    ...levelLimits("team", levelOf(ledger, teamId), bounds),
    ...levelLimits("project", ledger.project, bounds),
  ];
}

const NO_WINDOW = { startedAt: null, resetsAt: null } as const;

function dailyLimit(
  policy: Account["policy"],
  usage: Account["usage"],
  bounds: WindowBounds,
  now: number,
): readonly StandingLimit[] {
  const { dailySpendLimitCents } = policy;
  if (dailySpendLimitCents === null) return [];
  const limitCents = limitNow(policy, "daily_spend", dailySpendLimitCents, bounds.at);
  const resetsAt = dayResetsAt(usage, now);
  const { amountMc: usedMc } = spentToday(usage, now);
  const startedAt = resetsAt - DAY_MS;
  return [{ level: "agent", limit: "daily_spend", limitCents, usedMc, startedAt, resetsAt }];
}

function levelLimits(
  level: "team" | "project",
  { cap, totals, windows }: Level,
  bounds: WindowBounds,
): readonly StandingLimit[] {
  const { capCents: limitCents } = cap;
  const ofCap: readonly StandingLimit[] =
    limitCents === null ? [] : [{ level, limit: "cap", limitCents, usedMc: usedOf(totals), ...NO_WINDOW }];
  return [...ofCap, ...windowedLimits(level, cap, windows, bounds)];
}

const windowedLimits = (
  level: LimitUse["level"],
  set: SpendLimits,
  windows: Windows,
  bounds: WindowBounds,
): readonly StandingLimit[] =>
  usesOf(set, windows, bounds).map(({ period, setCents: _set, ...use }) => ({
    ...use,
    level,
    limit: period,
  }));

export const EXPLAINED_LIMITS = [...BREACH_LIMITS, "hourly_velocity", "daily_velocity"] as const;

/**
 * A limit by which a payment was decided: its value, and its use before the payment, in cents or number of payments.
 */
export type LimitThen = readonly [
  level: LimitUse["level"],
  limit: (typeof EXPLAINED_LIMITS)[number],
  value: number,
  used: number,
];

/** Returns all limits over an account, including `standing`. */
export function limitsThen(
  { policy, usage }: Account,
  standing: readonly StandingLimit[],
  now: number,
): readonly LimitThen[] {
  const { dailyVelocityLimit, hourlyVelocityLimit, perTransactionLimitCents } = policy;
  const own = (limit: LimitThen[1], value: number | null, used: () => number): readonly LimitThen[] =>
    value === null ? [] : [["agent", limit, value, used()]];
  return [
    ...own("per_transaction", perTransactionLimitCents, () => 0),
    ...standing.map(({ level, limit, limitCents, usedMc }): LimitThen => [
      level,
      limit,
      limitCents,
      usedCents(usedMc),
    ]),
    ...own("hourly_velocity", hourlyVelocityLimit, () => countWithinHour(usage, now)),
    ...own("daily_velocity", dailyVelocityLimit, () => countToday(usage, now)),
  ];
}

/** A change of a payment; `before` is null for a new one. */
interface ChangedPayment {
  readonly before: StoredPayment | null;
  readonly after: StoredPayment;
  readonly bounds: WindowBounds;
  readonly now: number;
}

/** Returns all limits on amounts before a payment's change, with the amount that the change adds to each. */
export function limitUses(ledger: Ledger, account: Account, change: ChangedPayment): readonly LimitUse[] {
  const { bounds, now } = change;
  return withAdded(standingLimits(ledger, account, bounds, now), account, change);
}

/** Returns known limits with the amount that a payment's change adds to each. */
export function withAdded(
  standing: readonly StandingLimit[],
  account: Account,
  { after, before, bounds, now }: ChangedPayment,
): readonly LimitUse[] {
  const addedMc = totalOf(moneyOf(after)) - (before === null ? 0 : totalOf(moneyOf(before)));
  const added = addedInEach(before, after, bounds);
  const { date } = spentToday(account.usage, now);
  const addedTo = (limit: LimitUse["limit"]): number => {
    if (limit === "budget" || limit === "cap") return addedMc;
    if (limit === "daily_spend")
      return countedOn(after, date) - (before === null ? 0 : countedOn(before, date));
    return added[PERIODS.indexOf(limit)] ?? 0;
  };
  return standing.map((use) => ({ ...use, addedMc: addedTo(use.limit) }));
}
