import { usedOf } from "./caps.ts";
import { limitNow, usesOf, type SpendLimit, type Windows } from "./windows.ts";
import { PERIODS, type PerPeriod, type WindowBounds } from "./calendar.ts";
import { countedInEach, countedOn } from "./counted.ts";
import { moneyOf, type StoredPayment, totalOf } from "./payment.ts";
import { type Account, type Ledger, type Level, levelOf } from "./state.ts";
import { dayResetsAt, spentToday } from "./usage.ts";
import type { LimitUse } from "./thresholds.ts";

const DAY_MS = 86_400_000;

/** All limits of amounts over an account, before a payment becomes something else. `before` null: it is new. */
export function limitUses(
  ledger: Ledger,
  account: Account,
  {
    after,
    before,
    bounds,
    now,
  }: {
    readonly before: StoredPayment | null;
    readonly after: StoredPayment;
    readonly bounds: WindowBounds;
    readonly now: number;
  },
): readonly LimitUse[] {
  const { policy, teamId, usage } = account;
  const addedMc = totalOf(moneyOf(after)) - (before === null ? 0 : totalOf(moneyOf(before)));
  const had = countedInEach(before, bounds);
  const added = countedInEach(after, bounds).map((mc, place) => mc - (had[place] ?? 0));
  const [team, { project }] = [levelOf(ledger, teamId), ledger];
  return [
    {
      level: "agent",
      limit: "budget",
      limitCents: policy.budgetCents,
      usedMc: usedOf(usage),
      addedMc,
      ...NO_WINDOW,
    },
    ...dailyUse(account, before, after, now),
    ...windowUses("agent", policy.spendLimits, usage.windows, bounds, added),
    ...levelUses("team", team, bounds, addedMc, added),
    ...levelUses("project", project, bounds, addedMc, added),
  ];
}

const NO_WINDOW = { startedAt: null, resetsAt: null } as const;

function dailyUse(
  { policy, usage }: Account,
  before: StoredPayment | null,
  after: StoredPayment,
  now: number,
): readonly LimitUse[] {
  if (policy.dailySpendLimitCents === null) return [];
  const { amountMc: usedMc, date } = spentToday(usage, now);
  const resetsAt = dayResetsAt(usage, now);
  return [
    {
      level: "agent",
      limit: "daily_spend",
      limitCents: limitNow({ limitCents: policy.dailySpendLimitCents }, now),
      usedMc,
      addedMc: countedOn(after, date) - (before === null ? 0 : countedOn(before, date)),
      startedAt: resetsAt - DAY_MS,
      resetsAt,
    },
  ];
}

function levelUses(
  level: "team" | "project",
  { cap: { capCents, spendLimits }, totals, windows }: Level,
  bounds: WindowBounds,
  addedMc: number,
  added: PerPeriod,
): readonly LimitUse[] {
  const capUse: readonly LimitUse[] =
    capCents === null
      ? []
      : [{ level, limit: "cap", limitCents: capCents, usedMc: usedOf(totals), addedMc, ...NO_WINDOW }];
  return [...capUse, ...windowUses(level, spendLimits, windows, bounds, added)];
}

const windowUses = (
  level: LimitUse["level"],
  limits: readonly SpendLimit[] | undefined,
  windows: Windows,
  bounds: WindowBounds,
  added: PerPeriod,
): readonly LimitUse[] =>
  limits === undefined
    ? []
    : usesOf(limits, windows, bounds).map(({ period, ...use }) => ({
        ...use,
        level,
        limit: period,
        addedMc: added[PERIODS.indexOf(period)] ?? 0,
      }));
