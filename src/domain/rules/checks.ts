import { comparedName } from "./compared-name.ts";
import { checkOf, covers, type ReadyRule, type RuleCheck, type RuledFacts } from "./rules.ts";
import { shopNames } from "./shop-hosts.ts";
import type { ZoneOffsets } from "./time-window.ts";

/**
 * Rule inputs of a payment for its ledger. The server judges rules that depend on the payment and on settled records,
 * and sends only the types that flagged. The ledger judges rules that depend on other payments or on time.
 */

/** Rule inputs sent with a payment; missing if no rule is relevant. */
export interface PaymentRules {
  /** Checks of the project, then of the team, each in their order, without those that an earlier one covers. */
  readonly checks: readonly RuleCheck[];
  /** Checks of shadow rules, which hold nothing; missing if there are none. */
  readonly shadow?: readonly RuleCheck[];
  /** Wall clocks of the time windows. */
  readonly zones?: readonly ZoneOffsets[];
  /**
   * Creation time of the newest similar payment that is closed and recorded, in epoch milliseconds, for a ledger that
   * has evicted it. Looked up as of the command's `recordsCheckedThrough`.
   */
  readonly similarAt?: number;
}

export const allChecks = ({ checks, shadow = [] }: PaymentRules): readonly RuleCheck[] => [
  ...checks,
  ...shadow,
];

/** Facts of a payment that rules and restrictions judge. */
export interface RuledPayment extends Pick<RuledFacts, "rail" | "amountMc" | "merchantCategory"> {
  readonly recipient: string;
  /** URL that is paid for; only of a purchase. */
  readonly resource?: string | undefined;
}

/** Facts of a payment, prepared for rules and restrictions. */
export type ComparedPayment = Omit<RuledFacts, "isNewRecipient">;

export const comparedPayment = ({ recipient, resource, ...payment }: RuledPayment): ComparedPayment => ({
  ...payment,
  comparedName: comparedName(recipient),
  shopNames: resource === undefined ? [] : shopNames(resource),
});

/** Facts that the server looked up for the rules of one payment. */
export interface Findings extends Pick<RuledFacts, "isNewRecipient"> {
  /** Returns the wall clock of a zone that a time window names. */
  readonly offsetsOf: (timezone: string) => ZoneOffsets;
}

/**
 * Prepares the rules of a payment's project and team, in this order, for its project's ledger; undefined if none
 * applies. The cost does not depend on the number or length of the rules' names, categories and rails.
 */
export function paymentRules(
  rules: readonly ReadyRule[],
  payment: ComparedPayment,
  findings: Findings,
): PaymentRules | undefined {
  const timezones: string[] = [];
  const zoneOf = (timezone: string): number => {
    if (!timezones.includes(timezone)) timezones.push(timezone);
    return timezones.indexOf(timezone);
  };
  const facts = { ...payment, ...findings };
  const checks: RuleCheck[] = [];
  const shadow: RuleCheck[] = [];
  for (const rule of rules) {
    const check = checkOf(rule, facts, zoneOf);
    const others = rule.isShadow ? shadow : checks;
    if (check !== null && !others.some((earlier) => covers(earlier, check))) others.push(check);
  }
  if (checks.length + shadow.length === 0) return undefined;
  return {
    checks,
    ...(shadow.length === 0 ? {} : { shadow }),
    ...(timezones.length === 0 ? {} : { zones: timezones.map(findings.offsetsOf) }),
  };
}
