import { z } from "zod";

/**
 * Unavoidable variants of values sent by clients, converted to what the contract's schemas expect. Everything else is
 * left to parsing, so a misspelt field is still refused.
 */

type Schema = z.core.$ZodType;
type Fields = Readonly<Record<string, unknown>>;

/** Returned by a change for a field that counts as omitted. */
const LEFT_OUT = Symbol("left out");

type Change = (field: Schema, value: unknown) => unknown;

/** Omits optional fields that are `null`, at any depth, unless the field's schema accepts null. */
export const withoutNulls = (schema: Schema, value: unknown): unknown => changed(schema, value, omitNull);

/** Fields that agent frameworks add to the arguments of every call; a model cannot remove them. */
const ADDED_BY_CLIENTS: ReadonlySet<string> = new Set([
  "toolCallId",
  "tool_call_id",
  "sessionId",
  "chatInput",
  "action",
  "tool",
]);

/** Returns a tool's arguments without clients' additions, and with integers, lists and objects parsed from text. */
export function toolArguments(schema: z.ZodObject, args: Fields): Fields {
  const own = Object.entries(args).filter(
    ([name]) => Object.hasOwn(schema.shape, name) || !ADDED_BY_CLIENTS.has(name),
  );
  // Built from entries, so that a name like `__proto__` is refused like any other unknown field.
  return changedFields(schema.shape, Object.fromEntries(own), fromText);
}

const WRAPPERS = [z.ZodOptional, z.ZodNonOptional, z.ZodDefault, z.ZodNullable] as const;

/** Unwraps a schema that was made optional, required, nullable or preprocessed. */
export function innerSchema(schema: Schema): Schema {
  for (const wrapper of WRAPPERS) {
    if (schema instanceof wrapper) return innerSchema(schema.unwrap());
  }
  if (schema instanceof z.ZodPipe) {
    return innerSchema(schema.in instanceof z.ZodTransform ? schema.out : schema.in);
  }
  return schema;
}

const takes = (schema: Schema, value: unknown): boolean => z.safeParse(schema, value).success;
const isOptional = (schema: Schema): boolean => takes(schema, undefined);

const omitNull: Change = (field, value) =>
  value === null && isOptional(field) && !takes(field, null) ? LEFT_OUT : value;

const INTEGER = /^(?:0|[1-9][0-9]*)$/;

/**
 * Parses text according to the field's schema. An integer must be unambiguous: without sign, leading zero or spaces.
 */
const fromText: Change = (field, value) => {
  if (typeof value !== "string") return value;
  const inner = innerSchema(field);
  if (inner instanceof z.ZodNumber) return INTEGER.test(value) ? Number(value) : value;
  if (inner instanceof z.ZodArray) return parsed(value, Array.isArray);
  if (inner instanceof z.ZodObject) return parsed(value, isFields);
  const isText = inner instanceof z.ZodString || inner instanceof z.ZodEnum || inner instanceof z.ZodLiteral;
  return value === "" && isText && isOptional(field) ? LEFT_OUT : value;
};

/** Returns the JSON value of a text if it is of the expected kind, else the text. */
function parsed(text: string, isExpected: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isExpected(value) ? value : text;
  } catch {
    return text;
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function changed(schema: Schema, value: unknown, change: Change): unknown {
  const inner = innerSchema(schema);
  if (Array.isArray(value)) {
    return inner instanceof z.ZodArray ? value.map((entry) => changed(inner.element, entry, change)) : value;
  }
  if (!isFields(value)) return value;
  const shape = shapeOf(inner, value);
  return shape === null ? value : changedFields(shape, value, change);
}

function changedFields(shape: Readonly<Record<string, Schema>>, fields: Fields, change: Change): Fields {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, given]) => {
      const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
      if (field === undefined) return [[name, given]];
      const value = change(field, given);
      return value === LEFT_OUT ? [] : [[name, changed(field, value, change)]];
    }),
  );
}

/** Returns an object's possible fields; for a union, those of the option that its discriminator selects. */
function shapeOf(schema: Schema, value: Fields): Readonly<Record<string, Schema>> | null {
  if (schema instanceof z.ZodObject) return schema.shape;
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return null;
  const { discriminator } = schema.def;
  for (const option of schema.options) {
    const shape = shapeOf(option, value);
    const names = shape?.[discriminator];
    if (names !== undefined && takes(names, value[discriminator])) return shape;
  }
  return null;
}
