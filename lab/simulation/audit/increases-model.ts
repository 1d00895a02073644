import type { Period } from "../../../src/domain/ledger/calendar.ts";
import type { SpendLimit } from "../../../src/domain/ledger/windows.ts";

/** Increases of limits for a time: each ends by itself, or when its limit is set to another amount. */

export type IncreasedLimit = "daily_spend" | Period;

export interface IncreaseModel {
  readonly id: string;
  readonly limit: IncreasedLimit;
  readonly cents: number;
  readonly endsAt: number;
}

export const activeAt = (increases: readonly IncreaseModel[], at: number): readonly IncreaseModel[] =>
  increases.filter(({ endsAt }) => at < endsAt);

/** Cents added to a limit at an instant. */
export function addedCents(increases: readonly IncreaseModel[], limit: IncreasedLimit, at: number): number {
  let cents = 0;
  for (const each of activeAt(increases, at)) if (each.limit === limit) cents += each.cents;
  return cents;
}

export const limitsAt = (
  limits: readonly SpendLimit[] | undefined,
  increases: readonly IncreaseModel[],
  at: number,
): readonly SpendLimit[] =>
  (limits ?? []).map(({ limitCents, period }) => ({
    period,
    limitCents: limitCents + addedCents(increases, period, at),
  }));

/** Limits that can be increased, with the amounts that they are set to. */
export interface SetLimits {
  readonly dailySpendLimitCents?: number | null;
  readonly spendLimits?: readonly SpendLimit[];
}

const amountOf = ({ dailySpendLimitCents, spendLimits }: SetLimits, limit: IncreasedLimit): number | null =>
  (limit === "daily_spend"
    ? dailySpendLimitCents
    : spendLimits?.find(({ period }) => period === limit)?.limitCents) ?? null;

/** Increases that are left when limits are set. */
export const leftAfter = (
  increases: readonly IncreaseModel[],
  before: SetLimits,
  after: SetLimits,
): readonly IncreaseModel[] =>
  increases.filter(({ limit }) => amountOf(before, limit) === amountOf(after, limit));

/** A policy or a budget as it is shown: increases that have ended may be shown or not. */
export function shownAt<T extends { readonly increases?: readonly IncreaseModel[] }>(set: T, at: number) {
  const { increases = [], ...rest } = set;
  return { ...rest, increases: activeAt(increases, at) };
}
