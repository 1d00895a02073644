import type { z } from "zod";
import type { BudgetRecord } from "../store/event-records.ts";
import type { budgetWarning, increases as increasesOf, usedSpendLimits } from "../contract/spend-limits.ts";
import type { Increase } from "../domain/ledger/increases.ts";
import type { ShownSpendLimit } from "../domain/ledger/windows.ts";

/** Spend limits in the contract's form. */

const iso = (at: number): string => new Date(at).toISOString();

export type SpendLimitUseView = z.input<typeof usedSpendLimits>[number];

export const spendLimitsView = (limits: readonly ShownSpendLimit[]): SpendLimitUseView[] =>
  limits.map(({ resetsAt, startedAt, ...limit }) => ({
    ...limit,
    startedAt: iso(startedAt),
    resetsAt: iso(resetsAt),
  }));

export const increasesView = (increases: readonly Increase[] = []): z.input<typeof increasesOf> =>
  increases.map(({ endsAt, ...increase }) => ({ ...increase, endsAt: iso(endsAt) }));

/** Returns what is left, without the limits themselves and others' use of them. */
export const spendLimitRestsView = (limits: readonly ShownSpendLimit[]) =>
  spendLimitsView(limits).map(({ period, remainingCents, resetsAt, startedAt }) => ({
    period,
    remainingCents,
    startedAt,
    resetsAt,
  }));

/** Returns a limit that has reached a threshold. */
export function budgetView(budget: BudgetRecord): z.input<typeof budgetWarning> {
  const { level, id, limit, limitCents, percent, resetsAt, startedAt, usedCents } = budget;
  const window = {
    startedAt: startedAt?.toISOString() ?? null,
    resetsAt: resetsAt?.toISOString() ?? null,
  };
  return { level, id, limit, percent, limitCents, usedCents, ...window };
}
