import addFormatsModule from "ajv-formats";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { expect } from "chai";
import { z } from "zod";
import { openApiDocument } from "../../src/contract/openapi.ts";
import { openApi30 } from "../../src/contract/openapi/version-3-0.ts";
import { errorCodesOf } from "../../src/contract/openapi/errors.ts";
import { GLOSSARY_PARTS } from "../../src/contract/openapi/glossary/index.ts";
import { operationList } from "../../src/contract/registry.ts";
import { ERRORS } from "../../src/domain/errors.ts";

const document = openApiDocument("https://spend.example.com", "1.2.3");

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const media = z.object({ schema: z.looseObject({}), examples: z.record(z.string(), z.looseObject({})) });
const body = z.object({ content: z.record(z.string(), media) });
const response = z.union([z.strictObject({ $ref: z.string() }), body, z.object({ description: z.string() })]);
const entry = z.object({
  operationId: z.string(),
  parameters: z.array(z.looseObject({ name: z.string(), schema: z.looseObject({}) })).default([]),
  requestBody: body.extend({ required: z.boolean() }).optional(),
  responses: z.record(z.string(), response),
});
const components = z.object({
  schemas: z.record(z.string(), z.looseObject({})),
  responses: z.record(z.string(), body),
  examples: z.record(z.string(), z.object({ value: z.looseObject({ error: z.string() }) })),
});

const parts = components.parse(document.components);
const entries = Object.values(document.paths).flatMap((methods) =>
  Object.values(methods).map((each) => entry.parse(each)),
);

/** Formats of the document's own, which a checker of formats need not know; what they ask for is tested where it is judged. */
const OWN_FORMATS = ["evm-address", "iana-time-zone", "image-data-url", "page-cursor", "password"];

const ajv = new Ajv2020({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  strictTypes: false,
  // Each component is compiled once, not wherever it is referred to.
  inlineRefs: false,
  code: { optimize: false },
});
addFormatsModule.default(ajv);
for (const format of OWN_FORMATS) ajv.addFormat(format, true);
ajv.addKeyword({ keyword: "components" });
ajv.addKeyword({ keyword: "discriminator" });
ajv.addSchema({ $id: "https://spend.example.com/openapi", components: document.components });

const compiled = new Map<string, ValidateFunction>();
/** A validator of one of the document's schemas, whose references lead into its components. */
function validator(schema: Json): ValidateFunction {
  const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"https://spend.example.com/openapi#/');
  const known = compiled.get(text);
  const made = known ?? ajv.compile(z.record(z.string(), z.unknown()).parse(JSON.parse(text)));
  compiled.set(text, made);
  return made;
}

function expectFits(schema: Json, value: unknown, where: string): void {
  const validate = validator(schema);
  expect(validate(value), `${where}: ${JSON.stringify(value)} ${ajv.errorsText(validate.errors)}`).to.equal(
    true,
  );
}

/** Every body of an operation, asked for or answered, with its place. */
const bodiesOf = ({ operationId, requestBody, responses }: z.infer<typeof entry>) => {
  const all = Object.entries({ request: requestBody, ...responses });
  return all.flatMap(([place, given]) => {
    const named =
      isObject(given) && "$ref" in given
        ? parts.responses[String(given["$ref"]).split("/").at(-1) ?? ""]
        : given;
    const found = body.safeParse(named);
    return found.success
      ? Object.values(found.data.content).map((each) => ({ where: `${operationId} ${place}`, ...each }))
      : [];
  });
};

/** Names as languages that know one spelling write them. */
const spelt = (names: readonly string[]): readonly string[] =>
  names.map((each) => each.replaceAll("_", "").toLowerCase());

const expectDistinct = (names: readonly string[], where: string): void => {
  expect(new Set(spelt(names)).size, `${where}: ${names.join(", ")}`).to.equal(names.length);
};

/** Visits a schema and all within it. */
function visit(schema: unknown, where: string, look: (schema: Json, where: string) => void): void {
  if (!isObject(schema)) return;
  look(schema, where);
  const { anyOf, items, oneOf, properties } = schema;
  for (const [name, each] of Object.entries(isObject(properties) ? properties : {}))
    visit(each, `${where}.${name}`, look);
  visit(items, `${where}[]`, look);
  for (const forms of [anyOf, oneOf]) {
    if (Array.isArray(forms)) forms.forEach((form, index) => visit(form, `${where}|${String(index)}`, look));
  }
}

/** Every schema of the document once: components, parameters and bodies. */
function everySchema(look: (schema: Json, where: string) => void): void {
  for (const [name, schema] of Object.entries(parts.schemas)) visit(schema, name, look);
  for (const each of entries) {
    for (const { name, schema } of each.parameters) visit(schema, `${each.operationId}?${name}`, look);
    for (const { schema, where } of bodiesOf(each)) visit(schema, where, look);
  }
}

describe("the OpenAPI document", () => {
  it("has every operation of the registry, each field and parameter described", () => {
    expect(entries.map(({ operationId }) => operationId).toSorted()).to.deep.equal(
      operationList.flatMap(([id, { http }]) => (http === null ? [] : [id])).toSorted(),
    );
    const bare: string[] = [];
    everySchema(({ $ref, properties }, where) => {
      // What an error's code is, is said where the error is; here it is only narrowed.
      if ($ref !== undefined || !isObject(properties)) return;
      for (const [name, each] of Object.entries(properties)) {
        if (!isObject(each) || typeof each["description"] !== "string") bare.push(`${where}.${name}`);
      }
    });
    for (const { operationId, parameters } of entries) {
      for (const parameter of parameters) {
        if (typeof parameter["description"] !== "string") bare.push(`${operationId}?${parameter.name}`);
      }
    }
    expect(bare, "described in src/contract/openapi/glossary, or by the schema itself").to.deep.equal([]);
  });

  it("a name has one meaning: no two parts of the glossary explain it", () => {
    const names = GLOSSARY_PARTS.flatMap((part) => Object.keys(part));
    expect(names.filter((name, at) => names.indexOf(name) !== at)).to.deep.equal([]);
  });

  it("has no schema that says nothing, but for any JSON", () => {
    const says = ["$ref", "const", "enum", "type", "anyOf", "oneOf"];
    const empty: string[] = [];
    everySchema((schema, where) => {
      if (!says.some((keyword) => keyword in schema)) empty.push(where);
    });
    // The narrowed code of an error has its enum; undefined is no body.
    expect(empty).to.deep.equal(["AuditEntry.before", "AuditEntry.after", "AuditEntry.decision"]);
  });

  it("shows an example of every body, and all of them fit their schemas", () => {
    let count = 0;
    for (const each of entries) {
      for (const { examples, schema, where } of bodiesOf(each)) {
        expect(Object.keys(examples), where).not.to.have.lengthOf(0);
        for (const [name, example] of Object.entries(examples)) {
          const { value } = "$ref" in example ? (parts.examples[name] ?? { value: undefined }) : example;
          expectFits(schema, value, `${where} ${name}`);
          count += 1;
        }
      }
    }
    expect(count).to.be.above(entries.length * 5);
  });

  it("examples of fields, parameters and headers fit them", () => {
    everySchema((schema, where) => {
      const { examples } = schema;
      if (Array.isArray(examples)) for (const example of examples) expectFits(schema, example, where);
    });
    for (const [name, header] of Object.entries(
      z.record(z.string(), z.looseObject({})).parse(document.components["headers"]),
    )) {
      const schema = isObject(header["schema"]) ? header["schema"] : {};
      const { examples } = schema;
      if (Array.isArray(examples)) for (const example of examples) expectFits(schema, example, name);
    }
  });

  it("declares exactly the statuses of each operation's error codes, and each code is shown", () => {
    for (const [id, operation] of operationList) {
      if (operation.http === null) continue;
      const { responses } = entries.find(({ operationId }) => operationId === id) ?? { responses: {} };
      const declared = Object.keys(responses).filter((status) => !status.startsWith("2"));
      expect(declared.toSorted(), id).to.deep.equal([...errorCodesOf(operation).keys()].toSorted());
      for (const code of operation.errors) {
        const statuses = [...errorCodesOf(operation)].filter(([, codes]) => codes.includes(code));
        expect(statuses, `${id} ${code}`).to.have.lengthOf(1);
      }
    }
    for (const [code, { value }] of Object.entries(parts.examples)) expect(value.error).to.equal(code);
    expect(Object.keys(parts.examples).toSorted()).to.deep.equal(Object.keys(ERRORS).toSorted());
  });

  it("a body may be left out exactly where an empty object is taken", () => {
    const bodied = entries.flatMap(({ operationId, requestBody }) =>
      requestBody === undefined ? [] : [[operationId, requestBody.required] as const],
    );
    expect(bodied).to.deep.include(["updateProject", false]).and.deep.include(["createAgent", true]);
    for (const [id, { body: taken }] of operationList) {
      if (entries.every(({ operationId }) => operationId !== id)) continue;
      const required = bodied.find(([name]) => name === id)?.[1] ?? false;
      expect(required, id).to.equal(!taken.safeParse({}).success);
    }
  });

  it("the requests that its schemas take are those that the contract takes", () => {
    for (const [id, operation] of operationList) {
      const { requestBody } = entries.find(({ operationId }) => operationId === id) ?? {};
      for (const { examples } of Object.values(requestBody?.content ?? {})) {
        for (const [name, { value }] of Object.entries(examples)) {
          const parsed = operation.body.safeParse(value);
          expect(parsed.success, `${id} ${name}: ${parsed.error?.message ?? ""}`).to.equal(true);
        }
      }
    }
  });

  it("every pattern compiles in RE2, ECMAScript, Python and Rust", () => {
    const patterns = new Set<string>();
    everySchema(({ pattern }) => {
      if (typeof pattern === "string") patterns.add(pattern);
    });
    expect(patterns.size).to.be.above(20);
    for (const pattern of patterns) {
      expect(() => new RegExp(pattern, "u"), pattern).not.to.throw();
      expect(pattern, "looks around, refers back or escapes by \\u").not.to.match(/\(\?<?[=!]|\\[1-9ukpP]/);
    }
  });

  it("every number is an integer, and one that may need more than 32 bits says so", () => {
    const unnamed: string[] = [];
    everySchema(({ format, maximum, type }, where) => {
      const isInteger = type === "integer" || (Array.isArray(type) && type.includes("integer"));
      const isSmall = typeof maximum === "number" && maximum < 2 ** 31;
      if (type === "number" || (isInteger && !isSmall && format !== "int64")) unnamed.push(where);
    });
    expect(unnamed).to.deep.equal([]);
  });

  it("JSON bodies and answers are components, named after their operation or record", () => {
    const name = /^#\/components\/schemas\/[A-Z][A-Za-z0-9]*$/;
    for (const each of entries) {
      const bodies = Object.entries({ request: each.requestBody, ...each.responses });
      for (const [place, given] of bodies) {
        const { content } = body.safeParse(given).data ?? { content: {} };
        const schema = content["application/json"]?.schema;
        if (schema !== undefined) expect(schema["$ref"], `${each.operationId} ${place}`).to.match(name);
      }
    }
    expect(Object.keys(parts.schemas)).to.include.members([
      "CreateAgentRequest",
      "CreateAgentResult",
      "ErrorBody",
    ]);
  });

  it("no two fields or parameters have the same name in another spelling", () => {
    everySchema(({ properties }, where) => expectDistinct(Object.keys(properties ?? {}), where));
    for (const { operationId, parameters } of entries) {
      expectDistinct(
        parameters.map((parameter) => parameter.name),
        operationId,
      );
    }
    expectDistinct(Object.keys(parts.schemas), "components");
  });

  it("lists that a body may leave out may be null, as generated clients send unset ones", () => {
    const { properties } = parts.schemas["CreateAgentRequest"] ?? {};
    const scopes = isObject(properties) ? properties["scopes"] : null;
    expect(scopes).to.deep.include({ type: ["array", "null"], minItems: 1 });
  });

  it("no body's field has a default, which generators take for a field that is always there", () => {
    const requests = Object.entries(parts.schemas).filter(([name]) =>
      /Request$|Payment$|RuleInput$/.test(name),
    );
    expect(requests).to.have.lengthOf.above(30);
    for (const [name, schema] of requests) {
      visit(schema, name, (each, where) => expect(each, where).not.to.have.property("default"));
    }
  });
});

describe("the OpenAPI document as 3.0.3", () => {
  const rendered = openApi30(document);
  const schemas = z
    .object({ components: z.object({ schemas: z.record(z.string(), z.looseObject({})) }) })
    .parse(rendered).components.schemas;

  it("has the operations and schemas of 3.1, and no keyword that 3.0 lacks", () => {
    expect(rendered).to.deep.include({ openapi: "3.0.3", info: document.info });
    expect(Object.keys(schemas)).to.deep.equal(Object.keys(parts.schemas));
    const wrong: string[] = [];
    /** `kind`: whether the value is a schema, a map of schemas, or something else that may hold them. */
    const look = (value: unknown, where: string, kind: "schema" | "schemas" | "other"): void => {
      if (Array.isArray(value)) return value.forEach((each, at) => look(each, `${where}/${at}`, kind));
      if (!isObject(value)) return;
      if (kind === "schema") wrong.push(...faultsOf(value).map((fault) => `${where}: ${fault}`));
      for (const [key, part] of Object.entries(value)) {
        if (key === "examples" && kind === "other") continue;
        const within =
          kind === "schemas" || key === "schema" || ["allOf", "anyOf", "oneOf", "items"].includes(key);
        const isMap = kind === "schema" ? key === "properties" : key === "schemas";
        look(part, `${where}/${key}`, isMap && kind !== "schemas" ? "schemas" : within ? "schema" : "other");
      }
    };
    look(rendered, "", "other");
    expect(wrong).to.deep.equal([]);
  });

  it("only OAuth has scopes, so operations name none", () => {
    const operation = z.object({ security: z.array(z.record(z.string(), z.tuple([]))) });
    const paths = z.object({ paths: z.record(z.string(), z.record(z.string(), operation)) });
    expect(() => paths.parse(rendered)).not.to.throw();
  });

  it("what may be null in 3.1 is nullable, enumerations too", () => {
    const { Agent = {}, Transaction = {} } = schemas;
    expect(Agent["properties"]).to.have.nested.property("wallet.nullable", true);
    expect(Agent["properties"]).to.have.nested.property(
      "wallet.allOf[0].$ref",
      "#/components/schemas/Wallet",
    );
    expect(Agent["properties"]).to.have.nested.property("autoApprovalThresholdCents.nullable", true);
    expect(Transaction["properties"]).to.have.nested.property("denialCode.enum").that.includes(null);
  });
});

/** What OpenAPI 3.0 does not know in a schema. */
function faultsOf(schema: Json): string[] {
  const { $ref, type, nullable } = schema;
  const unknown = ["const", "examples", "$defs", "title"].filter((keyword) => keyword in schema);
  return [
    ...unknown,
    ...(Array.isArray(type) || type === "null" ? [`type ${JSON.stringify(type)}`] : []),
    ...($ref !== undefined && Object.keys(schema).length > 1 ? ["keywords beside $ref"] : []),
    ...(nullable !== undefined && type === undefined && !("allOf" in schema)
      ? ["nullable without a type"]
      : []),
  ];
}
