import { PERIODS, type Period } from "./calendar.ts";

/** Temporary increases of limits, which end by themselves. */

/** Limits that reset by themselves. A temporary raise of a budget or cap would leave the agent blocked. */
export const WINDOWED_LIMITS = ["daily_spend", ...PERIODS] as const;
export type WindowedLimit = "daily_spend" | Period;

/** A raise of one limit that a person has granted until an instant. */
export interface Increase {
  /** Id of the raise request. */
  readonly id: string;
  readonly limit: WindowedLimit;
  readonly cents: number;
  readonly endsAt: number;
}

/** Maximum increases in force for one agent, team or project. */
export const INCREASES_MAX = 8;
export const INCREASE_MS_MAX = 31 * 86_400_000;

/** Limits that can be increased: an agent's policy, or the budget of a team or project. */
export interface Increased {
  /** Missing if there are none. */
  readonly increases?: readonly Increase[];
}

/** Returns a limit's amount at an instant; decisions, dry runs, warnings and displays all read it here. */
export const limitNow = (
  { increases = [] }: Increased,
  limit: WindowedLimit,
  limitCents: number,
  at: number,
): number =>
  increases.reduce(
    (sum, each) => (each.limit === limit && each.endsAt > at ? sum + each.cents : sum),
    limitCents,
  );

/** Returns the field without ended increases. */
export const increasesAt = ({ increases }: Increased, at: number): Increased =>
  withIncreases(increases?.filter(({ endsAt }) => endsAt > at));

/** Returns a policy or a budget without ended increases. */
export function withoutEnded<T extends Increased>(set: T, at: number): Omit<T, "increases"> & Increased {
  const { increases: _before, ...rest } = set;
  return { ...rest, ...increasesAt(set, at) };
}

/** Returns a policy or a budget as it was set. */
export function withoutIncreases<T extends Increased>({
  increases: _raised,
  ...set
}: T): Omit<T, "increases"> {
  return set;
}

/** Returns the stored field, which is missing without increases. */
export const withIncreases = (increases: readonly Increase[] | undefined): Increased =>
  increases === undefined || increases.length === 0 ? {} : { increases };

/** Returns the increases that remain after limits are set: changing or removing a limit ends its own. */
export const keptIncreases = (
  { increases }: Increased,
  before: ReadonlyMap<WindowedLimit, number>,
  after: ReadonlyMap<WindowedLimit, number>,
): Increased => withIncreases(increases?.filter(({ limit }) => before.get(limit) === after.get(limit)));
