import { mapped } from "./components.ts";
import { isSchema, type Schema } from "./fields.ts";

/** Schemas of bodies in forms from which generators make usable clients. */

/**
 * Returns a request's schema. An optional field has no default, which generators take for a field that is always
 * present. An optional list may be null: generated clients send unset lists as null if permitted, otherwise as empty
 * lists, which would be refused.
 */
export function asSent(schema: Schema): Schema {
  const { properties, required } = schema;
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name);
  return {
    ...schema,
    ...partsOf(schema, asSent),
    ...(isSchema(properties)
      ? {
          properties: mapped(properties, (field, name) =>
            isSchema(field) ? sentField(field, isRequired(name)) : field,
          ),
        }
      : {}),
  };
}

function sentField(field: Schema, isRequired: boolean): Schema {
  const { default: otherwise, ...rest } = asSent(field);
  if (isRequired) return rest;
  const text = typeof rest["description"] === "string" ? rest["description"] : "";
  return {
    ...rest,
    ...(otherwise === undefined
      ? {}
      : { description: `${text} Default: ${JSON.stringify(otherwise)}.`.trim() }),
    ...(rest["type"] === "array" ? { type: ["array", "null"] } : {}),
  };
}

/** Returns an answer's schema, open to later fields. Requests stay closed: unknown fields are refused. */
export function asAnswered(schema: Schema): Schema {
  const { additionalProperties, ...rest } = schema;
  const isClosed = additionalProperties === undefined || additionalProperties === false;
  return { ...rest, ...partsOf(schema, asAnswered), ...(isClosed ? {} : { additionalProperties }) };
}

/** Returns a schema's nested schemas, changed. */
function partsOf(schema: Schema, change: (part: Schema) => Schema): Schema {
  const changed = (part: unknown): unknown => (isSchema(part) ? change(part) : part);
  const { items, properties } = schema;
  const unions = ["anyOf", "oneOf"].flatMap((key) => {
    const forms = schema[key];
    return Array.isArray(forms) ? [[key, forms.map(changed)] as const] : [];
  });
  return {
    ...(isSchema(items) ? { items: change(items) } : {}),
    ...(isSchema(properties) ? { properties: mapped(properties, changed) } : {}),
    ...Object.fromEntries(unions),
  };
}
