import { z } from "zod";
import { UNCODED } from "../domain/rules/restrictions.ts";
import { atMost, categoryCode, recipientName, version } from "./primitives.ts";
import { rail } from "./records.ts";

/** Restrictions of projects, teams and agents in requests and answers. */

const RESTRICTED_MAX = 500;

/** An empty list of permitted values would stop every payment, which is the purpose of pausing. */
const only = <T extends z.ZodType>(item: T) =>
  atMost(RESTRICTED_MAX, item)
    .refine((entries) => entries.length > 0, "must name at least one; to stop all payments, pause the agents")
    .nullable();

const lists = <T extends z.ZodType>(item: T) => ({ only: only(item), never: atMost(RESTRICTED_MAX, item) });

export const restrictions = z
  .strictObject({
    recipients: z.strictObject(lists(recipientName)),
    merchantCategories: z.strictObject({
      ...lists(categoryCode),
      uncoded: z.enum(UNCODED),
    }),
    rails: z.strictObject({ only: only(rail) }),
    version,
  })
  .meta({ id: "Restrictions" });
