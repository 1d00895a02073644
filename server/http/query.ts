import { z } from "zod";
import { innerSchema } from "../../src/contract/tolerance.ts";
import type { ObjectSchema } from "../../src/contract/types.ts";

/** Turns digits into numbers and `true` or `false` into booleans where the schema wants them; all else is left for it to judge. */
export function coerceQuery(schema: ObjectSchema, query: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(
    Object.entries(query).map(([key, value]) => {
      const field = schema.shape[key];
      return [
        key,
        field === undefined || typeof value !== "string" ? value : coerced(innerSchema(field), value),
      ];
    }),
  );
}

function coerced(schema: z.core.$ZodType, text: string): unknown {
  if (schema instanceof z.ZodNumber) return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  const isBoolean = schema instanceof z.ZodBoolean && (text === "true" || text === "false");
  return isBoolean ? text === "true" : text;
}
