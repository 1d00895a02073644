import { PERIODS, type Period } from "./calendar.ts";

/** Increases of limits for a time, which end by themselves. */

/** Limits that begin anew by themselves. A budget or a cap is raised for good: an increase that ends would leave the agent blocked. */
export const WINDOWED_LIMITS = ["daily_spend", ...PERIODS] as const;
export type WindowedLimit = "daily_spend" | Period;

/** A raise of one limit that a person has granted until an instant. */
export interface Increase {
  /** The id of the raise request. */
  readonly id: string;
  readonly limit: WindowedLimit;
  readonly cents: number;
  /** Epoch milliseconds. */
  readonly endsAt: number;
}

/** Increases in force for one agent, team or project. */
export const INCREASES_MAX = 8;
export const INCREASE_MS_MAX = 31 * 86_400_000;

/** A set of limits that can be increased: an agent's policy, or the budget of a team or project. */
export interface Increased {
  /** Left out: there are none. */
  readonly increases?: readonly Increase[];
}

/**
 * The amount of a limit at an instant. Decisions, dry runs, warnings and what people and agents are shown read limits by it alone.
 */
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

/** The field without increases that have ended. */
export const increasesAt = ({ increases }: Increased, at: number): Increased =>
  withIncreases(increases?.filter(({ endsAt }) => endsAt > at));

/** A policy or a budget without increases that have ended. */
export function withoutEnded<T extends Increased>(set: T, at: number): Omit<T, "increases"> & Increased {
  const { increases: _before, ...rest } = set;
  return { ...rest, ...increasesAt(set, at) };
}

/** A policy or a budget as it was set. */
export function withoutIncreases<T extends Increased>({
  increases: _raised,
  ...set
}: T): Omit<T, "increases"> {
  return set;
}

/** The field as it is kept: none at all where there are no increases. */
const withIncreases = (increases: readonly Increase[] | undefined): Increased =>
  increases === undefined || increases.length === 0 ? {} : { increases };

/** Increases that stay when limits are set: setting a limit to another amount, or to none, ends those of it. */
export const keptIncreases = (
  { increases }: Increased,
  before: ReadonlyMap<WindowedLimit, number>,
  after: ReadonlyMap<WindowedLimit, number>,
): Increased => withIncreases(increases?.filter(({ limit }) => before.get(limit) === after.get(limit)));
