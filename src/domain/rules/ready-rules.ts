import type { Rail } from "../ledger/payment.ts";
import { type ApprovalRule, comparedName, WEEKDAYS } from "./rules.ts";
import { minutesOf } from "./time-window.ts";

/** An enabled rule as payments are judged by it: whatever does not depend on the payment is worked out. */
export type ReadyRule =
  | { readonly type: "amount_above"; readonly amountCents: number }
  | { readonly type: "new_recipient" }
  | { readonly type: "recipient"; readonly comparedNames: ReadonlySet<string> }
  | { readonly type: "merchant_category"; readonly categories: ReadonlySet<string> }
  | { readonly type: "rail"; readonly rails: ReadonlySet<Rail> }
  | { readonly type: "velocity"; readonly count: number; readonly windowSeconds: number }
  | { readonly type: "duplicate"; readonly windowSeconds: number }
  | {
      readonly type: "time_window";
      readonly timezone: string;
      /** Places in `WEEKDAYS`, in order. */
      readonly days: readonly number[];
      readonly fromMinutes: number;
      readonly toMinutes: number;
      readonly outside: boolean;
    };

/**
 * The enabled rules of a container, in their order, made ready to judge any number of payments. This is where a long list
 * of names costs something: it is to be done once for each set of rules.
 */
export const readyRules = (rules: readonly ApprovalRule[]): readonly ReadyRule[] =>
  rules.filter(({ enabled }) => enabled).map(readyRule);

function readyRule(rule: ApprovalRule): ReadyRule {
  switch (rule.type) {
    case "amount_above":
      return { type: rule.type, ...rule.params };
    case "velocity":
      return { type: rule.type, ...rule.params };
    case "duplicate":
      return { type: rule.type, ...rule.params };
    case "new_recipient":
      return { type: rule.type };
    case "recipient":
      return { type: rule.type, comparedNames: new Set(rule.params.anyOf.map(comparedName)) };
    case "merchant_category":
      return { type: rule.type, categories: new Set(rule.params.anyOf) };
    case "rail":
      return { type: rule.type, rails: new Set(rule.params.anyOf) };
    case "time_window": {
      const { days, from, outside, timezone, to } = rule.params;
      return {
        type: rule.type,
        timezone,
        days: days.map((day) => WEEKDAYS.indexOf(day)).toSorted((a, b) => a - b),
        fromMinutes: minutesOf(from),
        toMinutes: minutesOf(to),
        outside,
      };
    }
  }
}
