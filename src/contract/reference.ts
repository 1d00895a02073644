import type { z } from "zod";

/** Who reads a schema: a model its tool's, a person or a generator that of the OpenAPI document. */
export type Reader = "model" | "reference";

/**
 * What only the API's reference says of a schema. Models read the schemas of their tools with every call, so those stay
 * short; generators, fuzzers and people read the OpenAPI document, which can be as exact as the service is.
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

/** The same schema, of which the reference says more. What is parsed by it does not change. */
export function referred<T extends z.ZodType>(schema: T, reference: Reference): T {
  const own = schema.clone();
  references.set(own, reference);
  return own;
}

/** What the reference says of a schema besides what it says itself; one that was made of another says the same. */
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
