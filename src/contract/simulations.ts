import { z } from "zod";
import { EXAMPLES_MAX } from "../domain/simulation/moves.ts";
import { SIDES } from "../domain/simulation/past-payment.ts";
import { cents, timestamp, uuid } from "./primitives.ts";
import { denialCode } from "./records.ts";

/** A replacement that is tried on past payments, and what would have been different. */

const RANGES_DAYS = [7, 30, 90] as const;

export const range = z
  .literal(RANGES_DAYS)
  .default(30)
  .meta({ description: "Days of past payments that are judged." });

const side = z.enum(SIDES);

/** Sums over many payments may be above what one amount can be. */
const sum = z.int().min(0);

export const simulation = z
  .strictObject({
    payments: sum.meta({ description: "Payments that were judged." }),
    unchanged: sum.meta({ description: "Payments with the verdict that they had." }),
    moves: z.array(z.strictObject({ from: side, to: side, count: sum, cents: sum })).meta({
      description:
        "Numbers and amounts of the others. `approved`: without a person; `held`: for a person; `denied`: by a limit " +
        "or a restriction, also when a person had approved it.",
    }),
    examples: z
      .array(
        z.strictObject({
          transactionId: z.string(),
          agentId: uuid,
          createdAt: timestamp,
          recipient: z.string(),
          amountCents: cents,
          from: side,
          to: side,
          denialCode: denialCode
            .nullable()
            .meta({ description: "Code of the denial that it would have, or had." }),
          flaggedByRuleTypes: z.array(z.string()).meta({ description: "Rules that would hold it." }),
        }),
      )
      .meta({ maxItems: EXAMPLES_MAX, description: "The newest of the others." }),
    assumptions: z
      .array(z.string())
      .meta({ description: "Assumptions that the answer rests on, as sentences." }),
  })
  .meta({ id: "Simulation" });
