import { type ComparedPayment } from "./checks.ts";
import {
  readyRestrictions,
  RESTRICTION_CODES,
  type RestrictionCode,
  type Restrictions,
} from "./restrictions.ts";
import { type ApprovalRule, readyRules } from "./rules.ts";

/** The parts of a past decision that tell which rules flagged its payment. */
export interface PastDecision {
  readonly outcome: "approved" | "held" | "denied";
  readonly flaggedByRuleTypes: readonly string[];
  readonly wouldHaveFlagged: readonly string[];
}

/**
 * Whether a rule flagged a payment, or in the shadow would have. Decisions record types: of several rules of one type, those
 * that depend on the time or on other payments stay unknown (null), and so do all of a payment that was denied before rules.
 */
export function flaggedThen(
  rule: ApprovalRule,
  all: readonly ApprovalRule[],
  payment: ComparedPayment,
  { flaggedByRuleTypes, outcome, wouldHaveFlagged }: PastDecision,
): boolean | null {
  const isShadow = !rule.enabled && rule.shadow === true;
  if (!rule.enabled && !isShadow) return false;
  if (outcome === "denied") return null;
  if (!(isShadow ? wouldHaveFlagged : flaggedByRuleTypes).includes(rule.type)) return false;
  const alike = all.filter(
    ({ enabled, shadow, type }) => type === rule.type && (isShadow ? !enabled && shadow === true : enabled),
  );
  if (alike.length === 1) return true;
  const [ready] = readyRules([rule]);
  // All rules of new recipients flag together.
  return ready !== undefined && "flags" in ready ? ready.flags({ ...payment, isNewRecipient: true }) : null;
}

/** The first code by which restrictions forbid a payment; null: they allow it. */
export function forbiddenCode(restrictions: Restrictions, payment: ComparedPayment): RestrictionCode | null {
  const { forbids } = readyRestrictions(restrictions);
  return RESTRICTION_CODES.find((code) => forbids[code](payment)) ?? null;
}
