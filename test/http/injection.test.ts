import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { z } from "zod";
import { type OperationId, operationList, operations } from "../../src/contract/registry.ts";
import { ForgetfulCounts } from "../support/forgetful-counts.ts";
import { seed } from "../support/seed.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { expectBooksAgree } from "../support/books.ts";
import { freshRecipient } from "../support/chain.ts";
import { pixel } from "../support/images.ts";
import { madeUpAssertion, madeUpRegistration } from "../support/passkeys.ts";
import {
  cardPayment,
  x402Request,
  counts,
  elevate,
  type Fields,
  newEndpoint,
  newWorld,
  NOBODYS_URL,
  type TestAgent,
  type World,
} from "../support/world.ts";
import { askRaise, raiseOrder } from "../support/raises.ts";
import { SIMULATED } from "../support/simulations.ts";
import { restricting } from "../support/restrictions.ts";

/** What a query language, a driver or a database might take for more than a value. */
const HOSTILE: readonly unknown[] = [
  { $gt: "" },
  { $ne: null },
  { $regex: ".*" },
  { $where: "sleep(1000)" },
  ["a"],
  { toString: "a" },
  "a\u0000b",
  "\u0000",
  "a\ud800b",
  "\udc00",
];

const lists = operationList.filter(([, operation]) => "limit" in operation.query.shape);

function expectUnfit(schema: z.ZodType, value: unknown, what: string): void {
  expect(schema.safeParse(value).success, `${what}: ${JSON.stringify(value)}`).to.equal(false);
}

const container = () => ({
  name: "x",
  description: "y",
  color: "#123456",
  logo: `data:image/png;base64,${pixel.toString("base64")}`,
});

const endpoint = () => ({
  name: "x",
  url: NOBODYS_URL,
  eventTypes: ["agent.created"],
  scopeType: "agent",
  scopeIds: [randomUUID()],
});

const rule = { type: "recipient", enabled: true, params: { anyOf: ["x"] } };

/** For each operation with a body, one that nothing is wrong with. */
const BODIES: Partial<Record<OperationId, () => Fields>> = {
  signIn: () => ({ email: "a@example.com", password: "a password", code: "123456" }),
  setUp: () => ({
    token: "token",
    organizationName: "x",
    name: "x",
    email: "a@example.com",
    password: "a password",
  }),
  checkSetUp: () => ({ token: "token" }),
  checkInvite: () => ({ token: "token" }),
  createInvite: () => ({ email: "a@example.com", role: "member" }),
  acceptInvite: () => ({ token: "token", name: "x", password: "a password" }),
  updateMember: () => ({ role: "owner" }),
  mintOrganizationKey: () => ({
    name: "x",
    scopes: ["agents:read"],
    binding: { type: "team", id: randomUUID() },
    dailyCreateLimit: 5,
  }),
  refreshSession: () => ({ refreshToken: "token" }),
  confirmTotp: () => ({ code: "123456" }),
  enrollPasskey: () => ({ name: "x", response: madeUpRegistration() }),
  updatePasskey: () => ({ name: "x" }),
  signInWithPasskey: () => ({ response: madeUpAssertion() }),
  stepUp: () => ({ method: "totp", code: "123456" }),
  createAgent: () => ({
    name: "x",
    description: "y",
    budgetCents: 1,
    idempotencyKey: randomUUID(),
    teamId: randomUUID(),
    autoApprovalThresholdCents: 1,
    scopes: ["get_budget"],
  }),
  connectClient: () => ({
    connectionId: "x".repeat(43),
    tools: ["get_budget"],
    revokeKeyId: `akey_${"0".repeat(26)}`,
    browserToken: "x",
  }),
  startSso: () => ({ email: "a@example.com" }),
  finishSso: () => ({ organizationId: randomUUID(), code: "x", state: "x", iss: "x", error: "x", flow: "x" }),
  endSsoSessions: () => ({ logout_token: "x" }),
  setSso: () => ({
    issuer: "https://127.0.0.1",
    clientId: "x",
    clientSecret: "x",
    domains: ["example.com"],
    required: false,
    jit: { role: "member" },
  }),
  denyConnection: () => ({ connectionId: "x".repeat(43), browserToken: "x" }),
  createProject: () => ({ ...container(), idempotencyKey: randomUUID() }),
  createTeam: () => ({ ...container(), idempotencyKey: randomUUID(), projectId: randomUUID() }),
  updateAgentBudgetPolicy: () => ({ version: 1, budgetCents: 1, hourlyVelocityLimit: 1 }),
  payX402Request: () => x402Request(),
  createPayment: () => ({ ...cardPayment(), currency: "USD", merchantCategory: "5734" }),
  denyApproval: () => ({ feedback: "no" }),
  requestRaise: () => raiseOrder({ transactionId: `txn_${"0".repeat(26)}` }),
  refuseRaiseRequest: () => ({ feedback: "no" }),
  decideApprovals: () => ({
    decisions: [{ id: `apr_${"0".repeat(26)}`, decision: "deny", feedback: "no" }],
  }),
  connectCardIssuer: () => ({ apiKey: "rk_test_injection" }),
  viewCard: () => ({ nonce: "n" }),
  disputeTransaction: () => ({ reason: "other", explanation: "Not ours.", amountCents: 1 }),
  fundAgent: () => ({ amountCents: 1 }),
  fundAgentInSandbox: () => ({ amountCents: 1 }),
  depositToTreasury: () => ({ amountCents: 1 }),
  setProjectCalendar: () => ({
    timezone: "Europe/Berlin",
    resetTime: "04:00",
    weekStartsOn: "sun",
    monthStartsOn: 1,
    yearStartsIn: 4,
    version: 1,
  }),
  setProjectBudget: () => ({ capCents: 1, teams: [{ teamId: randomUUID(), capCents: 1 }], version: 1 }),
  setTeamBudget: () => ({ capCents: 1, agents: [{ agentId: randomUUID(), budgetCents: 1 }], version: 1 }),
  setProjectApprovalRules: () => ({ rules: [rule], version: 1 }),
  setTeamApprovalRules: () => ({ rules: [rule], version: 1 }),
  setProjectRestrictions: restricting,
  setTeamRestrictions: restricting,
  setAgentRestrictions: restricting,
  ...Object.fromEntries(Object.entries(SIMULATED).map(([id, body]) => [id, () => body])),
  updateOrganization: () => ({
    name: "x",
    timezone: "Europe/Berlin",
    walletOwner: freshRecipient(),
    requireSecondFactor: false,
  }),
  updateNotifications: () => ({ approvalMails: true }),
  changePassword: () => ({ currentPassword: "a password", newPassword: "another password" }),
  createWebhook: () => ({ ...endpoint(), description: "y" }),
  updateWebhook: () => ({ ...endpoint(), description: "y", isActive: true }),
  testWebhook: () => ({ eventType: "agent.created" }),
  replayWebhook: () => ({ since: new Date().toISOString() }),
};

/** Those that an empty body says enough to: a refresh may come with a cookie, and a change may change nothing. */
const MAY_DO_WITHOUT: readonly OperationId[] = [
  "refreshSession",
  "testWebhook",
  "updateOrganization",
  "updateWebhook",
];

/** Rules with such a value in each place. */
const hostileRules = (value: unknown) => [
  ...Object.keys(rule).map((field) => ({ ...rule, [field]: value })),
  { ...rule, id: value },
  // A list of names is what it takes.
  ...(Array.isArray(value) ? [] : [{ ...rule, params: { anyOf: value } }]),
  { ...rule, params: { anyOf: [value] } },
];
describe(`hostile values (TEST_SEED=${String(seed)})`, () => {
  const requests = new ForgetfulCounts();
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  let approvalId: string;
  let raiseRequestId: string;
  let transactionId: string;
  let endpointId: string;
  before(async () => {
    service = await startTestService({ counts: requests });
    world = await newWorld(service);
    agent = await world.agent({ autoApprovalThresholdCents: 0 });
    ({ approvalId, transactionId } = await agent.hold());
    raiseRequestId = await askRaise(world, agent);
    endpointId = (await newEndpoint(world)).id;
    await elevate(world);
  });
  // More of them than some routes' caps allow.
  beforeEach(() => requests.forget());
  after(() => service.stop());

  const tokenFor = (id: OperationId): string =>
    operations[id].access.kind === "agent" ? agent.key : world.token;

  function idFor(id: OperationId): { id?: string } {
    const path = operations[id].http?.path ?? "";
    if (path.includes("/members/:id")) return { id: world.organization.userId };
    if (path.includes("/agents/:id")) return { id: agent.id };
    if (path.includes("/projects/:id")) return { id: world.organization.projectId };
    if (path.includes("/teams/:id")) return { id: world.organization.teamId };
    if (path.includes("/approvals/:id")) return { id: approvalId };
    if (path.includes("/raise-requests/:id")) return { id: raiseRequestId };
    if (path.includes("/sessions/:id")) return { id: randomUUID() };
    if (path.includes("/passkeys/:id")) return { id: "pky_01HZZZZZZZZZZZZZZZZZZZZZZZ" };
    if (path.includes("/webhooks/:id")) return { id: endpointId };
    return path.includes(":id") ? { id: transactionId } : {};
  }

  const withBody = operationList
    .map(([id]) => id)
    .filter((id) => MAY_DO_WITHOUT.includes(id) || !operations[id].body.safeParse({}).success)
    .filter((id) => operations[id].http !== null);

  it("there is a body for each operation that takes one", () => {
    const known = ["createPayment", ...Object.keys(BODIES)];
    expect(withBody.filter((id) => !known.includes(id))).to.deep.equal([]);
    for (const id of withBody)
      expect(operations[id].body.safeParse(BODIES[id]?.()).success, id).to.equal(true);
  });

  it("operators, arrays, NULs and bad surrogates fit no field of any operation", () => {
    for (const id of withBody) {
      const body = BODIES[id]?.() ?? {};
      for (const field of Object.keys(body)) {
        for (const value of HOSTILE) expectUnfit(operations[id].body, { ...body, [field]: value }, id);
      }
      for (const whole of HOSTILE) expectUnfit(operations[id].body, whole, id);
    }
    for (const id of ["setProjectApprovalRules", "setTeamApprovalRules"] as const) {
      for (const each of HOSTILE.flatMap(hostileRules)) {
        expectUnfit(operations[id].body, { rules: [each], version: 1 }, id);
      }
    }
  });

  it("each operation judges its body so: 400, nothing written", async () => {
    const before = await counts(world);
    for (const [turn, id] of withBody.entries()) {
      const body = BODIES[id]?.() ?? {};
      const fields = Object.keys(body);
      const field = fields[(seed + turn) % fields.length] ?? "";
      for (const value of [HOSTILE[(seed + turn) % HOSTILE.length], "a\ud800b"]) {
        const request = { token: tokenFor(id), ...idFor(id), body: { ...body, [field]: value } };
        await world.api.refused(id, 400, "VALIDATION_FAILED", request);
      }
      requests.forget();
    }
    expect(await counts(world)).to.deep.equal(before);
  });

  it("operators in a query fit no list, and few other texts do", () => {
    for (const [id, { query }] of lists) {
      for (const name of Object.keys(query.shape)) {
        for (const wrong of [`${name}[$gt]`, `${name}[]`, `${name}.$gt`]) {
          expectUnfit(query, { [wrong]: "a" }, id);
        }
        // Agents may have such names, and payments such words.
        if (["name", "search"].includes(name)) continue;
        for (const value of ["\u0000", "{}", '{"$gt":""}', "$gt"]) expectUnfit(query, { [name]: value }, id);
      }
    }
  });

  it("operators in a query are 400, in a path 404", async () => {
    for (const [id, operation] of lists) {
      const names = Object.keys(operation.query.shape);
      const name = names[seed % names.length] ?? "";
      for (const query of [`${name}[$gt]=`, `${name}[]=a`, `${name}.$gt=a`]) {
        const request = { token: tokenFor(id), ...idFor(id), query };
        await world.api.refused(id, 400, "VALIDATION_FAILED", request);
      }
      for (const free of names.filter((each) => ["name", "search"].includes(each))) {
        for (const value of ["\u0000", "{}", '{"$gt":""}', "$gt"]) {
          const request = { token: tokenFor(id), ...idFor(id), query: { [free]: value } };
          expect((await world.api.call(id, request)).status, `${free}=${value}`).to.be.oneOf([200, 400]);
        }
      }
    }
    for (const hostile of ['{"$gt":""}', "[$ne]", "%00", `${agent.id}%00`, "%ED%A0%80x"]) {
      const read = { token: world.token, id: encodeURI(hostile) };
      await world.api.refused("getAgent", 404, "NOT_FOUND", read);
      await world.api.refused("getWebhook", 404, "NOT_FOUND", read);
      const below = { token: world.token, id: endpointId, deliveryId: read.id };
      await world.api.refused("getWebhookDelivery", 404, "NOT_FOUND", below);
    }
  });

  it("an endpoint's URL with NULs, broken surrogates, white space or credentials is 400", async () => {
    const before = await counts(world);
    const spoilt = ["\u0000", "\ud800", "\udc00", " ", "\n", "\t", "\\"];
    const urls = [
      ...spoilt.flatMap((part) => [`https://${part}127.0.0.1:1/`, `${NOBODYS_URL}${part}x`]),
      "https://u:p@127.0.0.1:1/",
      "https://%00127.0.0.1:1/",
      `${NOBODYS_URL}#x`,
    ];
    const { token } = world;
    for (const url of urls) {
      const body = { name: "x", eventTypes: ["agent.created"], url };
      await world.api.refused("createWebhook", 400, "VALIDATION_FAILED", { token, body });
      const change = { token, id: endpointId, body: { url } };
      await world.api.refused("updateWebhook", 400, "VALIDATION_FAILED", change);
      requests.forget();
    }
    expect(await counts(world)).to.deep.equal(before);
    const { endpoint: kept } = await world.api.ok("getWebhook", 200, { token, id: endpointId });
    expect([kept.url, kept.updatedAt]).to.deep.equal([NOBODYS_URL, kept.createdAt]);
  });

  it("afterwards the organization is as it was: one hold, its agent and budget untouched", async () => {
    const books = await expectBooksAgree(world, agent);
    expect(books).to.deep.equal({ spentCents: 0, reservedCents: 100, ledgerCents: 0, entries: 0 });
    const { agent: record } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
    expect([record.version, record.state, record.budgetCents]).to.deep.equal([1, "active", 10_000]);
  });
});
