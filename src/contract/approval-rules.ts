import { z } from "zod";
import { RULE_TYPES, RULE_WINDOW_SECONDS_MAX, type RuleType, WEEKDAYS } from "../domain/rules/rules.ts";
import { atMost, categoryCode, cents, paymentCount, recipientName, version } from "./primitives.ts";
import { rail } from "./records.ts";
import { referred } from "./reference.ts";
import { timezone } from "./timezone.ts";

/** Approval rules in requests and answers. */

export const RULES_MAX = 50;
export const ANY_OF_MAX = 200;

const entries = <T extends z.ZodType>(item: T) =>
  z.array(item).min(1, "must name at least one").meta({ maxItems: ANY_OF_MAX });

/** Entries that are flagged (`anyOf`), or the only ones that are not (`noneOf`). */
const listed = <T extends z.ZodType>(item: T) =>
  z
    .strictObject({ anyOf: entries(item).optional(), noneOf: entries(item).optional() })
    .refine(
      ({ anyOf, noneOf }) => (anyOf === undefined) !== (noneOf === undefined),
      "must have either `anyOf` or `noneOf`",
    );

const windowSeconds = z.int().min(1).max(RULE_WINDOW_SECONDS_MAX);
const time = z.string().regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, "must be HH:MM");
const endTime = z.string().regex(/^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$/, "must be HH:MM, up to 24:00");
const weekday = z.enum(WEEKDAYS).meta({ title: "Weekday" });
const days = z
  .array(weekday)
  .min(1, "must name at least one")
  .refine((named) => new Set(named).size === named.length, "must not name one twice")
  .meta({ maxItems: WEEKDAYS.length, uniqueItems: true });

const window = z.strictObject({
  timezone,
  days: z.array(weekday),
  from: time,
  to: endTime,
  outside: z.boolean(),
});

/** Equal times are refused: they could mean either no time or all day. */
const windowAsSent = window
  .extend({ days, outside: z.boolean().default(true) })
  .refine(({ from, to }) => from !== to, { path: ["to"], message: "must differ from `from`" });

const params = {
  amount_above: z.strictObject({ amountCents: cents }),
  new_recipient: z.strictObject({}),
  recipient: listed(recipientName),
  merchant_category: listed(categoryCode),
  rail: z.strictObject({ anyOf: entries(rail) }),
  velocity: z.strictObject({ count: paymentCount, windowSeconds }),
  duplicate: z.strictObject({ windowSeconds }),
};

/** Fields of every rule. */
interface Common<I extends z.ZodType, E extends z.ZodType> {
  readonly id: I;
  readonly enabled: E;
  /** Suffix of the schemas' names in the reference. */
  readonly name: string;
}

const shadow = z.boolean().optional().meta({
  description:
    "True on a disabled rule: payments say that it `wouldHaveFlagged` them. Ignored on an enabled one.",
});

const oneRule = <T extends RuleType, I extends z.ZodType, E extends z.ZodType, P extends z.ZodType>(
  type: T,
  { enabled, id, name }: Common<I, E>,
  set: P,
) =>
  z
    .strictObject({ id, type: z.literal(type), enabled, shadow, params: set })
    .meta({ title: titleOf(type, name) });

/** Returns the name of a rule's schema: `RailRule` for type `rail`. */
const titleOf = (type: RuleType, name: string): string =>
  type.replaceAll(/(?:^|_)([a-z])/g, (_whole, letter: string) => letter.toUpperCase()) + name;

/** A rule of any type, with the parameters of its type. */
const ruleOf = <I extends z.ZodType, E extends z.ZodType, W extends z.ZodType>(
  common: Common<I, E>,
  timeWindow: W,
) =>
  z
    .discriminatedUnion("type", [
      oneRule("amount_above", common, params.amount_above),
      oneRule("new_recipient", common, params.new_recipient),
      oneRule("recipient", common, params.recipient),
      oneRule("merchant_category", common, params.merchant_category),
      oneRule("rail", common, params.rail),
      oneRule("velocity", common, params.velocity),
      oneRule("time_window", common, timeWindow),
      oneRule("duplicate", common, params.duplicate),
    ])
    .meta({ title: `Approval${common.name}` });

const id = z.string().regex(/^rule_[0-9A-HJKMNP-TV-Z]{26}$/, "must be the id of a rule that is there");

const bareTypes = Object.entries(params)
  .filter(([, { shape }]) => Object.keys(shape).length === 0)
  .map(([type]) => type)
  .join(", ");

/** Description, for models, of the payments that each type holds. */
const HOLDS: Readonly<Record<RuleType, string>> = {
  amount_above: "above params.amountCents",
  new_recipient: "to a recipient not paid before; no params",
  recipient: "to params.anyOf, or to all but params.noneOf",
  merchant_category: "of a code in params.anyOf, or not in params.noneOf",
  rail: "by one of params.anyOf",
  velocity: "more than params.count payments of the agent in params.windowSeconds",
  duplicate: "like an earlier one (recipient, amount) in params.windowSeconds",
  time_window: "at times outside, or inside, of the window in params",
};
const holds = Object.entries(HOLDS)
  .map(([type, what]) => `${type}: ${what}.`)
  .join(" ");

/**
 * All types in one flat shape, since tools do not support unions; the parameters are checked by type afterwards. Only
 * models read these descriptions.
 */
const flatRule = z.strictObject({
  id: z
    .string()
    .max(100)
    .optional()
    .meta({ description: "The id of an existing rule, as it was read; left out for a new one." }),
  type: z.enum(RULE_TYPES).meta({ description: `Which payments it holds. ${holds}` }),
  enabled: z.boolean().default(true).meta({ description: "false: holds nothing." }),
  shadow: z.boolean().optional().meta({ description: "Disabled: only tells." }),
  params: z
    .strictObject({
      amountCents: cents
        .optional()
        .meta({ description: "amount_above: cents; a payment of exactly this amount is not held." }),
      anyOf: atMost(ANY_OF_MAX, z.string().max(1_000)).optional().meta({
        description:
          "recipient: names or addresses. merchant_category: four-digit codes. rail: `card`, `wallet`.",
      }),
      noneOf: atMost(ANY_OF_MAX, z.string().max(1_000))
        .optional()
        .meta({ description: "Instead of anyOf: all but these." }),
      count: paymentCount.optional().meta({ description: "velocity: this many pass, the next one is held." }),
      windowSeconds: windowSeconds
        .optional()
        .meta({ description: "velocity, duplicate: how far back, at most 31 days." }),
      timezone: z.string().max(100).optional().meta({ description: "time_window: such as Europe/Berlin." }),
      days: atMost(WEEKDAYS.length, weekday).optional().meta({
        description: "time_window: weekdays; for a window over midnight the day on which it begins.",
      }),
      from: z.string().max(5).optional().meta({ description: "time_window: HH:MM, inclusive." }),
      to: z.string().max(5).optional().meta({
        description: "time_window: HH:MM up to 24:00, exclusive; earlier than `from`: over midnight.",
      }),
      outside: z.boolean().optional().meta({
        description:
          "time_window: true (the default) holds what is outside the window, false what is inside.",
      }),
    })
    .meta({ description: `The parameters of the type and no others; {} for ${bareTypes}.` }),
});

const sentRule = flatRule.pipe(
  ruleOf({ id: id.optional(), enabled: z.boolean(), name: "RuleInput" }, windowAsSent),
);

/** The rules as shown in the reference: each type with its own parameters. */
const shownRules = z
  .array(ruleOf({ id: id.optional(), enabled: z.boolean().default(true), name: "RuleInput" }, windowAsSent))
  .max(RULES_MAX);

/** Text of each type's parameters, which the flat shape cannot express. */
const paramsByType = Object.entries({ ...params, time_window: window })
  .map(([type, { shape }]) => `${type} {${Object.keys(shape).join(", ")}}`)
  .join("; ");

/** All rules of a container: omitted rules are deleted. Ids are unique. */
export const rulesAsSent = referred(atMost(RULES_MAX, sentRule), { instead: shownRules })
  .superRefine((rules, check) => {
    const seen = new Set<string>();
    rules.forEach((rule, index) => {
      if (rule.id === undefined) return;
      if (seen.has(rule.id)) {
        check.addIssue({ code: "custom", path: [index, "id"], message: "must not name one rule twice" });
      }
      seen.add(rule.id);
    });
  })
  .meta({ description: `Types and their params: ${paramsByType}.` });

export const approvalRule = ruleOf({ id: z.string(), enabled: z.boolean(), name: "Rule" }, window);

/** The current rules of a project or team. */
export const approvalRules = z
  .strictObject({
    rules: z.array(approvalRule),
    version,
  })
  .meta({ id: "ApprovalRules" });
