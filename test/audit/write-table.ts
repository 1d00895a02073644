import { randomUUID } from "node:crypto";
import { generate } from "otplib";
import { z } from "zod";
import { creationOptions } from "../../src/contract/webauthn.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import type { Request } from "../support/contract-api.ts";
import { authenticatorFor, enrolPasskey, signInBody, stepUpBody } from "../support/passkeys.ts";
import { answerAt, startIdentityProvider } from "../support/identity-provider.ts";
import { ask, Browser, connecting, newPkce, OAuthCaller } from "../support/oauth.ts";
import { invite, join, newEmail, newPassword } from "../support/people.ts";
import type { Card } from "../../src/engines/card-network/shapes.ts";
import { testCardNetwork } from "../support/card-network.ts";
import { PASSWORD, type TestService } from "../support/service.ts";
import {
  elevate,
  newEndpoint,
  newWorld,
  organizationKey,
  testDelivery,
  type World,
} from "../support/world.ts";
import { askRaise } from "../support/raises.ts";
import { restricting } from "../support/restrictions.ts";

/** One call of an operation, and what its entry must say of it: exactly null, or an object that has at least these fields. */
export interface Prepared {
  /** Over REST; or else as a tool. */
  readonly request?: Request;
  readonly byTool?: () => Promise<unknown>;
  readonly before?: object;
  readonly after?: object;
}

export interface WritingRow {
  /** Whether its entry waits in the outbox in the write's own transaction, or from before it. */
  readonly kind: "committed" | "begun";
  readonly prepare: (service: TestService) => Promise<Prepared>;
}

/** Why an operation that is no GET needs no record in the outbox. */
export interface HarmlessRow {
  readonly kind: "harmless";
  readonly because: string;
}

/** An owner's sign-in costs more than most rows, so those that leave the owner's sessions and factors alone share one. */
const shared = new WeakMap<TestService, Promise<World>>();
function sharedWorld(service: TestService): Promise<World> {
  const world = shared.get(service) ?? newWorld(service);
  shared.set(service, world);
  return world;
}

const rowOf =
  (kind: WritingRow["kind"], worldOn = sharedWorld) =>
  (prepare: (world: World) => Promise<Prepared>): WritingRow => ({
    kind,
    async prepare(service) {
      const world = await worldOn(service);
      await elevate(world);
      return prepare(world);
    },
  });
/** Sets an identity provider of the world's own, whose people become members. */
async function withProvider(world: World) {
  const { callbackUrl } = await world.api.ok("getSso", 200, { token: world.token });
  const provider = await startIdentityProvider(callbackUrl);
  const { clientId, clientSecret, issuer } = provider;
  const domain = `${randomUUID()}.example.com`;
  const choice = {
    issuer,
    clientId,
    clientSecret,
    domains: [domain],
    required: false,
    jit: { role: "member" },
  } as const;
  await world.api.ok("setSso", 200, { token: world.token, body: choice });
  const email = `ada@${domain}`;
  async function comeBack(): Promise<Record<string, string>> {
    const begun = await world.api.call("startSso", { body: { email } });
    const flow = /svc_sso[^=]*=([^;]+)/.exec(begun.headers.getSetCookie().join())?.[1] ?? "";
    const { url } = z.object({ url: z.string() }).parse(begun.body);
    const returned = await provider.signIn(url, { sub: "subject", email, email_verified: true });
    return { flow, ...answerAt(returned) };
  }
  return { provider, issuer, choice, comeBack };
}

const committed = rowOf("committed");
const alone = rowOf("committed", newWorld);
const begun = rowOf("begun");
const CHALLENGE: HarmlessRow = { kind: "harmless", because: "a challenge is worth nothing without a device" };

const credentials = ({ organization: { email, password } }: World) => ({ email, password });

async function secondSession(world: World) {
  const other = await world.api.ok("signIn", 200, { body: credentials(world) });
  const { token } = world;
  const { sessions } = await world.api.ok("listSessions", 200, { token });
  const id = sessions.find(({ current }) => !current)?.id ?? "";
  return { id, other };
}

async function asking({ service: { baseUrl } }: World) {
  const browser = new Browser();
  const client = await OAuthCaller.register(baseUrl);
  return { browser, connectionId: await ask(browser, client.authorizationUrl(newPkce())) };
}

const onAgent = (prepare: (world: World, id: string) => Promise<Prepared> | Prepared) =>
  begun(async (world) => prepare(world, (await world.agent()).id));

const onHeld = (body?: object) =>
  begun(async (world) => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId: id } = await agent.hold();
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) } };
  });

const withCards = new WeakMap<TestService, Promise<World>>();
function worldWithCards(service: TestService): Promise<World> {
  const world = withCards.get(service) ?? connectedWorld(service);
  withCards.set(service, world);
  return world;
}

const ISSUER_KEY = "rk_test_1234";

/** An organization of its own, whose card issuer is connected. */
async function connectedWorld(service: TestService): Promise<World> {
  const world = await newWorld(service);
  await elevate(world);
  const { api, token } = world;
  await api.ok("connectCardIssuer", 200, {
    token,
    body: { apiKey: ISSUER_KEY, publishableKey: "pk_test_1234" },
  });
  return world;
}

const onCard = (body: object) =>
  rowOf(
    "begun",
    worldWithCards,
  )(async (world) => {
    const { transaction } = await (await world.agent()).pay();
    const { network } = (await testCardNetwork()).accountOf(ISSUER_KEY);
    const card = network.store
      .all<Card>("issuing.card")
      .find(({ metadata }) => metadata["transaction"] === transaction.id);
    network.forceCapture(card?.id ?? "", 100, MERCHANT);
    return { request: { token: world.token, id: transaction.id, body } };
  });

const MERCHANT = {
  name: "Shop",
  category: "book_stores",
  category_code: "5942",
  network_id: "1",
  country: "US",
};

const create = (operation: "createProject" | "createTeam") =>
  committed(({ token }) =>
    Promise.resolve({
      request: { token, body: { name: operation, description: "said" } },
      after: { name: operation, description: "said" },
    }),
  );

const createByTool = (tool: "create_project" | "create_team") =>
  committed(async (world) => {
    const { token } = await organizationKey(world);
    const caller = await McpCaller.connect(world.service.baseUrl, token);
    return {
      async byTool() {
        const answer = await caller.call(tool, { name: tool, idempotencyKey: "k" });
        await caller.client.close();
        return answer;
      },
      after: { name: tool },
    };
  });

const containerOf = async ({ api, token }: World, kind: "project" | "team"): Promise<string> => {
  if (kind === "project")
    return (await api.ok("createProject", 201, { token, body: { name: "Old" } })).project.id;
  return (await api.ok("createTeam", 201, { token, body: { name: "Old" } })).team.id;
};

const onContainer = (kind: "project" | "team", rest: Omit<Prepared, "request">, body?: object) =>
  committed(async (world) => {
    const id = await containerOf(world, kind);
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) }, ...rest };
  });
const updates = (kind: "project" | "team") =>
  onContainer(kind, { before: { name: "Old" }, after: { name: "New" } }, { name: "New" });
const archives = (kind: "project" | "team") =>
  onContainer(kind, { before: { state: "active" }, after: { state: "archived" } });
const setsRules = (kind: "project" | "team") =>
  onContainer(
    kind,
    { before: { rules: [], version: 1 }, after: { version: 2 } },
    { rules: [{ type: "amount_above", params: { amountCents: 100 } }], version: 1 },
  );
const setsRestrictions = (kind: "project" | "team") =>
  onContainer(
    kind,
    { before: restricting(), after: restricting({ rails: { only: ["card"] } }, 2) },
    restricting({ rails: { only: ["card"] } }),
  );
const CALENDAR = {
  timezone: "UTC",
  resetTime: "00:00",
  weekStartsOn: "mon",
  monthStartsOn: 1,
  yearStartsIn: 1,
} as const;

const setsBudget = (kind: "project" | "team") =>
  begun(async (world) => {
    const id = await containerOf(world, kind);
    const children = kind === "project" ? { teams: [] } : { agents: [] };
    return {
      request: { token: world.token, id, body: { capCents: 500, version: 1, ...children } },
      before: { capCents: null, version: 1 },
      after: { capCents: 500, version: 2 },
    };
  });

const stops = (kind: "project" | "team", said: (agentId: string) => Omit<Prepared, "request">) =>
  rowOf(
    "begun",
    newWorld,
  )(async (world) => {
    const agent = await world.agent();
    const { projectId, teamId } = world.organization;
    const request = { token: world.token, id: kind === "team" ? teamId : projectId };
    return { request, ...said(agent.id) };
  });

const onKey = (rest: Omit<Prepared, "request">) =>
  committed(async (world) => {
    const { id } = await organizationKey(world);
    return { request: { token: world.token, id }, ...rest };
  });

const onEndpoint = (kind: "committed" | "begun", rest: Omit<Prepared, "request">, body?: object) =>
  rowOf(kind)(async (world) => {
    const { id } = await newEndpoint(world);
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) }, ...rest };
  });

const onPasskey = (rest: Omit<Prepared, "request">, body?: object) =>
  committed(async (world) => {
    await enrolPasskey(world, authenticatorFor(world), { name: "Second" });
    const { id } = await enrolPasskey(world, authenticatorFor(world), { name: "Laptop" });
    return { request: { token: world.token, id, ...(body === undefined ? {} : { body }) }, ...rest };
  });

/**
 * Every operation that changes something but agents' payments, written out by hand: what one call of it is, and what its entry says
 * when nothing but the outbox is left of it. A test compares the operations with the contract's.
 */
export const WRITES: Readonly<Partial<Record<OperationId, WritingRow | HarmlessRow>>> = {
  // First, since it is for a service without an organization.
  setUp: {
    kind: "committed",
    async prepare(service) {
      const link = new URL((await service.setUpLink()) ?? "");
      const token = new URLSearchParams(link.hash.slice(1)).get("token");
      const body = { token, organizationName: "First", name: "Owner", email: newEmail(), password: PASSWORD };
      return { request: { body } };
    },
  },
  checkSetUp: { kind: "harmless", because: "it only reads" },
  checkInvite: { kind: "harmless", because: "it only reads" },
  signIn: committed(async (world) => ({ request: { body: credentials(world) } })),
  refreshSession: committed(async (world) => {
    const { refreshToken } = await world.api.ok("signIn", 200, { body: credentials(world) });
    return { request: { body: { refreshToken } } };
  }),
  signOut: alone(({ token }) => Promise.resolve({ request: { token } })),
  endSession: alone(async (world) => ({
    request: { token: world.token, id: (await secondSession(world)).id },
  })),
  endOtherSessions: alone(async (world) => {
    await secondSession(world);
    return { request: { token: world.token }, after: { sessionsEnded: 1 } };
  }),
  changePassword: alone(async (world) => {
    await secondSession(world);
    const body = { currentPassword: world.organization.password, newPassword: newPassword() };
    return { request: { token: world.token, body }, after: { sessionsEnded: 1 } };
  }),
  updateNotifications: committed(({ token }) =>
    Promise.resolve({
      request: { token, body: { approvalMails: false } },
      before: { approvalMails: true },
      after: { approvalMails: false },
    }),
  ),
  enrollTotp: alone(({ token }) => Promise.resolve({ request: { token } })),
  confirmTotp: alone(async ({ api, token }) => {
    const { secret } = await api.ok("enrollTotp", 201, { token });
    return { request: { token, body: { code: await generate({ secret }) } } };
  }),
  stepUp: committed(async (world) => {
    const authenticator = authenticatorFor(world);
    await enrolPasskey(world, authenticator);
    return { request: { token: world.token, body: await stepUpBody(world, authenticator) } };
  }),
  passkeyOptions: CHALLENGE,
  startSso: { kind: "harmless", because: "it writes nothing" },
  finishSso: committed(async (world) => {
    const { comeBack } = await withProvider(world);
    return { request: { body: await comeBack() }, after: { role: "member" } };
  }),
  endSsoSessions: committed(async (world) => {
    const { comeBack, provider } = await withProvider(world);
    await world.api.ok("finishSso", 200, { body: await comeBack() });
    const body = { logout_token: await provider.logoutToken({ sub: "subject" }) };
    return { request: { body }, after: { endedSessions: 1 } };
  }),
  setSso: committed(async (world) => {
    const { choice, issuer } = await withProvider(world);
    const body = { ...choice, jit: null };
    return {
      request: { token: world.token, body },
      before: { issuer, jitRole: "member" },
      after: { issuer, jitRole: null },
    };
  }),
  removeSso: committed(async (world) => {
    const { issuer } = await withProvider(world);
    return { request: { token: world.token }, before: { issuer } };
  }),
  passkeySignInOptions: CHALLENGE,
  stepUpOptions: CHALLENGE,
  enrollPasskey: committed(async (world) => {
    const { token } = world;
    const options = creationOptions.parse(await world.api.ok("passkeyOptions", 200, { token }));
    const body = { name: "Phone", response: authenticatorFor(world).create(options) };
    return { request: { token, body }, after: { name: "Phone" } };
  }),
  updatePasskey: onPasskey({ before: { name: "Laptop" }, after: { name: "Phone" } }, { name: "Phone" }),
  removePasskey: onPasskey({ before: { name: "Laptop" } }),
  signInWithPasskey: committed(async (world) => {
    const authenticator = authenticatorFor(world);
    await enrolPasskey(world, authenticator);
    return { request: { body: await signInBody(world, authenticator) } };
  }),
  updateMember: committed(async (world) => {
    const { id } = await join(world, "member");
    const request = { token: world.token, id, body: { role: "admin" } };
    return { request, before: { role: "member" }, after: { role: "admin" } };
  }),
  removeMember: committed(async (world) => {
    const { email, id } = await join(world, "member");
    return { request: { token: world.token, id }, before: { role: "member", email } };
  }),
  createInvite: committed(({ token }) => {
    const body = { email: newEmail(), role: "member" };
    return Promise.resolve({ request: { token, body }, after: body });
  }),
  revokeInvite: committed(async (world) => {
    const { email, id } = (await invite(world, "member")).invite;
    return { request: { token: world.token, id }, before: { email, role: "member" } };
  }),
  acceptInvite: committed(async (world) => {
    const { invite: made, token } = await invite(world, "member");
    const body = { token, name: "New", password: PASSWORD };
    return { request: { body }, before: { email: made.email, role: "member" }, after: { role: "member" } };
  }),
  updateOrganization: committed(({ token }) => {
    const after = { name: "Renamed", timezone: "Europe/Berlin", walletOwner: `0x${"1".repeat(40)}` };
    const request = { token, body: after };
    return Promise.resolve({ request, before: { timezone: null, walletOwner: null }, after });
  }),
  mintOrganizationKey: committed(({ token }) => {
    const body = { name: "Key", scopes: ["agents:read"], binding: { type: "organization" } };
    return Promise.resolve({ request: { token, body }, after: body });
  }),
  rotateOrganizationKey: onKey({ before: { name: "Key" }, after: { name: "Key" } }),
  revokeOrganizationKey: onKey({ before: { name: "Key" } }),
  createProject: create("createProject"),
  createProjectByTool: createByTool("create_project"),
  updateProject: updates("project"),
  archiveProject: archives("project"),
  createTeam: create("createTeam"),
  createTeamByTool: createByTool("create_team"),
  updateTeam: updates("team"),
  archiveTeam: archives("team"),
  setProjectApprovalRules: setsRules("project"),
  setTeamApprovalRules: setsRules("team"),
  setProjectRestrictions: setsRestrictions("project"),
  setTeamRestrictions: setsRestrictions("team"),
  setProjectCalendar: begun(async (world) => {
    const calendar = { ...CALENDAR, version: 1 };
    const body = { ...calendar, timezone: "Europe/Berlin" };
    const id = await containerOf(world, "project");
    return {
      request: { token: world.token, id, body },
      before: calendar,
      after: { ...body, version: 2 },
    };
  }),
  setProjectBudget: setsBudget("project"),
  setTeamBudget: setsBudget("team"),
  stopTeam: stops("team", () => ({ after: { revokeKeys: false } })),
  stopProject: stops("project", () => ({ after: { revokeKeys: false } })),
  stopOrganization: rowOf(
    "begun",
    newWorld,
  )(async (world) => {
    await world.agent();
    return { request: { token: world.token }, after: { revokeKeys: false } };
  }),
  pauseTeamAgents: stops("team", (id) => ({ before: { active: [id] }, after: { paused: [id] } })),
  pauseProjectAgents: stops("project", (id) => ({ before: { active: [id] }, after: { paused: [id] } })),
  revokeTeamAgentKeys: stops("team", () => ({ before: {}, after: { keys: [] } })),
  revokeProjectAgentKeys: stops("project", () => ({ before: {}, after: { keys: [] } })),
  createAgent: committed(({ organization: { teamId }, token }) => {
    const body = { name: "Agent", teamId, budgetCents: 500 };
    return Promise.resolve({
      request: { token, body },
      after: { budgetCents: 500, version: 1, scopes: null },
    });
  }),
  updateAgent: onAgent(({ token }, id) => ({
    request: { token, id, body: { name: "New" } },
    before: { name: "Agent" },
    after: { name: "New" },
  })),
  updateAgentBudgetPolicy: onAgent(({ token }, id) => ({
    request: { token, id, body: { budgetCents: 700, version: 1 } },
    before: { budgetCents: 10_000, version: 1 },
    after: { budgetCents: 700, version: 2 },
  })),
  setAgentRestrictions: committed(async (world) => {
    const { id } = await world.agent();
    return {
      request: { token: world.token, id, body: restricting({ recipients: { only: null, never: ["Evil"] } }) },
      before: restricting(),
      after: restricting({ recipients: { only: null, never: ["Evil"] } }, 2),
    };
  }),
  pauseAgent: onAgent(({ token }, id) => ({
    request: { token, id },
    before: { state: "active" },
    after: { state: "paused" },
  })),
  resumeAgent: onAgent(async ({ api, token }, id) => {
    await api.ok("pauseAgent", 200, { token, id });
    return { request: { token, id }, before: { state: "paused" }, after: { state: "active" } };
  }),
  mintAgentKey: onAgent(async ({ api, token }, id) => {
    await api.ok("revokeAgentKey", 200, { token, id });
    return { request: { token, id }, after: {} };
  }),
  connectClient: onAgent(async (world, id) => {
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id });
    const { browser, connectionId } = await asking(world);
    const request = connecting(world, browser, id, { connectionId });
    return { request, after: { clientName: "Test client" } };
  }),
  denyConnection: begun(async (world) => {
    const { browser, connectionId } = await asking(world);
    const { id: _id, ...request } = connecting(world, browser, "", { connectionId });
    return { request, after: { clientName: "Test client" } };
  }),
  revokeAgentKey: onAgent(({ token }, id) => ({ request: { token, id }, before: {} })),
  archiveAgent: onAgent(({ token }, id) => ({
    request: { token, id },
    before: { state: "active" },
    after: { state: "archived" },
  })),
  grantRaiseRequest: begun(async (world) => {
    const agent = await world.agent();
    const id = await askRaise(world, agent);
    return { request: { token: world.token, id }, after: { agentId: agent.id, endsAt: "window" } };
  }),
  refuseRaiseRequest: begun(async (world) => {
    const agent = await world.agent();
    const id = await askRaise(world, agent);
    const request = { token: world.token, id, body: { feedback: "no" } };
    return { request, after: { agentId: agent.id, amountCents: 5_000_000 } };
  }),
  approveApproval: onHeld(),
  denyApproval: onHeld({ feedback: "no" }),
  decideApprovals: begun(async (world) => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId: id } = await agent.hold();
    const decisions = [{ id, decision: "approve" }];
    return { request: { token: world.token, body: { decisions } }, after: { decisions } };
  }),
  createWebhook: committed(({ token }) => {
    const said = { name: "Endpoint", url: "https://127.0.0.1:1/" };
    return Promise.resolve({ request: { token, body: { ...said, eventTypes: ["*"] } }, after: said });
  }),
  updateWebhook: onEndpoint(
    "committed",
    { before: { name: "Endpoint" }, after: { name: "New" } },
    { name: "New" },
  ),
  deleteWebhook: onEndpoint("committed", { before: { name: "Endpoint" } }),
  rotateWebhookSecret: onEndpoint("committed", {}),
  testWebhook: onEndpoint("begun", {}),
  redeliverWebhook: begun(async (world) => {
    const endpoint = await newEndpoint(world);
    const deliveryId = await testDelivery(world, endpoint);
    return { request: { token: world.token, id: endpoint.id, deliveryId } };
  }),
  replayWebhook: committed(async (world) => {
    const { id } = await newEndpoint(world);
    const since = new Date(Date.now() - 60_000).toISOString();
    return { request: { token: world.token, id, body: { since } } };
  }),
  fundAgent: onAgent(({ token }, id) => ({
    request: { token, id, body: { amountCents: 100 } },
    after: { amountCents: 100 },
  })),
  connectCardIssuer: rowOf(
    "begun",
    newWorld,
  )(({ token }) =>
    Promise.resolve({
      request: { token, body: { apiKey: ISSUER_KEY } },
      after: { issuer: "stripe" },
    }),
  ),
  disconnectCardIssuer: rowOf(
    "begun",
    connectedWorld,
  )(({ token }) => Promise.resolve({ request: { token }, before: { issuer: "stripe" } })),
  checkCardIssuer: rowOf("begun", worldWithCards)(({ token }) => Promise.resolve({ request: { token } })),
  viewCard: onCard({ nonce: "nonce" }),
  disputeTransaction: onCard({ reason: "fraudulent", explanation: "Not ours." }),
  fundAgentInSandbox: onAgent(({ token }, id) => ({
    request: { token, id, body: { amountCents: 100 } },
    after: { amountCents: 100 },
  })),
  depositToTreasury: begun(({ token }) =>
    Promise.resolve({ request: { token, body: { amountCents: 100 } }, after: { amountCents: 100 } }),
  ),
  failBilling: begun(({ token }) => Promise.resolve({ request: { token } })),
};
