import { z } from "zod";

/** Examples of requests and answers, composed of their fields' examples, so that a field looks the same everywhere. */

type Schema = Readonly<Record<string, unknown>>;

/** Returns the schema of a reference. */
export type Resolve = (reference: string) => Schema;

const isSchema = (value: unknown): value is Schema => schema.safeParse(value).success;
const schema = z.record(z.string(), z.unknown());

/** Returns a schema's own example, or one composed from its parts. */
export function exampleOf(given: Schema, resolve: Resolve): unknown {
  const { $ref, const: constant, default: otherwise, examples } = given;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (typeof $ref === "string") return exampleOf(resolve($ref), resolve);
  if (constant !== undefined) return constant;
  if (otherwise !== undefined) return otherwise;
  if (Array.isArray(given["enum"])) return given["enum"][0];
  const [alternative] = alternativesOf(given);
  if (alternative !== undefined)
    return exampleOf({ ...given, oneOf: undefined, anyOf: undefined, ...alternative }, resolve);
  return madeUp(given, resolve);
}

export const alternativesOf = (given: Schema): readonly Schema[] =>
  [given["oneOf"], given["anyOf"]].flatMap((forms) => (Array.isArray(forms) ? forms.filter(isSchema) : []));

function madeUp(given: Schema, resolve: Resolve): unknown {
  const { items, minimum, properties, type } = given;
  const [kind] = Array.isArray(type) ? type : [type];
  if (kind === "object") return objectOf(isSchema(properties) ? properties : {}, resolve);
  if (kind === "array") return isSchema(items) ? [exampleOf(items, resolve)] : [];
  if (kind === "integer" || kind === "number") return typeof minimum === "number" ? Math.max(minimum, 0) : 0;
  if (kind === "boolean") return true;
  if (kind === "string") return "text";
  return null;
}

const objectOf = (properties: Schema, resolve: Resolve): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) =>
      isSchema(property) ? [[name, exampleOf(property, resolve)]] : [],
    ),
  );

interface Example {
  readonly summary?: string;
  readonly value: unknown;
}

export function examplesOf(given: Schema, resolve: Resolve): Readonly<Record<string, Example>> {
  const forms = alternativesOf(given);
  if (forms.length < 2) return { default: { value: exampleOf(given, resolve) } };
  return Object.fromEntries(
    forms.map((form, index) => [
      nameOf(form) ?? `form${String(index + 1)}`,
      { value: exampleOf(form, resolve) },
    ]),
  );
}

/** Returns the value that discriminates one form from the others: the first field with a single value. */
function nameOf({ properties }: Schema): string | null {
  const fields = isSchema(properties) ? Object.values(properties).filter(isSchema) : [];
  const constant = fields.find((field) => typeof field["const"] === "string")?.["const"];
  return typeof constant === "string" ? constant : null;
}
