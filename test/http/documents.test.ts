import { expect } from "chai";
import { z } from "zod";
import { operationList } from "../../src/contract/registry.ts";
import { ERRORS } from "../../src/domain/errors.ts";
import { sharedService } from "../support/service.ts";
import { send } from "../support/wire.ts";

const reference = z.looseObject({ $ref: z.string() });
const schemaHolder = z.looseObject({ schema: z.looseObject({}) });
const content = z.strictObject({ "application/json": schemaHolder });
/** JSON, lines of it, or a table. */
const answered = z.union([
  content,
  z.strictObject({ "application/x-ndjson": schemaHolder }),
  z.strictObject({ "text/csv": schemaHolder }),
]);
const headers = z.strictObject({
  "x-ratelimit-limit": reference,
  "x-ratelimit-remaining": reference,
  "x-ratelimit-reset": reference,
  "x-request-id": reference,
  "retry-after": reference.optional(),
});
const response = z.strictObject({ description: z.string().min(1), headers, content: answered.optional() });
const parameter = z.strictObject({
  name: z.string(),
  in: z.enum(["path", "query", "header"]),
  required: z.boolean(),
  schema: z.looseObject({}),
  description: z.string().optional(),
});
const operation = z.strictObject({
  operationId: z.string(),
  summary: z.string().min(1),
  description: z.string().min(1),
  tags: z.array(z.string()).length(1),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z.array(parameter).optional(),
  requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
  responses: z.record(z.string().regex(/^[245]\d\d$/), response),
});
const document = z.strictObject({
  openapi: z.literal("3.1.0"),
  info: z.strictObject({ title: z.string(), version: z.string(), description: z.string() }),
  servers: z.array(z.strictObject({ url: z.url() })).length(1),
  paths: z.record(z.string().startsWith("/v1/"), z.record(z.string(), operation)),
  components: z.strictObject({
    schemas: z.record(z.string(), z.looseObject({})),
    headers: z.record(
      z.string().regex(/^(x-ratelimit-|x-request-id$|retry-after$)/),
      z.looseObject({ description: z.string() }),
    ),
    securitySchemes: z.record(
      z.string(),
      z.union([
        z.looseObject({ type: z.literal("http"), scheme: z.literal("bearer") }),
        z.looseObject({ type: z.literal("apiKey"), in: z.literal("cookie"), name: z.string() }),
      ]),
    ),
  }),
});

const PUBLIC: ReadonlySet<string> = new Set([
  "signIn",
  "passkeySignInOptions",
  "signInWithPasskey",
  "refreshSession",
  "setUp",
  "checkSetUp",
  "acceptInvite",
]);

describe("what the service says of itself", () => {
  let baseUrl: string;
  let api: z.infer<typeof document>;
  before(async () => {
    ({ baseUrl } = await sharedService());
    const answer = await send(baseUrl, "/v1/openapi.json");
    expect(answer.status).to.equal(200);
    api = document.parse(answer.body);
  });

  const entries = () =>
    Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, entry]) => ({ path, method, entry })),
    );

  it("openapi.json lists exactly the registry's REST operations, each once", () => {
    const expected = operationList.flatMap(([id, { http }]) =>
      http === null ? [] : [`${id} ${http.method} ${http.path.replaceAll(/:(\w+)/g, "{$1}")}`],
    );
    const listed = entries().map(({ entry, method, path }) => `${entry.operationId} ${method} ${path}`);
    expect(listed.toSorted()).to.deep.equal(expected.toSorted());
  });

  it("every reference resolves, and nothing refers to a place outside the components", () => {
    const references: string[] = [];
    const collect = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      const parsed = reference.safeParse(value);
      if (parsed.success) references.push(parsed.data.$ref);
      for (const child of Object.values(value)) collect(child);
    };
    collect(api);
    expect(references).not.to.have.lengthOf(0);
    for (const ref of new Set(references)) {
      const [, kind, name] = /^#\/components\/(schemas|headers)\/([\w-]+)$/.exec(ref) ?? [];
      expect(Object.keys(api.components[kind === "headers" ? kind : "schemas"]), ref).to.include(name);
    }
    expect(JSON.stringify(api)).not.to.match(/"\$(defs|schema|id)"/);
  });

  it("every parameter of a path is declared, required, and no other is", () => {
    for (const { entry, path } of entries()) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = (entry.parameters ?? []).filter((each) => each.in === "path");
      expect(
        declared.map(({ name }) => name),
        path,
      ).to.deep.equal(named);
      expect(declared.every(({ required }) => required)).to.equal(true);
      expect((entry.parameters ?? []).filter((each) => each.in === "query" && each.required)).to.deep.equal(
        [],
      );
    }
  });

  it("security names declared schemes, and only what begins or goes on with a session needs none", () => {
    for (const { entry } of entries()) {
      const schemes = entry.security.flatMap((each) => Object.keys(each));
      for (const scheme of schemes) expect(Object.keys(api.components.securitySchemes)).to.include(scheme);
      const isPublic = PUBLIC.has(entry.operationId);
      expect(schemes.length === 0, entry.operationId).to.equal(isPublic);
    }
  });

  it("each error status lists the known codes that carry it, with the flat body as schema", () => {
    const statusOfCode = new Map(Object.entries(ERRORS).map(([code, { status }]) => [code, status]));
    for (const { entry } of entries()) {
      for (const [status, { content: body, description }] of Object.entries(entry.responses)) {
        if (status.startsWith("2")) continue;
        expect(body).to.deep.equal({
          "application/json": { schema: { $ref: "#/components/schemas/Error" } },
        });
        for (const code of description.split(", ")) {
          const signsIn = ["signIn", "signInWithPasskey"].includes(entry.operationId);
          const known = signsIn && code === "SECOND_FACTOR_INVALID" ? 401 : statusOfCode.get(code);
          expect(String(known), `${entry.operationId} ${code}`).to.equal(status);
        }
      }
      expect(Object.keys(entry.responses)).to.include.members(["400", "500", "503"]);
    }
  });

  it("an error that says how long to wait is described with its header, and no other answer is", () => {
    for (const { entry } of entries()) {
      for (const [status, answer] of Object.entries(entry.responses)) {
        const waits = ["429", "503"].includes(status) || answer.description.includes("SECOND_FACTOR_LOCKED");
        expect("retry-after" in answer.headers, `${entry.operationId} ${status}`).to.equal(waits);
      }
    }
  });

  it("the role and the step-up that a person needs are said", () => {
    const described = new Map(entries().map(({ entry }) => [entry.operationId, entry.description]));
    expect(described.get("createTeam")).to.match(/ A person needs the role admin or owner\.$/);
    expect(described.get("mintOrganizationKey")).to.match(
      / A person needs the role admin or owner and a step-up within 5 minutes\.$/,
    );
    for (const id of ["pauseAgent", "listTeams", "getBudget", "signIn"]) {
      expect(described.get(id) ?? "", id).not.to.include("A person needs");
    }
  });

  it("/docs shows every operation, loads nothing from elsewhere and runs no script", async () => {
    const page = await send(baseUrl, "/docs");
    const html = String(page.body);
    expect([page.status, page.headers.get("content-type")]).to.deep.equal([200, "text/html; charset=utf-8"]);
    for (const { entry, path } of entries()) {
      expect(html).to.include(`id="${entry.operationId}"`);
      expect(html).to.include(path);
    }
    expect(html).not.to.match(/<script|<style|style=|https?:\/\/(?!127\.0\.0\.1)[^<]*\.(js|css)/);
    expect(page.headers.get("content-security-policy")).to.include("script-src 'self'");
  });

  it("/healthz is 200, /readyz 200 with nothing missing, /metrics in the format of Prometheus", async () => {
    const health = await send(baseUrl, "/healthz");
    expect([health.status, health.body]).to.deep.equal([200, { status: "ok" }]);
    const ready = await send(baseUrl, "/readyz");
    expect([ready.status, ready.body]).to.deep.equal([200, { ready: true, missing: [] }]);
    const metrics = await send(baseUrl, "/metrics");
    expect(metrics.status).to.equal(200);
    expect(metrics.headers.get("content-type")).to.match(/^text\/plain; version=0\.0\.4/);
    expect(String(metrics.body)).to.match(/^process_cpu_seconds_total \d/m);
  });
});
