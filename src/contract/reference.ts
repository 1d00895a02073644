import type { z } from "zod";

/** Reader of a schema: a model for a tool's schema, a person or generator for the OpenAPI document. */
export type Reader = "model" | "reference";

/**
 * Additions of the API's reference to a schema. Models read their tools' schemas with every call, so those stay
 * short; the OpenAPI document can be exact.
 */
export interface Reference {
  /** Keywords of JSON Schema that go beside those which the schema has by itself. */
  readonly keywords?: Readonly<Record<string, unknown>>;
  /** Shown in the schema's place: the same rules, in a form that tools' arguments can't have, such as a union. */
  readonly instead?: z.ZodType;
  /** The only reader that is told of this field, which has another name for the other one. */
  readonly shownTo?: Reader;
}

const references = new WeakMap<z.core.$ZodType, Reference>();

/** Returns the same schema with additions for the reference. Parsing does not change. */
export function referred<T extends z.ZodType>(schema: T, reference: Reference): T {
  const own = schema.clone();
  references.set(own, reference);
  return own;
}

/** Returns the additions of the reference; a derived schema has those of its source. */
export function referenceOf(schema: z.core.$ZodType): Reference {
  const own = references.get(schema);
  const { parent } = schema._zod;
  return own ?? (parent === undefined ? {} : referenceOf(parent));
}

/** Whether a schema's field is described to a reader. */
export function isShown(schema: z.core.$ZodType, reader: Reader): boolean {
  const { shownTo } = referenceOf(schema);
  return shownTo === undefined || shownTo === reader;
}
