import type { Rail } from "../ledger/payment.ts";
import type { ReadyRule } from "./ready-rules.ts";
import { comparedName, type RuleType } from "./rules.ts";
import type { TimeWindowCheck, ZoneOffsets } from "./time-window.ts";

/**
 * What is left of a rule for one payment. The server judges what follows from the payment alone (and from the records of
 * settled ones): of those rules only the types that flagged are here. What depends on the agent's other payments or on the
 * time is judged by the project's ledger, with what this says of it.
 */
export type RuleCheck =
  | { readonly type: Exclude<RuleType, "velocity" | "time_window" | "duplicate"> }
  | { readonly type: "velocity"; readonly count: number; readonly windowSeconds: number }
  | { readonly type: "duplicate"; readonly windowSeconds: number }
  | TimeWindowCheck;

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

interface Facts extends RuledPayment, Findings {
  /** The recipient as it is compared. */
  readonly comparedName: string;
}

/** What is left of one rule; null when it does not flag the payment, whatever its agent did and whenever it comes. */
function checkOf(rule: ReadyRule, facts: Facts, zoneOf: (timezone: string) => number): RuleCheck | null {
  switch (rule.type) {
    case "velocity":
    case "duplicate":
      return rule;
    case "time_window": {
      const { timezone, type, ...window } = rule;
      return { type, zone: zoneOf(timezone), ...window };
    }
    default:
      return flagsPayment(rule, facts) ? { type: rule.type } : null;
  }
}

/** The rules that follow from the payment, and from the records of settled ones, alone. */
type PaymentOnlyRule = Exclude<ReadyRule, { type: "velocity" | "time_window" | "duplicate" }>;

function flagsPayment(rule: PaymentOnlyRule, facts: Facts): boolean {
  switch (rule.type) {
    case "amount_above":
      return facts.amountCents > rule.amountCents;
    case "new_recipient":
      return facts.isNewRecipient;
    case "recipient":
      return rule.comparedNames.has(facts.comparedName);
    case "merchant_category":
      return facts.merchantCategory !== null && rule.categories.has(facts.merchantCategory);
    case "rail":
      return rule.rails.has(facts.rail);
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
  one.days.length === other.days.length &&
  one.days.every((day, index) => day === other.days[index]);
