import type { BudgetPolicy } from "../ledger/policy.ts";

const SECONDS_PER_DAY = 86_400;

/** Spending limit of an agent's wallet, enforced by the chain: a cap for each period. */
export interface SpendingLimit {
  readonly capCents: number;
  /** Fixed windows of this length since 1970, so 86,400 is the UTC day; 0: the wallet's whole life. */
  readonly periodSeconds: number;
}

/**
 * A policy as its wallet mirrors it: the day's limit where there is one, else the whole budget once. What the wallet
 * spends is part of what the policy counts, so the mirror refuses nothing that the policy allows, but for a payment
 * that is decided on one day and mined on the next, or before its limit was lowered; those get their cap raised for
 * the moment (activities/rails/wallet).
 */
export function mirroredLimit({ budgetCents, dailySpendLimitCents }: BudgetPolicy): SpendingLimit {
  if (dailySpendLimitCents === null) return { capCents: budgetCents, periodSeconds: 0 };
  return { capCents: Math.min(dailySpendLimitCents, budgetCents), periodSeconds: SECONDS_PER_DAY };
}
