import { z } from "zod";
import { innerSchema } from "../../src/contract/tolerance.ts";
import type { ObjectSchema } from "../../src/contract/types.ts";

/** Turns digits into numbers where the schema wants one; everything else is left for the schema to judge. */
export function coerceQuery(schema: ObjectSchema, query: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(
    Object.entries(query).map(([key, value]) => {
      const field = schema.shape[key];
      const isDigits = typeof value === "string" && /^-?\d{1,15}$/.test(value);
      const isNumber = isDigits && field !== undefined && innerSchema(field) instanceof z.ZodNumber;
      return [key, isNumber ? Number(value) : value];
    }),
  );
}
