import { z } from "zod";
import { isShown, type Reader, referenceOf } from "./reference.ts";

/** A schema of the contract as JSON Schema, with the referenced records kept separately. */
export interface NamedJsonSchema {
  readonly schema: Readonly<Record<string, unknown>>;
  /** Schemas keyed by record name (`Transaction`, `Error`, …). */
  readonly named: Readonly<Record<string, unknown>>;
}

/**
 * Converts a schema to JSON Schema. References to named records start with `refPrefix`: `#/$defs/` within one JSON
 * Schema document, `#/components/schemas/` in an OpenAPI document. Requests use a schema's input; answers have no
 * defaults, so their input equals their output. `reader` decides whether the reference's additions are included.
 */
export function jsonSchemaOf(
  schema: z.ZodType,
  refPrefix: string,
  reader: Reader = "model",
): NamedJsonSchema {
  const {
    $schema: _dialect,
    $defs = {},
    ...rest
  } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ jsonSchema, zodSchema }) => {
      if (reader === "reference") refer(zodSchema, jsonSchema);
      else delete jsonSchema.title;
      hideFields(zodSchema, jsonSchema, reader);
      flattenNullable(jsonSchema);
      if (reader === "reference") nameLongInteger(jsonSchema);
    },
  });
  const document: unknown = JSON.parse(
    JSON.stringify({ schema: rest, named: $defs }).replaceAll(`"$ref":"${DEFS}`, `"$ref":"${refPrefix}`),
  );
  return parts.parse(document);
}

/** Applies the reference's additions to a schema, or replaces the schema by its form for the reference. */
function refer(schema: z.core.$ZodType, json: z.core.JSONSchema.BaseSchema): void {
  const { instead, keywords } = referenceOf(schema);
  if (instead !== undefined) {
    for (const keyword of Object.keys(json)) if (keyword !== "description") delete json[keyword];
    Object.assign(json, jsonSchemaOf(instead, DEFS, "reference").schema);
  }
  Object.assign(json, keywords);
  // Generators treat a constant as an integer only if the type says so.
  if (Number.isInteger(json.const)) json.type = "integer";
}

const INT32_MAX = 2_147_483_647;

/** Generators use 32 bits for an integer without a format. */
function nameLongInteger(json: z.core.JSONSchema.BaseSchema): void {
  const isInteger = [json.type].flat().some((type) => type === "integer");
  const isSmall = typeof json.maximum === "number" && json.maximum <= INT32_MAX;
  if (isInteger && !isSmall) json.format = "int64";
}

function hideFields(schema: z.core.$ZodType, json: z.core.JSONSchema.BaseSchema, reader: Reader): void {
  if (!(schema instanceof z.ZodObject) || json.properties === undefined) return;
  for (const [name, field] of Object.entries(schema.shape)) {
    if (field instanceof z.ZodType && !isShown(field, reader)) delete json.properties[name];
  }
}

/** Prefix of references in the conversion's result. */
const DEFS = "#/$defs/";

/**
 * Rewrites a nullable value as one schema of two types, in place: equivalent to a validator, and safe from clients that
 * drop unions from a tool's input.
 */
function flattenNullable(schema: z.core.JSONSchema.BaseSchema): void {
  const [value, none, ...others] = schema.anyOf ?? [];
  if (typeof value !== "object" || typeof none !== "object" || others.length > 0) return;
  if (none.type !== "null" || typeof value.type !== "string" || value.enum !== undefined) return;
  // A titled schema becomes a component, which excludes null.
  if (value.title !== undefined) return;
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
