import type { Rail } from "../agent/payment.ts";
import { type ApprovalRule, type RuleType, WEEKDAYS, comparedName } from "./rules.ts";
import { minutesOf, type TimeWindowCheck, type ZoneOffsets } from "./time-window.ts";

/**
 * What is left of a rule for one payment. The server judges what follows from the payment alone (and from the records of
 * settled ones): of those rules only the types that flagged are here. What depends on the agent's other payments or on the
 * time is judged by the agent's actor, with what this says of it.
 */
export type RuleCheck =
  | { readonly type: Exclude<RuleType, "velocity" | "time_window" | "duplicate"> }
  | { readonly type: "velocity"; readonly count: number; readonly windowSeconds: number }
  | { readonly type: "duplicate"; readonly windowSeconds: number }
  | TimeWindowCheck;

/** What goes with a payment to its agent's actor; left out where no rule has anything to say about it. */
export interface PaymentRules {
  /** The project's first, then the team's, each in their order; none that says no more than one before it. */
  readonly checks: readonly RuleCheck[];
  /** The wall clocks of the time windows. */
  readonly zones?: readonly ZoneOffsets[];
  /**
   * When the newest like payment was made that is done with and in the projection, epoch milliseconds; for an actor that
   * does not remember all of them. It is looked up as of the command's `lookedUpThrough`.
   */
  readonly likeAt?: number;
}

/** The facts of a payment that rules look at. */
export interface RuledPayment {
  readonly rail: Rail;
  readonly recipient: string;
  readonly amountCents: number;
  readonly merchantCategory: string | null;
}

/** What the server has found out for the rules of one payment. */
export interface Findings {
  /** Whether no earlier payment of the agent to the recipient on the rail has settled. */
  readonly isNewRecipient: boolean;
  /** The wall clock of each zone that a time window names. */
  readonly offsetsOf: (timezone: string) => ZoneOffsets;
}

/**
 * The rules of a payment's project and team, in this order, made ready for its agent's actor. Undefined when none is left.
 * Disabled rules are nothing.
 */
export function paymentRules(
  rules: readonly ApprovalRule[],
  payment: RuledPayment,
  findings: Findings,
): PaymentRules | undefined {
  const timezones: string[] = [];
  const zoneOf = (timezone: string): number => {
    if (!timezones.includes(timezone)) timezones.push(timezone);
    return timezones.indexOf(timezone);
  };
  const checks: RuleCheck[] = [];
  for (const rule of rules) {
    const check = rule.enabled ? checkOf(rule, payment, findings.isNewRecipient, zoneOf) : null;
    if (check !== null && !checks.some((earlier) => covers(earlier, check))) checks.push(check);
  }
  if (checks.length === 0) return undefined;
  return timezones.length === 0 ? { checks } : { checks, zones: timezones.map(findings.offsetsOf) };
}

/** What is left of one rule; null when it does not flag the payment, whatever its agent did and whenever it comes. */
function checkOf(
  rule: ApprovalRule,
  payment: RuledPayment,
  isNewRecipient: boolean,
  zoneOf: (timezone: string) => number,
): RuleCheck | null {
  switch (rule.type) {
    case "velocity":
      return { type: rule.type, ...rule.params };
    case "duplicate":
      return { type: rule.type, ...rule.params };
    case "time_window": {
      const { days, from, outside, timezone, to } = rule.params;
      return {
        type: rule.type,
        zone: zoneOf(timezone),
        days: days.map((day) => WEEKDAYS.indexOf(day)).toSorted((a, b) => a - b),
        fromMinutes: minutesOf(from),
        toMinutes: minutesOf(to),
        outside,
      };
    }
    case "new_recipient":
      return isNewRecipient ? { type: rule.type } : null;
    default:
      return flagsPayment(rule, payment) ? { type: rule.type } : null;
  }
}

/** The rules that follow from the payment alone. */
type PaymentOnlyRule = Extract<
  ApprovalRule,
  { type: "amount_above" | "recipient" | "merchant_category" | "rail" }
>;

function flagsPayment(rule: PaymentOnlyRule, payment: RuledPayment): boolean {
  switch (rule.type) {
    case "amount_above":
      return payment.amountCents > rule.params.amountCents;
    case "recipient": {
      const recipient = comparedName(payment.recipient);
      return rule.params.anyOf.some((named) => comparedName(named) === recipient);
    }
    case "merchant_category":
      return payment.merchantCategory !== null && rule.params.anyOf.includes(payment.merchantCategory);
    case "rail":
      return rule.params.anyOf.includes(payment.rail);
  }
}

/** Whether the earlier check flags whenever the later one does, under the same type. */
function covers(earlier: RuleCheck, later: RuleCheck): boolean {
  if (earlier.type === "velocity" && later.type === "velocity") {
    return earlier.count <= later.count && earlier.windowSeconds >= later.windowSeconds;
  }
  if (earlier.type === "duplicate" && later.type === "duplicate") {
    return earlier.windowSeconds >= later.windowSeconds;
  }
  if (earlier.type === "time_window" && later.type === "time_window") return isSameWindow(earlier, later);
  return earlier.type === later.type;
}

const isSameWindow = (one: TimeWindowCheck, other: TimeWindowCheck): boolean =>
  one.zone === other.zone &&
  one.fromMinutes === other.fromMinutes &&
  one.toMinutes === other.toMinutes &&
  one.outside === other.outside &&
  one.days.join() === other.days.join();
