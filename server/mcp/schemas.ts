import { z } from "zod";
import { jsonSchemaOf } from "../../src/contract/json-schema.ts";
import type { ToolText } from "../../src/contract/tool-texts/types.ts";
import { definedFields } from "../../src/store/lists.ts";

/** Derives tool schemas from the contract, in the form that models read. */

const DEFS = "#/$defs/";

/** JSON Schema keywords that are inspected here. All others are kept unchanged. */
export interface JsonSchema {
  readonly type?: string | readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly pattern?: string | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly required?: readonly string[] | undefined;
  readonly properties?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly items?: JsonSchema | undefined;
  readonly anyOf?: readonly JsonSchema[] | undefined;
  readonly $ref?: string | undefined;
  readonly [keyword: string]: unknown;
}

export interface InputSchema extends JsonSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly required: string[];
}

/** Output schema of a tool: a success or an error. */
export interface OutputSchema {
  readonly [keyword: string]: unknown;
  readonly type: "object";
  readonly anyOf: readonly [success: JsonSchema, failure: JsonSchema];
}

const jsonSchema: z.ZodType<JsonSchema> = z.lazy(() =>
  z.looseObject({
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: z.string().optional(),
    pattern: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    enum: z.array(z.unknown()).optional(),
    required: z.array(z.string()).optional(),
    properties: z.record(z.string(), jsonSchema).optional(),
    items: jsonSchema.optional(),
    anyOf: z.array(jsonSchema).optional(),
    $ref: z.string().optional(),
  }),
);

/** Length above which a pattern is omitted: a longer one tells a model nothing beyond the argument's text. */
const PATTERN_CHARACTERS_MAX = 40;

/** Bound above which a limit is omitted from an argument's explanation, since no call reaches it. */
const BOUND_MAX = 1e9;

/**
 * Maximum entries of an enumeration in a result's schema. For a longer one the tool's description says what matters.
 */
const RESULT_ENUM_MAX = 4;

/** The field that distinguishes an error from a success. */
const FAILURE: JsonSchema = {
  properties: { error: { type: "string" }, message: { type: "string" } },
  required: ["error", "message"],
};

const pathTo = (path: string, name: string): string => (path === "" ? name : `${path}.${name}`);

/** Returns the schema at a path, in which array entries may be numbered or omitted; null if there is none. */
export function schemaAt(schema: JsonSchema, path: string): JsonSchema | null {
  return path
    .split(".")
    .reduce<JsonSchema | null>((at, name) => (at === null ? null : step(at, name)), schema);
}

function step({ items, properties }: JsonSchema, name: string): JsonSchema | null {
  if (items !== undefined) return /^\d+$/.test(name) ? items : step(items, name);
  return properties !== undefined && Object.hasOwn(properties, name) ? (properties[name] ?? null) : null;
}

/** Throws if a text describes a field that does not exist, since nobody would ever read it. */
function expectThere(schema: JsonSchema, texts: Readonly<Record<string, string>>): void {
  const missing = Object.keys(texts).filter((path) => schemaAt(schema, path) === null);
  if (missing.length > 0) throw new Error(`a text describes unknown fields: ${missing.join(", ")}`);
}

/**
 * Returns a tool's input schema: the contract's, with a text for each argument and with `requires` added. Throws for a
 * text without an argument, so that a mistake prevents startup.
 */
export function inputSchemaOf(
  contracts: z.ZodType,
  requires: readonly string[],
  texts: ToolText["arguments"],
): InputSchema {
  const whole = jsonSchema.parse(jsonSchemaOf(contracts, DEFS).schema);
  expectThere(whole, texts);
  const { properties = {}, required = [], type: _object, ...rest } = described(whole, "", texts);
  return { type: "object", ...rest, properties, required: [...new Set([...required, ...requires])] };
}

function described(schema: JsonSchema, path: string, texts: ToolText["arguments"]): JsonSchema {
  const { description, items, maximum, minimum, pattern, properties, type, ...kept } = schema;
  return definedFields({
    ...kept,
    ...singleType(type),
    minimum: minimum !== undefined && Math.abs(minimum) < BOUND_MAX ? minimum : undefined,
    maximum: maximum !== undefined && Math.abs(maximum) < BOUND_MAX ? maximum : undefined,
    pattern: pattern !== undefined && pattern.length <= PATTERN_CHARACTERS_MAX ? pattern : undefined,
    description: texts[path] ?? description,
    properties: mapped(properties, (part, name) => described(part, pathTo(path, name), texts)),
    items: items === undefined ? undefined : describedItems(items, path, texts),
  });
}

/** Returns a type, or its nullable form as OpenAPI's keyword: some models' APIs refuse a tool with a list of types. */
function singleType(type: JsonSchema["type"]): JsonSchema {
  if (typeof type !== "object") return { type };
  const [value, ...others] = type.filter((each) => each !== "null");
  if (others.length > 0) throw new Error(`a tool's argument has one type, not ${type.join(", ")}`);
  return { type: value, nullable: true };
}

function mapped(
  properties: JsonSchema["properties"],
  change: (schema: JsonSchema, name: string) => JsonSchema,
): JsonSchema["properties"] {
  if (properties === undefined) return undefined;
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, change(schema, name)]));
}

/** Describes an array's items without a description of their own, since the array's text covers them. */
function describedItems(items: JsonSchema, path: string, texts: ToolText["arguments"]): JsonSchema {
  const { description: _arrays, ...rest } = described(items, path, texts);
  return rest;
}

/**
 * Returns a tool's output schema: the fields in `results` and the shape of an error. Further fields are allowed, so
 * that a cached list accepts later versions. Throws for a name that the contract does not have.
 */
export function outputSchemaOf(contracts: z.ZodType, results: ToolText["results"]): OutputSchema {
  const { named, schema } = jsonSchemaOf(contracts, DEFS);
  const whole = resolved(jsonSchema.parse(schema), z.record(z.string(), jsonSchema).parse(named));
  expectThere(whole, results);
  const required = (whole.required ?? []).filter((name) => isShown(name, results));
  const { properties } = shown(whole, "", results);
  return { type: "object", anyOf: [{ properties, required }, FAILURE] };
}

/** Inlines references, and makes null one of a value's types. */
function resolved(schema: JsonSchema, named: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const { $ref, anyOf, items, properties, ...kept } = schema;
  const target = $ref === undefined ? undefined : named[$ref.slice(DEFS.length)];
  if (target !== undefined) return resolved(target, named);
  const value = anyOf?.find(({ type }) => type !== "null");
  if (value !== undefined && anyOf?.length === 2) return orNull(resolved(value, named));
  return definedFields({
    ...kept,
    items: items === undefined ? undefined : resolved(items, named),
    properties: mapped(properties, (part) => resolved(part, named)),
  });
}

function orNull(schema: JsonSchema): JsonSchema {
  const { enum: entries, type } = schema;
  return definedFields({
    ...schema,
    type: typeof type === "string" ? [type, "null"] : type,
    enum: entries === undefined ? undefined : [...entries, null],
  });
}

const isShown = (path: string, results: ToolText["results"]): boolean =>
  Object.keys(results).some((known) => known === path || known.startsWith(`${path}.`));

/** Keeps type, short enumeration and text of the fields in `results`, and of the objects and arrays around them. */
function shown(schema: JsonSchema, path: string, results: ToolText["results"]): JsonSchema {
  const { enum: entries, items, properties = {}, type } = schema;
  const parts = Object.entries(properties).filter(([name]) => isShown(pathTo(path, name), results));
  const text = results[path] ?? "";
  return definedFields({
    type,
    enum: entries !== undefined && entries.length <= RESULT_ENUM_MAX ? entries : undefined,
    description: text === "" ? undefined : text,
    properties: mapped(parts.length === 0 ? undefined : Object.fromEntries(parts), (part, name) =>
      shown(part, pathTo(path, name), results),
    ),
    items: items === undefined ? undefined : shownItems(items, path, results),
  });
}

function shownItems(items: JsonSchema, path: string, results: ToolText["results"]): JsonSchema | undefined {
  const { description: _arrays, ...entry } = shown(items, path, results);
  return Object.keys(entry).length === 0 ? undefined : entry;
}
