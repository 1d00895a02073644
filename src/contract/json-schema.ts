import { z } from "zod";

/** A schema of the contract as JSON Schema, with the records it names kept apart from it. */
export interface NamedJsonSchema {
  readonly schema: Readonly<Record<string, unknown>>;
  /** By the record's name (`Transaction`, `Error`, ...). */
  readonly named: Readonly<Record<string, unknown>>;
}

/**
 * Converts a schema. Its references to named records start with `refPrefix`: `#/$defs/` within one document of JSON
 * Schema, `#/components/schemas/` in an OpenAPI document. What a caller sends is a schema's input; answers have no
 * defaults, so theirs is the same.
 */
export function jsonSchemaOf(schema: z.ZodType, refPrefix: string): NamedJsonSchema {
  const {
    $schema: _dialect,
    $defs = {},
    ...rest
  } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const document: unknown = JSON.parse(
    JSON.stringify({ schema: rest, named: $defs }).replaceAll('"$ref":"#/$defs/', `"$ref":"${refPrefix}`),
  );
  return parts.parse(document);
}

const parts = z.object({
  schema: z.record(z.string(), z.unknown()),
  named: z.record(
    z.string(),
    z.record(z.string(), z.unknown()).transform(({ id: _id, ...rest }) => rest),
  ),
});
