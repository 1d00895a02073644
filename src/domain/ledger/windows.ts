import { mcOf, remainingOf, usedCents } from "../money.ts";
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

/** The amount of a limit at an instant. Decisions, dry runs, warnings and what people and agents are shown read limits by it alone. */
export const limitNow = ({ limitCents }: { readonly limitCents: number }, _at: number): number => limitCents;

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

/** A limit with its use, and its window. */
export interface SpendLimitUse extends SpendLimit {
  readonly usedMc: number;
  readonly startedAt: number;
  readonly resetsAt: number;
}

/** Each limit as it is in the windows of `bounds`, the shortest period first. */
export function usesOf(
  limits: readonly SpendLimit[],
  windows: Windows,
  bounds: WindowBounds,
): readonly SpendLimitUse[] {
  const { mc } = rolled(windows, bounds);
  return PERIODS.flatMap((period, place) => {
    const limit = limits.find((each) => each.period === period);
    if (limit === undefined) return [];
    const [usedMc = 0, startedAt = 0, resetsAt = 0] = [mc[place], bounds.starts[place], bounds.ends[place]];
    return [{ period, limitCents: limitNow(limit, bounds.at), usedMc, startedAt, resetsAt }];
  });
}

/** The limit that has no room for so much more, or null; of several, that of the longest period: only waiting for its end helps. */
export function exceededLimit(
  limits: readonly SpendLimit[] | undefined,
  windows: Windows,
  bounds: WindowBounds,
  amountMc: number,
  own: PerPeriod = [],
): SpendLimitUse | null {
  if (limits === undefined) return null;
  const ofOthers = usesOf(limits, windows, bounds).map((use) => ({
    ...use,
    usedMc: use.usedMc - (own[PERIODS.indexOf(use.period)] ?? 0),
  }));
  return ofOthers.findLast(({ limitCents, usedMc }) => usedMc + amountMc > mcOf(limitCents)) ?? null;
}

/** A limit as it is shown: a started cent counts whole. */
export interface ShownSpendLimit extends SpendLimit {
  readonly usedCents: number;
  readonly remainingCents: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly resetsAt: number;
}

/** Limits as they were set, with the use that is shown: that may be of a later change. */
export const withUse = <U extends Omit<ShownSpendLimit, "startedAt" | "resetsAt">>(
  limits: readonly SpendLimit[],
  shown: readonly U[],
): U[] =>
  shown.flatMap((use) => {
    const limit = limits.find(({ period }) => period === use.period);
    if (limit === undefined) return [];
    return [{ ...use, ...limit, remainingCents: Math.max(0, limit.limitCents - use.usedCents) }];
  });

export const shownLimit = ({ usedMc, ...limit }: SpendLimitUse): ShownSpendLimit => ({
  ...limit,
  usedCents: usedCents(usedMc),
  remainingCents: remainingOf(limit.limitCents, usedMc),
});
