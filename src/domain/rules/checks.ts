import { comparedName } from "./compared-name.ts";
import { checkOf, covers, type ReadyRule, type RuleCheck, type RuledFacts } from "./rules.ts";
import { shopNames } from "./shop-hosts.ts";
import type { ZoneOffsets } from "./time-window.ts";

/**
 * Rule inputs of a payment for its ledger. The server judges rules that follow from the payment and from settled
 * records, and sends only the types that flagged. The ledger judges rules that depend on other payments or on time.
 */

/** Rule inputs that are sent with a payment; absent if no rule is relevant. */
export interface PaymentRules {
  /** The project's first, then the team's, each in their order; none that says no more than one before it. */
  readonly checks: readonly RuleCheck[];
  /** Those of rules in the shadow, which hold nothing; left out: there are none. */
  readonly shadow?: readonly RuleCheck[];
  /** The wall clocks of the time windows. */
  readonly zones?: readonly ZoneOffsets[];
  /**
   * Creation time of the newest like payment that is closed and recorded, in epoch milliseconds, for a ledger that
   * has evicted it. Looked up as of the command's `recordsCheckedThrough`.
   */
  readonly similarAt?: number;
}

/** All checks, those of rules in the shadow included. */
export const allChecks = ({ checks, shadow = [] }: PaymentRules): readonly RuleCheck[] => [
  ...checks,
  ...shadow,
];

/** The facts of a payment that rules and restrictions look at. */
export interface RuledPayment extends Pick<RuledFacts, "rail" | "amountMc" | "merchantCategory"> {
  readonly recipient: string;
  /** The URL that is paid for; only of a purchase. */
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
  /** The wall clock of each zone that a time window names. */
  readonly offsetsOf: (timezone: string) => ZoneOffsets;
}

/**
 * The rules of a payment's project and team, in this order, made ready for its project's ledger. Undefined when none is left.
 * What it costs does not grow with how many names, categories or rails the rules list, nor with how long those are.
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
