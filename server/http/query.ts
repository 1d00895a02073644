import { z } from "zod";
import { innerSchema } from "../../src/contract/tolerance.ts";
import type { ObjectSchema } from "../../src/contract/types.ts";

/**
 * Converts digits to numbers and `true`/`false` to booleans where the schema expects them. The schema judges everything
 * else.
 */
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
