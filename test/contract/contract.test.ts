import { expect } from "chai";
import { z } from "zod";
import { derivedTools } from "../../server/mcp/tools.ts";
import { rulesAsSent } from "../../src/contract/approval-rules.ts";
import { toolsetOf } from "../../src/contract/tool-names.ts";
import { define } from "../../src/contract/define.ts";
import { jsonSchemaOf } from "../../src/contract/json-schema.ts";
import { cents, idempotencyKey, name, paymentCents, text, uuid } from "../../src/contract/primitives.ts";
import { RATE_CLASSES } from "../../src/contract/rate-classes.ts";
import { openApiDocument } from "../../src/contract/openapi.ts";
import { AGENT_TOOLS } from "../../src/contract/tool-names.ts";
import { operationList } from "../../src/contract/registry.ts";
import type { Operation } from "../../src/contract/types.ts";
import { ERRORS } from "../../src/domain/errors.ts";
import { RULE_TYPES } from "../../src/domain/rules/rules.ts";
import { SIMULATED } from "../support/simulations.ts";

/** Codes and statuses as callers are promised them, written out once more. */
const STATUSES: Readonly<Record<number, readonly string[]>> = {
  400: ["VALIDATION_FAILED", "IDEMPOTENCY_KEY_REQUIRED", "BAD_CURSOR"],
  401: ["UNAUTHORIZED", "SECOND_FACTOR_REQUIRED", "SSO_FAILED"],
  403: [
    "AGENT_PAUSED",
    "INSUFFICIENT_SCOPE",
    "OUTSIDE_BINDING",
    "SSO_REQUIRED",
    "SSO_NO_ACCOUNT",
    "SESSION_REQUIRED",
    "ROLE_REQUIRED",
    "STEP_UP_REQUIRED",
    "TOOL_NOT_ALLOWED",
    "WRONG_CREDENTIAL",
    "ORIGIN_NOT_ALLOWED",
    "HOST_NOT_ALLOWED",
    "MACHINE_ARCHIVE_DENIED",
    "SECOND_FACTOR_INVALID",
    "SECOND_FACTOR_LOCKED",
    // Ours: a person whose passkey was refused for good has to know what to do.
    "PASSKEY_POSSIBLY_COPIED",
    // Ours: an organization may require a factor, and a wrong current password is neither a lost session nor a wrong shape.
    "SECOND_FACTOR_ENROLMENT_REQUIRED",
    "PASSWORD_INVALID",
  ],
  404: ["NOT_FOUND"],
  405: ["METHOD_NOT_ALLOWED"],
  409: [
    "VERSION_CONFLICT",
    "STALE_APPROVAL_RULES",
    "STALE_RESTRICTIONS",
    "ORGANIZATION_REQUIRED",
    "REQUEST_IN_PROGRESS",
    "ORG_NOT_READY",
    "AGENT_ARCHIVED",
    "RAISE_PENDING",
    "RAISE_NOT_NEEDED",
    "RAISE_ALREADY_RESOLVED",
    "RAISE_IMPOSSIBLE",
    "KEY_ALREADY_EXISTS",
    "KEY_STILL_DELIVERABLE",
    "KEY_DELIVERY_UNPROVEN",
    "BALANCE_UNVERIFIABLE",
    "CONTAINER_ARCHIVED",
    "CONTAINER_NOT_EMPTY",
    "LAST_OWNER",
    // Ours: the issue asks that it be refused, and a bound has to be.
    "LAST_FACTOR",
    "TOO_MANY_PASSKEYS",
    "TOO_MANY_MAILED_PEOPLE",
    "APPROVAL_ALREADY_RESOLVED",
    "APPROVAL_EXPIRED",
    "WEBHOOK_DISABLED",
    // Ours: bounds have to be.
    "TOO_MANY_WEBHOOKS",
    "TOO_MANY_TEAMS",
    "PROJECT_FULL",
    "REPLAY_IN_PROGRESS",
    "PAYMENT_NOT_CANCELLABLE",
    "RAIL_IN_USE",
    "STALE_BUDGET",
    "STALE_CALENDAR",
  ],
  413: ["PAYLOAD_TOO_LARGE"],
  415: ["UNSUPPORTED_MEDIA_TYPE"],
  422: [
    "IDEMPOTENCY_KEY_REUSED",
    "BUDGET_CHILDREN_INCOMPLETE",
    "BUDGET_CHILD_UNKNOWN",
    "NO_PAYABLE_OFFER",
    "ISSUER_REFUSED",
    "PRICE_ABOVE_MAX",
    "SHOP_UNREACHABLE",
    "WALLET_OWNER_UNPROVEN",
  ],
  429: [
    "RATE_LIMITED",
    "DAILY_CREATE_LIMIT_REACHED",
    "RAISE_LIMIT_REACHED",
    "TOO_MANY_STREAMS",
    "SIMULATION_RUNNING",
  ],
  500: ["INTERNAL"],
  503: ["CREATE_RETRYABLE", "SERVICE_UNAVAILABLE"],
};

const accepts = (schema: z.ZodType, value: unknown) => schema.safeParse(value).success;

describe("the contract", () => {
  // Which routes there are is written out once more in src/client/routes.ts.
  it("no two operations share a method and a path", () => {
    const routes = operationList.flatMap(([, { http }]) =>
      http === null ? [] : [`${http.method} ${http.path}`],
    );
    expect(routes).to.deep.equal([...new Set(routes)]);
  });

  it("an agent's scopes offer the tools that there are, and no others", () => {
    const tools = operationList.flatMap(([, { access, tool }]) =>
      access.kind === "agent" && tool !== null ? [tool.name] : [],
    );
    expect([...AGENT_TOOLS].toSorted()).to.deep.equal(tools.toSorted());
  });

  it("every error has its one status, and there are no others", () => {
    for (const [status, codes] of Object.entries(STATUSES)) {
      for (const code of codes) {
        const entry = Object.entries(ERRORS).find(([each]) => each === code)?.[1];
        expect(entry?.status, code).to.equal(Number(status));
      }
    }
    expect(Object.values(STATUSES).flat().toSorted()).to.deep.equal(Object.keys(ERRORS).toSorted());
  });

  it("a tool's name is unique; an agent tool's name is the scope that its operation asks for", () => {
    const tools = operationList.flatMap(([id, { access, tool }]) =>
      tool === null ? [] : [{ id, access, tool }],
    );
    expect(new Set(tools.map(({ tool }) => tool.name)).size).to.equal(tools.length);
    for (const { access, id, tool } of tools) {
      const isAgents = access.kind === "agent" && access.tools.some((scope) => scope === tool.name);
      expect(toolsetOf(tool.name), id).to.equal(isAgents ? "agent" : "management");
      expect(access.kind, id).to.equal(isAgents ? "agent" : "management");
    }
  });

  it("reads change nothing by their method, and what only reads says so", () => {
    for (const [id, { http, tool }] of operationList) {
      if (http === null || tool === null) continue;
      expect(tool.hints.readOnly, id).to.equal(http.method === "get");
    }
  });

  it("sign-in, step-up, password and key operations have caps per minute, no others do", () => {
    const guesses = [
      { perMinute: 10, per: "address" },
      { perMinute: 10, per: "account" },
    ];
    const ofStrangers = [...guesses, { perMinute: 100, per: "network" }];
    const caps: Readonly<Record<string, readonly object[]>> = {
      signIn: ofStrangers,
      passkeySignInOptions: ofStrangers,
      signInWithPasskey: ofStrangers,
      stepUp: guesses,
      changePassword: ofStrangers,
      acceptInvite: ofStrangers,
      setUp: ofStrangers,
      stepUpOptions: guesses,
      mintOrganizationKey: [{ perMinute: 30, per: "credential" }],
      rotateOrganizationKey: [{ perMinute: 30, per: "credential" }],
      revokeOrganizationKey: [{ perMinute: 30, per: "credential" }],
      archiveProject: [{ perMinute: 30, per: "credential" }],
      archiveTeam: [{ perMinute: 30, per: "credential" }],
      connectClient: [{ perMinute: 30, per: "credential" }],
      mintAgentKey: [{ perMinute: 30, per: "credential" }],
      revokeAgentKey: [{ perMinute: 30, per: "credential" }],
      revokeTeamAgentKeys: [{ perMinute: 30, per: "credential" }],
      revokeProjectAgentKeys: [{ perMinute: 30, per: "credential" }],
      archiveAgent: [{ perMinute: 30, per: "credential" }],
      exportAuditLog: [{ perMinute: 10, per: "credential" }],
      exportTransactions: [{ perMinute: 10, per: "credential" }],
      summarizeAgents: [{ perMinute: 60, per: "credential" }],
      summarizeTransactions: [{ perMinute: 60, per: "credential" }],
      verifyAuditLog: [{ perMinute: 30, per: "credential" }],
      testWebhook: [{ perMinute: 10, per: "credential" }],
    };
    for (const [id, { rate }] of operationList) {
      expect(RATE_CLASSES[rate], id).to.deep.equal(caps[id] ?? []);
    }
    expect(operationList.map(([id]) => id)).to.include.members(Object.keys(caps));
  });

  it("what may take longer than other answers says what it waits for, and nothing else does", () => {
    const waits = operationList.flatMap(([id, operation]) => {
      const { waitsFor }: Operation = operation;
      return waitsFor === undefined ? [] : [[id, waitsFor]];
    });
    expect(Object.fromEntries(waits)).to.deep.equal({
      getProjectBudget: "propagation",
      setProjectBudget: "propagation",
      getTeamBudget: "propagation",
      setTeamBudget: "propagation",
      grantRaiseRequest: "propagation",
      testWebhook: "receiver",
      listRails: "receiver",
      connectCardIssuer: "receiver",
      disconnectCardIssuer: "receiver",
      checkCardIssuer: "receiver",
      viewCard: "receiver",
      disputeTransaction: "receiver",
      payX402Request: "shop",
      checkPayment: "shop",
      ...Object.fromEntries(Object.keys(SIMULATED).map((id) => [id, "simulation"])),
    });
  });

  it("no object that goes in or out takes a field it does not name", () => {
    const open: string[] = [];
    const visit = (where: string, value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      if ("properties" in value && !("additionalProperties" in value)) open.push(where);
      for (const [key, child] of Object.entries(value)) visit(`${where}.${key}`, child);
    };
    for (const [id, { body, output, params, query }] of operationList) {
      for (const [part, schema] of Object.entries({ body, output, params, query })) {
        visit(`${id}.${part}`, jsonSchemaOf(schema, "#/$defs/"));
      }
    }
    expect(open).to.deep.equal([]);
  });

  it("every list takes limit and cursor, answers nextCursor, and may refuse the cursor", () => {
    const lists = operationList.filter(([, { query }]) => "limit" in query.shape);
    for (const [id, { errors, output, query }] of lists) {
      expect("cursor" in query.shape, id).to.equal(true);
      expect(errors, id).to.include("BAD_CURSOR");
      expect(JSON.stringify(jsonSchemaOf(output, "#/").schema), id).to.include('"nextCursor"');
    }
  });

  it("text counts code points and is neither blank nor broken", () => {
    for (const good of ["a", "é", "😀".repeat(100), " a "]) expect(accepts(name, good), good).to.equal(true);
    for (const bad of [
      "",
      " ",
      "\t\n",
      "😀".repeat(101),
      "a\u0000",
      "\ud800",
      "a\udc00",
      1,
      null,
      {},
      ["a"],
    ]) {
      expect(accepts(name, bad), JSON.stringify(bad)).to.equal(false);
    }
    expect(accepts(text(0, 5), "")).to.equal(true);
    expect([
      accepts(idempotencyKey, "k".repeat(255)),
      accepts(idempotencyKey, "k".repeat(256)),
    ]).to.deep.equal([true, false]);
  });

  it("an id is read in any case and of any version, and is nothing else", () => {
    const id = "01a1fedc-b36f-716a-9ab4-93fd85fe3900";
    expect([uuid.parse(id), uuid.parse(id.toUpperCase())]).to.deep.equal([id, id]);
    expect(accepts(uuid, "11111111-1111-1111-1111-111111111111")).to.equal(true);
    for (const bad of ["", "x", id.slice(1), `${id}0`, ` ${id}`, id.replaceAll("-", ""), 1, null]) {
      expect(accepts(uuid, bad), JSON.stringify(bad)).to.equal(false);
    }
    expect(jsonSchemaOf(uuid, "#/").schema).to.deep.include({ type: "string", format: "uuid" });
  });

  it("money is whole cents from 0 to 1,000,000,000,000, a payment from 1", () => {
    const edges: readonly (readonly [unknown, boolean, boolean])[] = [
      [0, true, false],
      [1, true, true],
      [1_000_000_000_000, true, true],
      [1_000_000_000_001, false, false],
      [-1, false, false],
      [0.5, false, false],
      [Number.NaN, false, false],
      [Number.POSITIVE_INFINITY, false, false],
      ["1", false, false],
      [null, false, false],
    ];
    for (const [value, amount, payment] of edges) {
      const got = [cents.safeParse(value).success, paymentCents.safeParse(value).success];
      expect(got, String(value)).to.deep.equal([amount, payment]);
    }
  });

  it("the flat schema of approval rules says which parameters each type takes", () => {
    const { description } = z
      .object({ description: z.string() })
      .parse(jsonSchemaOf(rulesAsSent, "#/").schema);
    for (const type of RULE_TYPES) expect(description).to.include(`${type} {`);
    expect(description).to.include("velocity {count, windowSeconds}").and.to.include("new_recipient {}");
    expect(description).to.include("time_window {timezone, days, from, to, outside}");
  });

  it("what people and models read names no document that they do not have", () => {
    const listings = [...derivedTools.values()].map(({ listing }) => listing);
    const read = JSON.stringify([openApiDocument("https://example.com", "1.2.3"), listings, ERRORS]);
    expect(read.match(/.{0,60}\b(specification|decisions?|management-api|issue) \d.{0,20}/gi)).to.equal(null);
    expect(read.match(/.{0,60}\b(decisions|management-api|design|ledger)\.md/gi)).to.equal(null);
  });

  it("an operation that nothing reaches or describes, or whose path differs, stops the start", () => {
    const operation = {
      summary: "x",
      description: "x",
      tag: "Agents",
      access: { kind: "public" },
      rate: "standard",
      output: z.undefined(),
      errors: [],
    } as const;
    expect(() => define(operation)).to.throw("reachable by nothing");
    const http = { method: "get", path: "/v1/x/:id", successStatus: 200 } as const;
    expect(() => define({ ...operation, http })).to.throw("differ");
    const params = z.strictObject({ id: z.string() });
    expect(define({ ...operation, http, params }).http).to.deep.equal(http);
    expect(() => define({ ...operation, http, params, description: "" })).to.throw("has a description");
  });
});
