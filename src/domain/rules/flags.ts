import type { PaymentRules } from "./checks.ts";
import { checkFlags, type LedgerFacts, type RuleType } from "./rules.ts";

type PaymentHistory = Pick<LedgerFacts, "countWithin" | "newestSimilarAt">;

/** Returns the types of the rules that flag a payment made now, each once, in the order of the rules. */
export function flaggedTypes(
  rules: Pick<PaymentRules, "checks" | "zones">,
  history: PaymentHistory,
  now: number,
): RuleType[] {
  const facts: LedgerFacts = { ...history, zones: rules.zones, now };
  const flagged = new Set<RuleType>();
  for (const check of rules.checks) {
    if (!flagged.has(check.type) && checkFlags(check, facts)) flagged.add(check.type);
  }
  return [...flagged];
}
