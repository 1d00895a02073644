import { GLOSSARY } from "./glossary/index.ts";
import type { Note } from "./glossary/notes.ts";

/** Adds the glossary's notes to a schema's fields, where the schema has none of its own. */

export type Schema = Readonly<Record<string, unknown>>;

/**
 * Returns the schema with every field described and single values shown by an example. `owner` is the record, operation
 * or surrounding field, since some names mean different things in different places.
 */
export function annotated(schema: Schema, owner: string): Schema {
  const { items, properties } = schema;
  return {
    ...schema,
    ...(isSchema(properties) ? { properties: fieldsOf(properties, owner) } : {}),
    ...(isSchema(items) ? { items: annotated(items, owner) } : {}),
    ...formsOf(schema, "oneOf", owner),
    ...formsOf(schema, "anyOf", owner),
  };
}

/**
 * Returns a parameter's schema and description. The owner is the preceding path segment: for an id that of the path's
 * subject (`agents.id`), for a query parameter the first segment.
 */
export function annotatedParameter(schema: Schema, name: string, path: string): object {
  const [, , ...segments] = path.split("/");
  const before = segments[segments.indexOf(`:${name}`) - 1] ?? segments[0] ?? "";
  const { description, ...rest } = field(schema, before, name);
  return { ...(description === undefined ? {} : { description }), schema: rest };
}

const fieldsOf = (properties: Schema, owner: string): Schema =>
  Object.fromEntries(
    Object.entries(properties).map(([name, each]) => [
      name,
      isSchema(each) ? field(each, owner, name) : each,
    ]),
  );

function field(schema: Schema, owner: string, name: string): Schema {
  const { description, example }: Partial<Note> = GLOSSARY[`${owner}.${name}`] ?? GLOSSARY[name] ?? {};
  const inner = annotated(schema, name);
  return {
    ...inner,
    ...("description" in inner || description === undefined ? {} : { description }),
    ...(example === undefined || !holdsOneValue(inner) ? {} : { examples: [example] }),
  };
}

/** Whether the field is neither composed of other fields nor one of a few values, which are their own examples. */
const holdsOneValue = (schema: Schema): boolean =>
  ["$ref", "const", "enum", "examples", "properties", "oneOf", "anyOf"].every((key) => !(key in schema)) &&
  !(
    isSchema(schema["items"]) &&
    ("enum" in schema["items"] || "properties" in schema["items"] || "$ref" in schema["items"])
  );

function formsOf(schema: Schema, key: "oneOf" | "anyOf", owner: string): Schema {
  const forms = schema[key];
  return Array.isArray(forms)
    ? { [key]: forms.map((form) => (isSchema(form) ? annotated(form, owner) : form)) }
    : {};
}

export const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
