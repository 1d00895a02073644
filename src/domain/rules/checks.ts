import { comparedName } from "./compared-name.ts";
import { checkOf, covers, type ReadyRule, type RuleCheck, type RuledFacts } from "./rules.ts";
import type { ZoneOffsets } from "./time-window.ts";

/**
 * What a payment's rules are for the ledger. The server judges what follows from the payment alone (and from the records of
 * settled ones): of those rules only the types that flagged are here. What depends on the agent's other payments or on the
 * time is judged by the project's ledger, with what its check says of it.
 */

/** What goes with a payment to its project's ledger; left out where no rule has anything to say about it. */
export interface PaymentRules {
  /** The project's first, then the team's, each in their order; none that says no more than one before it. */
  readonly checks: readonly RuleCheck[];
  /** The wall clocks of the time windows. */
  readonly zones?: readonly ZoneOffsets[];
  /**
   * When the newest like payment was made that is done with and in the projection, epoch milliseconds; for a ledger that
   * does not remember all of them. It is looked up as of the command's `recordsCheckedThrough`.
   */
  readonly similarAt?: number;
}

/** The facts of a payment that rules look at. */
export interface RuledPayment extends Pick<RuledFacts, "rail" | "amountCents" | "merchantCategory"> {
  readonly recipient: string;
}

/** What the server has found out for the rules of one payment. */
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
  payment: RuledPayment,
  findings: Findings,
): PaymentRules | undefined {
  const timezones: string[] = [];
  const zoneOf = (timezone: string): number => {
    if (!timezones.includes(timezone)) timezones.push(timezone);
    return timezones.indexOf(timezone);
  };
  const facts = { ...payment, comparedName: comparedName(payment.recipient), ...findings };
  const checks: RuleCheck[] = [];
  for (const rule of rules) {
    const check = checkOf(rule, facts, zoneOf);
    if (check !== null && !checks.some((earlier) => covers(earlier, check))) checks.push(check);
  }
  if (checks.length === 0) return undefined;
  return timezones.length === 0 ? { checks } : { checks, zones: timezones.map(findings.offsetsOf) };
}
