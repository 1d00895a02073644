import { isSchema, type Schema } from "./fields.ts";

export const COMPONENTS = "#/components/schemas/";

/**
 * The schemas referenced by an OpenAPI document. Each schema with a title is one of them, under that name: generators
 * name types after components.
 */
export class Components {
  readonly #schemas = new Map<string, Schema>();

  /** Throws if two different schemas have one name. */
  add(name: string, schema: Schema): void {
    const known = this.#schemas.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`two different schemas have the name ${name}`);
    }
    this.#schemas.set(name, schema);
  }

  readonly resolve = (reference: string): Schema =>
    this.#schemas.get(reference.slice(COMPONENTS.length)) ?? {};

  all(): Readonly<Record<string, Schema>> {
    return Object.fromEntries(this.#schemas);
  }

  /** Returns the schema with references in place of all titled schemas, including the schema itself. */
  named(given: Schema): Schema {
    const { description, title, ...schema } = this.#partsNamed(given);
    const place = description === undefined ? {} : { description };
    if (typeof title !== "string") return { ...place, ...schema };
    // A place's description, such as a field's, is not the component's.
    this.add(title, this.#withDiscriminator(schema));
    return { $ref: `${COMPONENTS}${title}`, ...place };
  }

  #partsNamed(schema: Schema): Schema {
    const { items, properties } = schema;
    const unions = ["oneOf", "anyOf"].flatMap((key) => {
      const forms = schema[key];
      return Array.isArray(forms) ? [[key, forms.map((form) => this.#namedIn(form))] as const] : [];
    });
    return {
      ...schema,
      ...(isSchema(items) ? { items: this.named(items) } : {}),
      ...(isSchema(properties) ? { properties: mapped(properties, (field) => this.#namedIn(field)) } : {}),
      ...Object.fromEntries(unions),
    };
  }

  #namedIn(part: unknown): unknown {
    return isSchema(part) ? this.named(part) : part;
  }

  /** Adds to a union of components the field whose value discriminates between them. */
  #withDiscriminator(schema: Schema): Schema {
    const { oneOf } = schema;
    if (!Array.isArray(oneOf)) return schema;
    const forms = oneOf.filter(isSchema).map(({ $ref }) => String($ref));
    const [first = {}] = forms.map((reference) => fieldsOf(this.resolve(reference)));
    for (const propertyName of Object.keys(first)) {
      const values = forms.flatMap((reference) =>
        textsOf(fieldsOf(this.resolve(reference))[propertyName]).map((text) => [text, reference] as const),
      );
      const mapping = Object.fromEntries(values);
      const isTold = new Set(Object.values(mapping)).size === forms.length;
      if (isTold && Object.keys(mapping).length === values.length) {
        return { ...schema, discriminator: { propertyName, mapping } };
      }
    }
    return schema;
  }
}

export const mapped = (fields: Schema, change: (field: unknown, name: string) => unknown): Schema =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, change(field, name)]));

const fieldsOf = ({ properties }: Schema): Schema => (isSchema(properties) ? properties : {});

/** Returns the constant texts allowed for a field. */
function textsOf(field: unknown): readonly string[] {
  if (!isSchema(field)) return [];
  const { const: constant, enum: entries } = field;
  const values: readonly unknown[] = Array.isArray(entries) ? entries : [constant];
  return values.filter((value): value is string => typeof value === "string");
}
