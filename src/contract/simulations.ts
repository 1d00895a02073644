import { z } from "zod";
import { EXAMPLES_MAX } from "../domain/simulation/moves.ts";
import { SIDES } from "../domain/simulation/past-payment.ts";
import { cents, timestamp, uuid } from "./primitives.ts";
import { denialCode } from "./records.ts";

/** A replacement tried on past payments, and the differences it would have made. */

const RANGES_DAYS = [7, 30, 90] as const;

export const range = z
  .literal(RANGES_DAYS)
  .default(30)
  .meta({ type: "integer", description: "Days of past payments that are judged." });

const side = (description: string) => z.enum(SIDES).meta({ description });
const from = side("The verdict that they had.");
const to = side("The verdict that they would have had.");

/** Sums over many payments may exceed the maximum of one amount. */
const sum = z.int().min(0);

export const simulation = z
  .strictObject({
    payments: sum.meta({ description: "Payments that were judged." }),
    unchanged: sum.meta({ description: "Payments with the verdict that they had." }),
    moves: z
      .array(
        z.strictObject({
          from,
          to,
          count: sum.meta({ description: "Number of payments." }),
          cents: sum.meta({ description: "Their amounts." }),
        }),
      )
      .meta({
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
          from,
          to,
          denialCode: denialCode
            .nullable()
            .meta({ description: "Code of the denial that it would have, or had." }),
          flaggedByRuleTypes: z.array(z.string()).meta({ description: "Rules that would hold it." }),
        }),
      )
      .meta({
        maxItems: EXAMPLES_MAX,
        description: "The newest of the others; none for a key without `agents:read`.",
      }),
    assumptions: z
      .array(z.string())
      .meta({ description: "Assumptions that the answer rests on, as sentences." }),
  })
  .meta({ id: "Simulation" });
