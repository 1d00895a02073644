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
  /** The newest full minute in which anything was counted, in epoch milliseconds; 0: nothing was. */
  readonly at: number;
  /** Amounts in the windows of that instant. */
  readonly mc: PerPeriod;
}

const MINUTE_MS = 60_000;
/** Windows begin at full minutes, and nothing is kept of an instant but those that it is in. */
export const fullMinute = (at: number): number => Math.floor(at / MINUTE_MS) * MINUTE_MS;

export const NO_WINDOWS: Windows = { at: 0, mc: [0, 0, 0, 0, 0] };

/** A limit of what may be spent in a period. */
export interface SpendLimit {
  readonly period: Period;
  readonly limitCents: number;
}

/** Spend limits that one agent, team or project can have. */
export const SPEND_LIMITS_MAX = 4;

/** Spend limits of an agent's policy or of a level's budget, with the increases of them. */
export interface SpendLimits extends Increased {
  /** Left out: there are none. */
  readonly spendLimits?: readonly SpendLimit[];
}

/** The parts of a ledger that tell the time of its windows. */
interface WindowClock {
  readonly calendar: Calendar;
  readonly project: { readonly windows: Pick<Windows, "at"> };
}

/**
 * The windows that something decided now is counted in. They only move forward: where the clock went back, they are those of the
 * newest instant that anything was counted at.
 */
export const boundsNow = ({ calendar, project }: WindowClock, now: number): WindowBounds =>
  windowBounds(calendar, Math.max(now, project.windows.at));

/** The amounts in the windows of `bounds`. */
export const rolled = ({ at, mc }: Windows, bounds: WindowBounds): Windows => ({
  at: fullMinute(bounds.at),
  mc: mc.map((amount, place) => (at >= (bounds.starts[place] ?? 0) ? amount : 0)),
});

/** Windows of an account as of the time of `bounds`; none where nothing in them counts any more. */
export function windowsAsOf(windows: Windows, bounds: WindowBounds): Windows {
  const now = rolled(windows, bounds);
  return now.mc.every((amount) => amount === 0) ? NO_WINDOWS : now;
}

export const plusEach = ({ at, mc }: Windows, added: PerPeriod): Windows => ({
  at,
  mc: mc.map((amount, place) => amount + (added[place] ?? 0)),
});

/** A limit as it is now with its use, and its window. */
export interface SpendLimitUse extends SpendLimit {
  /** The amount that it was set to, without increases. */
  readonly setCents: number;
  readonly usedMc: number;
  readonly startedAt: number;
  readonly resetsAt: number;
}

/** Each limit as it is in the windows of `bounds`, the shortest period first. */
export function usesOf(set: SpendLimits, windows: Windows, bounds: WindowBounds): readonly SpendLimitUse[] {
  const { spendLimits = [] } = set;
  if (spendLimits.length === 0) return [];
  return PERIODS.flatMap((period, place) => {
    const setCents = spendLimits.find((each) => each.period === period)?.limitCents;
    if (setCents === undefined) return [];
    const limitCents = limitNow(set, period, setCents, bounds.at);
    const [startedAt = 0, resetsAt = 0] = [bounds.starts[place], bounds.ends[place]];
    const usedMc = windows.at >= startedAt ? (windows.mc[place] ?? 0) : 0;
    return [{ period, setCents, limitCents, usedMc, startedAt, resetsAt }];
  });
}

/** The limit that has no room for so much more, or null; of several, that of the longest period: only waiting for its end helps. */
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

/** A limit as it is shown: as it was set, with what is left of it now. A started cent counts whole. */
export interface ShownSpendLimit extends SpendLimit {
  readonly usedCents: number;
  readonly remainingCents: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly resetsAt: number;
}

/** Limits as they were set, with the use that is shown: that may be of a later change. A limit that was changed has no increase any more. */
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

/** Each limit's amount, by its period. */
export const amountsOf = ({ spendLimits = [] }: SpendLimits): ReadonlyMap<Period, number> =>
  new Map(spendLimits.map(({ limitCents, period }) => [period, limitCents]));
