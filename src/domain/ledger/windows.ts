import { mcOf, remainingOf, usedCents } from "../money.ts";
import { type Increased, limitNow } from "./increases.ts";
import {
  type Calendar,
  type Period,
  type PerPeriod,
  PERIODS,
  type WindowBounds,
  windowBounds,
} from "./calendar.ts";

/** Amounts in the windows of spend limits, counted whether or not there is a limit. */
export interface Windows {
  /** Newest full minute in which anything was counted, in epoch milliseconds; 0 if nothing was. */
  readonly at: number;
  /** Amounts in the windows of that instant. */
  readonly mc: PerPeriod;
}

const MINUTE_MS = 60_000;
/** Rounds down to a full minute. Windows begin at full minutes, so only an instant's windows have to be stored. */
export const fullMinute = (at: number): number => Math.floor(at / MINUTE_MS) * MINUTE_MS;

export const NO_WINDOWS: Windows = { at: 0, mc: [0, 0, 0, 0, 0] };

/** A limit on the spend in a period. */
export interface SpendLimit {
  readonly period: Period;
  readonly limitCents: number;
}

/** Maximum spend limits of one agent, team or project. */
export const SPEND_LIMITS_MAX = 4;

/** Spend limits of an agent's policy or of a level's budget, with their increases. */
export interface SpendLimits extends Increased {
  /** Shortest period first; missing if there are none. */
  readonly spendLimits?: readonly SpendLimit[];
}

/** Parts of a ledger that determine the time of its windows. */
interface WindowClock {
  readonly calendar: Calendar;
  readonly project: { readonly windows: Pick<Windows, "at"> };
}

/**
 * Returns the windows in which a decision made now is counted. They only move forward: if the clock went back, they are
 * those of the newest counted instant.
 */
export const boundsNow = ({ calendar, project }: WindowClock, now: number): WindowBounds =>
  windowBounds(calendar, Math.max(now, project.windows.at));

/** Returns the amounts in the windows of `bounds`, with what is added to each. */
export const rolled = ({ at, mc }: Windows, bounds: WindowBounds, added: PerPeriod = []): Windows => ({
  at: fullMinute(bounds.at),
  mc: mc.map((amount, place) => (at >= (bounds.starts[place] ?? 0) ? amount : 0) + (added[place] ?? 0)),
});

/** Returns an account's windows as of the time of `bounds`; `NO_WINDOWS` if nothing in them counts any more. */
export function windowsAsOf(windows: Windows, bounds: WindowBounds): Windows {
  const now = rolled(windows, bounds);
  return now.mc.every((amount) => amount === 0) ? NO_WINDOWS : now;
}

export const plusEach = ({ at, mc }: Windows, added: PerPeriod): Windows => ({
  at,
  mc: mc.map((amount, place) => amount + (added[place] ?? 0)),
});

/** A limit with its present amount, use and window. */
export interface SpendLimitUse extends SpendLimit {
  /** Amount as set, without increases. */
  readonly setCents: number;
  readonly usedMc: number;
  readonly startedAt: number;
  readonly resetsAt: number;
}

/** Returns each limit in the windows of `bounds`, shortest period first. */
export function usesOf(set: SpendLimits, windows: Windows, bounds: WindowBounds): readonly SpendLimitUse[] {
  const { spendLimits = [] } = set;
  return spendLimits.map(({ limitCents: setCents, period }) => {
    const place = PERIODS.indexOf(period);
    const limitCents = limitNow(set, period, setCents, bounds.at);
    const [startedAt = 0, resetsAt = 0] = [bounds.starts[place], bounds.ends[place]];
    const usedMc = windows.at >= startedAt ? (windows.mc[place] ?? 0) : 0;
    return { period, setCents, limitCents, usedMc, startedAt, resetsAt };
  });
}

/** Returns the limit without room for an amount, of several that of the longest period; null if it fits. */
export function exceededLimit(
  set: SpendLimits,
  windows: Windows,
  bounds: WindowBounds,
  amountMc: number,
  own: PerPeriod = [],
): SpendLimitUse | null {
  if (set.spendLimits === undefined) return null;
  const ofOthers = ({ period, usedMc }: SpendLimitUse): number =>
    usedMc - (own[PERIODS.indexOf(period)] ?? 0);
  const exceeded = usesOf(set, windows, bounds).findLast(
    (use) => ofOthers(use) + amountMc > mcOf(use.limitCents),
  );
  return exceeded === undefined ? null : { ...exceeded, usedMc: ofOthers(exceeded) };
}

/** A limit as set, with its present remainder. Use is rounded up to whole cents. */
export interface ShownSpendLimit extends SpendLimit {
  readonly usedCents: number;
  readonly remainingCents: number;
  readonly startedAt: number;
  readonly resetsAt: number;
}

/** Returns limits as set, with the displayed use, possibly of a later change. A changed one has no increase. */
export const withUse = <U extends Omit<ShownSpendLimit, "startedAt" | "resetsAt">>(
  limits: readonly SpendLimit[],
  shown: readonly U[],
): U[] =>
  shown.flatMap((use) => {
    const limit = limits.find(({ period }) => period === use.period);
    if (limit === undefined) return [];
    const isChanged = limit.limitCents !== use.limitCents;
    const remainingCents = isChanged ? Math.max(0, limit.limitCents - use.usedCents) : use.remainingCents;
    return [{ ...use, ...limit, remainingCents }];
  });

export const shownLimit = ({ limitCents, setCents, usedMc, ...limit }: SpendLimitUse): ShownSpendLimit => ({
  ...limit,
  limitCents: setCents,
  usedCents: usedCents(usedMc),
  remainingCents: remainingOf(limitCents, usedMc),
});

export const amountsOf = ({ spendLimits = [] }: SpendLimits): ReadonlyMap<Period, number> =>
  new Map(spendLimits.map(({ limitCents, period }) => [period, limitCents]));
