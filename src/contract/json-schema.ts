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
  } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ jsonSchema }) => flattenNullable(jsonSchema),
  });
  const document: unknown = JSON.parse(
    JSON.stringify({ schema: rest, named: $defs }).replaceAll('"$ref":"#/$defs/', `"$ref":"${refPrefix}`),
  );
  return parts.parse(document);
}

/**
 * A value or null as one schema of two types, in place. The same to a validator, and not a union to those that drop
 * unions from a tool's input.
 */
function flattenNullable(schema: z.core.JSONSchema.BaseSchema): void {
  const [value, none, ...others] = schema.anyOf ?? [];
  if (typeof value !== "object" || typeof none !== "object" || others.length > 0) return;
  if (none.type !== "null" || typeof value.type !== "string" || value.enum !== undefined) return;
  delete schema.anyOf;
  Object.assign(schema, { ...value, ...schema, type: [value.type, "null"] });
}

const parts = z.object({
  schema: z.record(z.string(), z.unknown()),
  named: z.record(
    z.string(),
    z.record(z.string(), z.unknown()).transform(({ id: _id, ...rest }) => rest),
  ),
});
