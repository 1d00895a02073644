import addFormatsModule from "ajv-formats";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { expect } from "chai";
import { z } from "zod";
import { openApiDocument } from "../../src/contract/openapi.ts";
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

const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, strictTypes: false });
addFormatsModule.default(ajv);
for (const format of OWN_FORMATS) ajv.addFormat(format, true);
ajv.addKeyword({ keyword: "components" });
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

  it("has no schema that says nothing", () => {
    const says = ["$ref", "const", "enum", "type", "anyOf", "oneOf"];
    const empty: string[] = [];
    everySchema((schema, where) => {
      if (!says.some((keyword) => keyword in schema)) empty.push(where);
    });
    // The narrowed code of an error has its enum; undefined is no body.
    expect(empty).to.deep.equal([]);
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
});
