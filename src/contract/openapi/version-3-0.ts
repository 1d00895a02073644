import type { OpenApiDocument } from "../openapi.ts";
import { mapped } from "./components.ts";
import { isSchema, type Schema } from "./fields.ts";

/** Returns the document as OpenAPI 3.0.3, for tools that do not read 3.1: the same operations and schemas. */
export function openApi30(document: OpenApiDocument): Schema {
  const { components, openapi: _version, ...rest } = document;
  const { schemas, ...others } = components;
  return {
    openapi: "3.0.3",
    ...mapped(rest, converted),
    components: {
      schemas: isSchema(schemas) ? mapped(schemas, (schema) => schemaOf(schema)) : {},
      ...mapped(others, converted),
    },
  };
}

/** Converts everything that is not a schema. The conversion's differences are under the keys named here. */
function converted(value: unknown, key: string): unknown {
  if (key === "schema") return schemaOf(value);
  // In 3.0 only OAuth schemes have scopes; the operation's description names the scope.
  if (key === "security" && Array.isArray(value)) return value.map((each) => mapped({ ...each }, () => []));
  if (key === "examples") return value;
  if (Array.isArray(value)) return value.map((each) => converted(each, ""));
  return isSchema(value) ? mapped(value, converted) : value;
}

/** Returns a schema without lists of types, `const`, lists of examples and keywords beside `$ref`, which 3.0 lacks. */
function schemaOf(given: unknown): unknown {
  if (!isSchema(given)) return given;
  const { $ref, const: constant, examples, ...schema } = given;
  if ($ref !== undefined) {
    const { description } = schema;
    return description === undefined ? { $ref } : { description, allOf: [{ $ref }] };
  }
  return {
    ...partsOf(withoutNull(schema)),
    ...(constant === undefined ? {} : { enum: [constant] }),
    ...(Array.isArray(examples) && examples.length > 0 ? { example: examples[0] as unknown } : {}),
  };
}

/** Replaces null, a type in 3.1, by the keyword `nullable`. */
function withoutNull(schema: Schema): Schema {
  const { anyOf, type, ...rest } = schema;
  if (Array.isArray(type)) {
    const [value, ...more] = type.filter((each) => each !== "null");
    if (more.length > 0) throw new Error(`OpenAPI 3.0 has no union of the types ${type.join(", ")}`);
    return { ...rest, type: value, nullable: true };
  }
  if (!Array.isArray(anyOf) || !anyOf.some(isNull)) return schema;
  const [value, ...more] = anyOf.filter((form) => !isNull(form));
  if (!isSchema(value) || more.length > 0) throw new Error("OpenAPI 3.0 has null beside one schema alone");
  if ("$ref" in value) return { ...rest, allOf: [value], nullable: true };
  const { enum: entries } = value;
  return {
    ...value,
    ...rest,
    nullable: true,
    ...(Array.isArray(entries) ? { enum: [...entries, null] } : {}),
  };
}

const isNull = (form: unknown): boolean => isSchema(form) && form["type"] === "null";

function partsOf(schema: Schema): Schema {
  return mapped(schema, (part, key) => {
    if (key === "properties" && isSchema(part)) return mapped(part, (field) => schemaOf(field));
    if (key === "items") return schemaOf(part);
    const isList = key === "allOf" || key === "anyOf" || key === "oneOf";
    return isList && Array.isArray(part) ? part.map(schemaOf) : part;
  });
}
