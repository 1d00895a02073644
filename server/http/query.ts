import { z } from "zod";
import type { ObjectSchema } from "../../src/contract/types.ts";

/** Turns digits into numbers where the schema wants one; everything else is left for the schema to judge. */
export function coerceQuery(schema: ObjectSchema, query: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(
    Object.entries(query).map(([key, value]) => {
      const field = schema.shape[key];
      const numeric = typeof value === "string" && /^-?\d{1,15}$/.test(value);
      return [key, numeric && field !== undefined && wantsNumber(field) ? Number(value) : value];
    }),
  );
}

function wantsNumber(schema: z.core.$ZodType): boolean {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) return wantsNumber(schema.unwrap());
  return schema instanceof z.ZodNumber;
}
