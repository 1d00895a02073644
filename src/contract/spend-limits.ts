import { z } from "zod";
import { BREACH_LEVELS, BREACH_LIMITS } from "../domain/ledger/books.ts";
import { THRESHOLDS } from "../domain/ledger/thresholds.ts";
import { WINDOWED_LIMITS } from "../domain/ledger/increases.ts";
import { PERIODS } from "../domain/ledger/calendar.ts";
import { SPEND_LIMITS_MAX } from "../domain/ledger/windows.ts";
import { atMost, cents, timestamp } from "./primitives.ts";

/** Spend limits by period in requests and answers. */

export const period = z.enum(PERIODS).meta({ title: "Period" });

const spendLimit = z
  .strictObject({
    period: period.meta({ description: "The period, by the project's calendar." }),
    limitCents: cents.meta({ description: "The maximum spend in it, in cents." }),
  })
  .meta({ title: "SpendLimit" });

const eachPeriodOnce = <T extends z.ZodType<{ readonly period: string }>>(item: T) =>
  atMost(SPEND_LIMITS_MAX, item)
    .refine(
      (limits) => new Set(limits.map(({ period: of }) => of)).size === limits.length,
      "must not name a period twice",
    )
    .meta({ maxItems: SPEND_LIMITS_MAX, description: "Limits by period, each period once; [] removes all." });

export const spendLimits = eachPeriodOnce(spendLimit);

const window = {
  startedAt: timestamp.meta({ description: "Start of what is counted." }),
  resetsAt: timestamp.meta({ description: "When the next window begins." }),
};

/** Sums may exceed the maximum of one amount. */
const usedCents = z.int().min(0);

export const usedSpendLimits = z.array(
  z
    .strictObject({ period, limitCents: cents, usedCents, remainingCents: cents, ...window })
    .meta({ title: "SpendLimitUse" }),
);

const ignored = { description: "As it was read; ignored." };

/** Limits of a budget sent back as read, changed or not. */
export const spendLimitsAsRead = eachPeriodOnce(
  spendLimit
    .extend({
      usedCents: usedCents.optional().meta(ignored),
      remainingCents: cents.optional().meta(ignored),
      startedAt: timestamp.optional().meta(ignored),
      resetsAt: timestamp.optional().meta(ignored),
    })
    .meta({ title: "SpendLimitAsRead" }),
);

/** Temporary raises in force. */
export const increases = z
  .array(
    z
      .strictObject({
        id: z.string().meta({ description: "The id of the raise request." }),
        limit: z
          .enum(WINDOWED_LIMITS)
          .meta({ description: "The raised limit; a spend limit by its period." }),
        cents: cents.meta({ description: "What is added to the limit." }),
        endsAt: timestamp.meta({ description: "When it ends by itself." }),
      })
      .meta({ title: "Increase" }),
  )
  .meta({ description: "Raises that were granted for a time and have not ended." });

const limitName = z.enum(BREACH_LIMITS).meta({ description: "The limit; a spend limit by its period." });
const level = z.enum(BREACH_LEVELS);

/** A limit without room for an amount, as shown to an agent. */
export const lackingLimit = z
  .strictObject({
    level,
    limit: limitName,
    missingCents: cents.meta({ description: "What lacks." }),
    resetsAt: timestamp.nullable().meta({ description: "When its window ends; null: it has none." }),
  })
  .meta({ title: "LackingLimit" });

/** A shortfall as shown to people, with the limit and its use. */
export const shortfall = lackingLimit.extend({ limitCents: cents, usedCents }).meta({ title: "Shortfall" });

/** A limit raised by a grant. */
export const raisedLimit = z
  .strictObject({
    level,
    limit: limitName,
    fromCents: cents,
    toCents: cents,
    endsAt: timestamp.nullable().meta({ description: "When the raise ends; null: it is for good." }),
  })
  .meta({ title: "RaisedLimit" });

/** A limit that has reached a threshold. */
export const budgetWarning = z
  .strictObject({
    level: z.enum(BREACH_LEVELS),
    id: z.string().meta({ description: "The id of the agent, team or project." }),
    limit: z.enum(BREACH_LIMITS).meta({ description: "The limit; a spend limit by its period." }),
    percent: z.literal(THRESHOLDS),
    limitCents: cents,
    usedCents,
    startedAt: timestamp.nullable(),
    resetsAt: timestamp.nullable(),
  })
  .meta({ id: "BudgetWarning" });

/** Remainder of limits whose size an agent is not shown. */
export const spendLimitRests = z.array(
  z.strictObject({ period, remainingCents: cents, ...window }).meta({ title: "SpendLimitRest" }),
);
