import type { BudgetPolicy } from "../ledger/policy.ts";

const SECONDS_PER_DAY = 86_400;

/** Spending limit of an agent's wallet, enforced by the chain: a cap per period. */
export interface SpendingLimit {
  readonly capCents: number;
  /** Length of fixed windows since 1970, so that 86,400 means the UTC day; 0 for the wallet's whole life. */
  readonly periodSeconds: number;
}

/**
 * Returns the limit by which a wallet mirrors a policy: the daily limit if there is one, otherwise the whole budget
 * once. The wallet's spend is part of what the policy counts, so the mirror refuses nothing that the policy allows,
 * except for a payment that is decided on one day and mined on the next, or before its limit was lowered; for those the
 * cap is raised temporarily (activities/rails/wallet).
 */
export function mirroredLimit({ budgetCents, dailySpendLimitCents }: BudgetPolicy): SpendingLimit {
  if (dailySpendLimitCents === null) return { capCents: budgetCents, periodSeconds: 0 };
  return { capCents: Math.min(dailySpendLimitCents, budgetCents), periodSeconds: SECONDS_PER_DAY };
}
