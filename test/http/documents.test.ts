import { expect } from "chai";
import { z } from "zod";
import { operationList } from "../../src/contract/registry.ts";
import { ERRORS } from "../../src/domain/errors.ts";
import { sharedService } from "../support/service.ts";
import { send } from "../support/wire.ts";

const reference = z.looseObject({ $ref: z.string() });
const schemaHolder = z.strictObject({
  schema: z.looseObject({}),
  examples: z.record(z.string(), z.union([reference, z.strictObject({ value: z.unknown() })])),
});
const content = z.strictObject({ "application/json": schemaHolder });
/** JSON, lines of it, a table, or events. */
const answered = z.union([
  content,
  z.strictObject({ "application/x-ndjson": schemaHolder }),
  z.strictObject({ "text/csv": schemaHolder }),
  z.strictObject({ "text/event-stream": schemaHolder }),
]);
const headers = z.strictObject({
  "x-ratelimit-limit": reference,
  "x-ratelimit-remaining": reference,
  "x-ratelimit-reset": reference,
  "x-request-id": reference,
  "retry-after": reference.optional(),
  "www-authenticate": reference.optional(),
  "content-disposition": reference.optional(),
  "set-cookie": reference.optional(),
  allow: reference.optional(),
  "idempotency-replayed": reference.optional(),
});
const fullResponse = z.strictObject({
  description: z.string().min(1),
  headers,
  content: answered.optional(),
  links: z.record(z.string(), reference).optional(),
});
const response = z.union([fullResponse, z.strictObject({ $ref: z.string() })]);
const parameter = z.strictObject({
  name: z.string(),
  in: z.enum(["path", "query", "header"]),
  required: z.boolean(),
  schema: z.looseObject({}),
  description: z.string().min(1),
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
  tags: z.array(z.strictObject({ name: z.string(), description: z.string().min(1) })),
  paths: z.record(z.string().startsWith("/v1/"), z.record(z.string(), operation)),
  components: z.strictObject({
    schemas: z.record(z.string(), z.looseObject({})),
    responses: z.record(z.string(), fullResponse),
    headers: z.record(z.string(), z.looseObject({ description: z.string().min(1) })),
    examples: z.record(z.string(), z.strictObject({ value: z.looseObject({}) })),
    links: z.record(z.string(), z.looseObject({ operationId: z.string(), description: z.string().min(1) })),
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
  "checkInvite",
  "acceptInvite",
  "startSso",
  "finishSso",
  "endSsoSessions",
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

  /** A response in full, wherever it is described. */
  const inFull = (given: z.infer<typeof response>): z.infer<typeof fullResponse> => {
    const named = "$ref" in given ? api.components.responses[given.$ref.split("/").at(-1) ?? ""] : given;
    return fullResponse.parse(named);
  };

  const responsesOf = ({ responses }: z.infer<typeof operation>) =>
    Object.entries(responses).map(([status, given]) => [status, inFull(given)] as const);

  it("openapi.json lists exactly the registry's REST operations, each once", () => {
    const expected = operationList.flatMap(([id, { http }]) =>
      http === null ? [] : [`${id} ${http.method} ${http.path.replaceAll(/:(\w+)/g, "{$1}")}`],
    );
    const listed = entries().map(({ entry, method, path }) => `${entry.operationId} ${method} ${path}`);
    expect(listed.toSorted()).to.deep.equal(expected.toSorted());
  });

  it("the same document is served as OpenAPI 3.0.3, and counted like any request", async () => {
    const { body, headers: sent, status } = await send(baseUrl, "/v1/openapi-3.0.json");
    const rendered = z.looseObject({ openapi: z.string(), paths: z.looseObject({}) }).parse(body);
    expect([status, rendered.openapi]).to.deep.equal([200, "3.0.3"]);
    expect(Object.keys(rendered.paths)).to.deep.equal(Object.keys(api.paths));
    expect(sent.has("x-ratelimit-remaining")).to.equal(true);
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
      const [, kind = "", name] = /^#\/components\/(\w+)\/([\w.-]+)$/.exec(ref) ?? [];
      const [, places = {}] = Object.entries(api.components).find(([place]) => place === kind) ?? [];
      expect(Object.keys(places), ref).to.include(name);
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

  it("each error status lists the known codes that carry it, as text, as schema and by examples", () => {
    const statusOfCode = new Map(Object.entries(ERRORS).map(([code, { status }]) => [code, status]));
    for (const { entry } of entries()) {
      for (const [status, { content: body, description }] of responsesOf(entry)) {
        if (status.startsWith("2")) continue;
        const codes = description.split(", ");
        expect(body).to.deep.equal({
          "application/json": {
            schema: { $ref: "#/components/schemas/ErrorBody", properties: { error: { enum: codes } } },
            examples: Object.fromEntries(
              codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
            ),
          },
        });
        for (const code of codes) {
          const signsIn = ["signIn", "signInWithPasskey", "finishSso"].includes(entry.operationId);
          const isFactor = ["SECOND_FACTOR_INVALID", "PASSKEY_POSSIBLY_COPIED"].includes(code);
          const known = signsIn && isFactor ? 401 : statusOfCode.get(code);
          expect(String(known), `${entry.operationId} ${code}`).to.equal(status);
        }
      }
      expect(Object.keys(entry.responses)).to.include.members(["400", "500", "503"]);
    }
  });

  it("an answer's headers are said: how long to wait, how to authenticate, file names, replays", () => {
    for (const { entry } of entries()) {
      for (const [status, answer] of responsesOf(entry)) {
        const where = `${entry.operationId} ${status}`;
        const waits = ["429", "503"].includes(status) || answer.description.includes("SECOND_FACTOR_LOCKED");
        expect("retry-after" in answer.headers, where).to.equal(waits);
        expect("www-authenticate" in answer.headers, where).to.equal(status === "401");
        const notFiles = ["application/json", "text/event-stream"];
        const isFile = Object.keys(answer.content ?? {}).some((type) => !notFiles.includes(type));
        expect("content-disposition" in answer.headers, where).to.equal(isFile);
        const isReplay = status === "200" && "201" in entry.responses;
        expect("idempotency-replayed" in answer.headers, where).to.equal(isReplay);
      }
    }
    expect(inFull({ $ref: "#/components/responses/METHOD_NOT_ALLOWED" }).headers).to.include.keys("allow");
  });

  it("every tag is described, and every link leads to an operation with its parameters", () => {
    expect(new Set(entries().flatMap(({ entry }) => entry.tags))).to.deep.equal(
      new Set(api.tags.map(({ name }) => name)),
    );
    const parametersOf = new Map(
      entries().map(({ entry }) => [entry.operationId, (entry.parameters ?? []).map(({ name }) => name)]),
    );
    const link = z.looseObject({ operationId: z.string(), parameters: z.record(z.string(), z.string()) });
    for (const each of Object.values(api.components.links)) {
      const { operationId, parameters } = link.parse(each);
      expect(parametersOf.get(operationId), operationId).to.include.members(Object.keys(parameters));
    }
    const from = new Map(
      entries().map(({ entry }) => [
        entry.operationId,
        responsesOf(entry).flatMap(([, { links = {} }]) => Object.keys(links)),
      ]),
    );
    expect(from.get("createAgent")).to.include.members(["getAgent", "pauseAgent", "updateAgentBudgetPolicy"]);
    expect(from.get("listProjects")).to.include.members(["getProject", "setProjectBudget"]);
    expect(from.get("createPayment")).to.include.members(["getPayment", "cancelPayment", "approveApproval"]);
    expect(from.get("getTeamBudget")).to.include("setTeamBudget");
    expect(from.get("listWebhookDeliveries")).to.include("redeliverWebhook");
  });

  it("the role and the step-up that a person needs are said", () => {
    const described = new Map(entries().map(({ entry }) => [entry.operationId, entry.description]));
    expect(described.get("createTeam")).to.match(/ A person needs the role admin or owner\.$/);
    expect(described.get("mintOrganizationKey")).to.match(
      / A person needs the role admin or owner and a step-up within 5 minutes\.$/,
    );
    expect(described.get("pauseAgent")).to.match(/ A person needs the role member, admin or owner\.$/);
    for (const id of ["getAgent", "listTeams", "getBudget", "signIn"]) {
      expect(described.get(id) ?? "", id).not.to.include("A person needs");
    }
  });

  it("/readyz is no lever: two hundred requests look at the engines once in a second", async () => {
    const service = await sharedService();
    const pings = async () => {
      const { metrics } = await service.db.command({ serverStatus: 1 });
      return z
        .looseObject({ commands: z.looseObject({ ping: z.looseObject({ total: z.number() }) }) })
        .parse(metrics).commands.ping.total;
    };
    const before = await pings();
    const answers = await Promise.all(Array.from({ length: 200 }, () => send(baseUrl, "/readyz")));
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    // Others ping the same MongoDB meanwhile, now and then.
    expect((await pings()) - before).to.be.below(50);
  });

  it("/healthz is 200, /readyz 200 with nothing missing, /metrics in the format of Prometheus", async () => {
    const health = await send(baseUrl, "/healthz");
    expect([health.status, health.body]).to.deep.equal([200, { status: "ok" }]);
    const ready = await send(baseUrl, "/readyz");
    expect(ready.status).to.equal(200);
    // Other tests' projects may be blocked.
    expect(ready.body).to.deep.include({ ready: true, missing: [] }).and.have.property("blockedProjects");
    const metrics = await send(baseUrl, "/metrics");
    expect(metrics.status).to.equal(200);
    expect(metrics.headers.get("content-type")).to.match(/^text\/plain; version=0\.0\.4/);
    expect(String(metrics.body)).to.match(/^process_cpu_seconds_total \d/m);
  });
});
