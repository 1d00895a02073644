import { generate } from "otplib";
import { creationOptions } from "../../src/contract/webauthn.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { authenticatorFor, enrolPasskey, signInBody, stepUpBody } from "../support/passkeys.ts";
import { connecting } from "../support/oauth.ts";
import { invite, join, newEmail, newPassword } from "../support/people.ts";
import { PASSWORD } from "../support/service.ts";
import { newEndpoint, newWorld, testDelivery } from "../support/world.ts";
import { askRaise } from "../support/raises.ts";
import { restricting } from "../support/restrictions.ts";
import { UTC } from "../support/simulations.ts";
import {
  alone,
  archives,
  asking,
  begun,
  CHALLENGE,
  committed,
  connectedWorld,
  containerOf,
  create,
  createByTool,
  credentials,
  type HarmlessRow,
  ISSUER_KEY,
  onAgent,
  onCard,
  onEndpoint,
  onHeld,
  onKey,
  onPasskey,
  rowOf,
  secondSession,
  setsBudget,
  setsRestrictions,
  setsRules,
  stops,
  updates,
  withProvider,
  worldWithCards,
  type WritingRow,
} from "./write-rows.ts";

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
    const calendar = { ...UTC, version: 1 };
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
  disputeTransaction: onCard(
    { reason: "fraudulent", explanation: "Not ours." },
    { reason: "fraudulent", amountCents: 100 },
  ),
  fundAgentInSandbox: onAgent(({ token }, id) => ({
    request: { token, id, body: { amountCents: 100 } },
    after: { amountCents: 100 },
  })),
  depositToTreasury: begun(({ token }) =>
    Promise.resolve({ request: { token, body: { amountCents: 100 } }, after: { amountCents: 100 } }),
  ),
  failBilling: begun(({ token }) => Promise.resolve({ request: { token } })),
};
