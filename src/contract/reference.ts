import type { z } from "zod";

/** Reader of a schema: a model for a tool's schema, a person or generator for the OpenAPI document. */
export type Reader = "model" | "reference";

/**
 * Additions of the API's reference to a schema. Models read their tools' schemas with every call, so those stay short;
 * the OpenAPI document can be exact.
 */
export interface Reference {
  /** JSON Schema keywords added to the schema's own. */
  readonly keywords?: Readonly<Record<string, unknown>>;
  /** Replacement for the schema: the same rules in a form not allowed in tools' arguments, such as a union. */
  readonly instead?: z.ZodType;
  /** The only reader to whom this field is shown, if the field has another name for the other reader. */
  readonly shownTo?: Reader;
}

const references = new WeakMap<z.core.$ZodType, Reference>();

/** Returns a copy of the schema with additions for the reference. Parsing does not change. */
export function referred<T extends z.ZodType>(schema: T, reference: Reference): T {
  const own = schema.clone();
  references.set(own, reference);
  return own;
}

/** Returns the additions for the reference; a derived schema has those of its source. */
export function referenceOf(schema: z.core.$ZodType): Reference {
  const own = references.get(schema);
  const { parent } = schema._zod;
  return own ?? (parent === undefined ? {} : referenceOf(parent));
}

export function isShown(schema: z.core.$ZodType, reader: Reader): boolean {
  const { shownTo } = referenceOf(schema);
  return shownTo === undefined || shownTo === reader;
}
