import type { Input, Output } from "../../src/client/types.ts";
import { money, number } from "./format.ts";

export type Rule = Output<"getTeamApprovalRules">["rules"][number];
export type SentRules = Input<"setTeamApprovalRules">["body"]["rules"];
export type RuleKind = Rule["type"];

/** A rule on the page: one that is new has no id yet. */
export type Draft = Rule extends infer R
  ? R extends Rule
    ? Omit<R, "id"> & { readonly id: string | null; readonly key: string }
    : never
  : never;

export const KINDS: readonly { readonly value: RuleKind; readonly label: string }[] = [
  { value: "amount_above", label: "Large amount" },
  { value: "new_recipient", label: "New recipient" },
  { value: "recipient", label: "Certain recipients" },
  { value: "merchant_category", label: "Merchant categories" },
  { value: "rail", label: "Way of paying" },
  { value: "velocity", label: "Many payments" },
  { value: "time_window", label: "Time of day" },
  { value: "duplicate", label: "Possible duplicate" },
];

const WORKDAYS = ["mon", "tue", "wed", "thu", "fri"] as const;

/** A new rule of a type, with what most people would begin with. */
export function newRule(type: RuleKind): Draft {
  const common = { id: null, key: crypto.randomUUID(), enabled: true } as const;
  switch (type) {
    case "amount_above":
      return { ...common, type, params: { amountCents: 10_000 } };
    case "new_recipient":
      return { ...common, type, params: {} };
    case "recipient":
    case "merchant_category":
      return { ...common, type, params: { anyOf: [] } };
    case "rail":
      return { ...common, type, params: { anyOf: ["wallet"] } };
    case "velocity":
      return { ...common, type, params: { count: 10, windowSeconds: 3_600 } };
    case "duplicate":
      return { ...common, type, params: { windowSeconds: 86_400 } };
    case "time_window": {
      const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      return {
        ...common,
        type,
        params: { timezone, days: [...WORKDAYS], from: "08:00", to: "18:00", outside: true },
      };
    }
  }
}

/** Whether it can be sent: not while its amount is none. */
export const isComplete = (draft: Draft): boolean =>
  draft.type !== "amount_above" || Number.isSafeInteger(draft.params.amountCents);

export const draftsOf = (rules: readonly Rule[]): readonly Draft[] =>
  rules.map((rule) => ({ ...rule, key: rule.id }));

/** As the service takes them: an id for what is there already, none for what is new. */
export const sentOf = (drafts: readonly Draft[]): SentRules =>
  drafts.map(({ id, key: _key, ...rule }) => (id === null ? rule : { ...rule, id }));

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** `24 hours` as `1 day`. */
export function spanOf(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0 && seconds >= each) ?? UNITS[3];
  const count = seconds / size;
  return count === 1 ? (unit === "hour" ? "an hour" : `a ${unit}`) : `${number(count)} ${unit}s`;
}

const LIST = new Intl.ListFormat(undefined, { type: "disjunction" });
const ALL = new Intl.ListFormat(undefined, { type: "conjunction" });
const listed = (values: readonly string[]): string => (values.length === 0 ? "…" : LIST.format(values));

const DAYS: Readonly<Record<string, string>> = {
  mon: "Monday",
  tue: "Tuesday",
  wed: "Wednesday",
  thu: "Thursday",
  fri: "Friday",
  sat: "Saturday",
  sun: "Sunday",
};
const dayOf = (day: string): string => DAYS[day] ?? day;

/** What a rule does, in a sentence. */
export function sentenceOfRule(rule: Draft): string {
  switch (rule.type) {
    case "amount_above":
      return `A payment above ${isComplete(rule) ? money(rule.params.amountCents) : "…"} waits for a person.`;
    case "new_recipient":
      return "A payment waits for a person until an earlier one of the agent to the same recipient has gone through.";
    case "recipient":
      return `A payment to ${listed(rule.params.anyOf)} waits for a person.`;
    case "merchant_category":
      return `A card payment to a merchant of category ${listed(rule.params.anyOf)} waits for a person.`;
    case "rail":
      return `A payment by ${listed(rule.params.anyOf)} waits for a person.`;
    case "velocity":
      return `An agent’s payment waits for a person when it has made ${number(rule.params.count)} already within ${spanOf(rule.params.windowSeconds)}.`;
    case "duplicate":
      return `A payment waits for a person when the agent has paid the same amount to the same recipient within ${spanOf(rule.params.windowSeconds)}.`;
    case "time_window": {
      const { days, from, outside, timezone, to } = rule.params;
      const where = outside ? "outside of" : "within";
      return `A payment waits for a person ${where} ${from} to ${to} on ${ALL.format(days.map(dayOf))} (${timezone}).`;
    }
  }
}
