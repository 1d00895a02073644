import { randomUUID } from "node:crypto";
import type { OperationId } from "../../src/contract/registry.ts";
import { TestBudgets } from "../support/budgets.ts";
import { madeUpAssertion, madeUpRegistration } from "../support/passkeys.ts";
import {
  cardPayment,
  x402Request,
  elevate,
  newEndpoint,
  newWorld,
  NOBODYS_URL,
  type TestAgent,
  testDelivery,
  type World,
} from "../support/world.ts";
import { askRaise, raiseOrder } from "../support/raises.ts";
import { SIMULATED } from "../support/simulations.ts";
import { restricting } from "../support/restrictions.ts";

/** Well-formed, and of a provider that nobody has. */
const LOGOUT_TOKEN = [{ alg: "RS256" }, { iss: "https://127.0.0.1", aud: "x" }, {}]
  .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
  .join(".");

const ANY_CONNECTION = "x".repeat(43);
const ANY_PASSKEY = "pky_01HZZZZZZZZZZZZZZZZZZZZZZZ";

/** An endpoint at which no server listens. */
interface HeardNothing {
  readonly id: string;
  readonly deliveryId: string;
}

async function heardNothing(world: World): Promise<HeardNothing> {
  const endpoint = await newEndpoint(world);
  return { id: endpoint.id, deliveryId: await testDelivery(world, endpoint) };
}

const CALENDAR = {
  timezone: "UTC",
  resetTime: "00:00",
  weekStartsOn: "mon",
  monthStartsOn: 1,
  yearStartsIn: 1,
  version: 1,
};

/** What each operation is asked during the outage; all of it is right. */
export interface Scene {
  readonly agent: TestAgent;
  readonly asker: TestAgent;
  readonly approvalId: string;
  readonly raiseRequestId: string;
  /** Another agent's, to be refused. */
  readonly refusedId: string;
  readonly transactionId: string;
  readonly session: string;
  readonly create: { readonly name: string };
  /** Each with a delivery that has failed. One is asked about, one deleted. */
  readonly endpoints: readonly [HeardNothing, HeardNothing];
  /** A project, and a team in it, whose agent may be stopped. */
  readonly stopped: { readonly projectId: string; readonly teamId: string };
  /** The owner's token of another organization, which may be stopped as a whole. */
  readonly elsewhere: string;
}

async function withAgent(world: World): Promise<Scene["stopped"]> {
  const budgets = new TestBudgets(world);
  const projectId = await budgets.newProject();
  const teamId = await budgets.newTeam(projectId);
  await world.agent({ teamId });
  return { projectId, teamId };
}

/** What every request of the outage is about. */
export async function newScene(world: World): Promise<Scene> {
  await elevate(world);
  const [agent, asker] = [await world.agent(), await world.agent({ autoApprovalThresholdCents: 0 })];
  // What an agent's first request caches is not what the outage is about.
  await world.api.ok("listPayments", 200, { token: agent.key });
  const { email, password } = world.organization;
  const { token: session = "" } = await world.api.ok("signIn", 200, { body: { email, password } });
  const { teamId } = world.organization;
  const create = { name: `Late ${randomUUID()}`, teamId, budgetCents: 1, idempotencyKey: randomUUID() };
  const endpoints = [await heardNothing(world), await heardNothing(world)] as const;
  const stopped = await withAgent(world);
  const { token: elsewhere } = await newWorld(world.service);
  const raiseRequestId = await askRaise(world, asker);
  const refusedId = await askRaise(world, await world.agent());
  const asked = { raiseRequestId, refusedId, ...(await asker.hold()) };
  return { agent, asker, session, create, endpoints, stopped, elsewhere, ...asked };
}

/** What is asked by this operation; of those that are not named, what the agent alone tells. */
export function requestOf(id: OperationId, the: Scene, world: World) {
  const { agent, approvalId, asker, create, elsewhere, endpoints, raiseRequestId, refusedId } = the;
  const { session, stopped, transactionId } = the;
  const [{ id: endpointId, deliveryId }, { id: unwantedId }] = endpoints;
  const { email, password, projectId, teamId } = world.organization;
  const { token } = world;
  const requests: Record<string, object> = {
    signIn: { body: { email, password } },
    refreshSession: { body: { refreshToken: "refresh" } },
    setUp: {
      body: { token: "t", organizationName: "x", name: "x", email: "a@example.com", password: "p" },
    },
    checkSetUp: { body: { token: "t" } },
    checkInvite: { body: { token: "t" } },
    acceptInvite: { body: { token: "t", name: "x", password: "p" } },
    updateMember: { token, id: randomUUID(), body: { role: "member" } },
    removeMember: { token, id: randomUUID() },
    createInvite: { token, body: { email: `late-${randomUUID()}@example.com`, role: "member" } },
    mintOrganizationKey: {
      token,
      body: { name: "Late", scopes: ["agents:read"], binding: { type: "organization" } },
    },
    createProject: { token, body: { name: "Late", idempotencyKey: randomUUID() } },
    updateProject: { token, id: randomUUID(), body: { name: "Late" } },
    createTeam: { token, body: { name: "Late", idempotencyKey: randomUUID() } },
    updateTeam: { token, id: randomUUID(), body: { name: "Late" } },
    setProjectApprovalRules: { token, id: randomUUID(), body: { rules: [], version: 1 } },
    setTeamApprovalRules: { token, id: randomUUID(), body: { rules: [], version: 1 } },
    setProjectRestrictions: { token, id: randomUUID(), body: restricting() },
    setTeamRestrictions: { token, id: randomUUID(), body: restricting() },
    simulateAgentBudgetPolicy: { token, id: agent.id, body: SIMULATED.simulateAgentBudgetPolicy },
    simulateAgentRestrictions: { token, id: agent.id, body: SIMULATED.simulateAgentRestrictions },
    simulateTeamBudget: { token, id: teamId, body: SIMULATED.simulateTeamBudget },
    simulateTeamApprovalRules: { token, id: teamId, body: SIMULATED.simulateTeamApprovalRules },
    simulateTeamRestrictions: { token, id: teamId, body: SIMULATED.simulateTeamRestrictions },
    simulateProjectBudget: { token, id: projectId, body: SIMULATED.simulateProjectBudget },
    simulateProjectApprovalRules: { token, id: projectId, body: SIMULATED.simulateProjectApprovalRules },
    simulateProjectRestrictions: { token, id: projectId, body: SIMULATED.simulateProjectRestrictions },
    simulateProjectCalendar: { token, id: projectId, body: SIMULATED.simulateProjectCalendar },
    signOut: { token: session },
    changePassword: { token, body: { currentPassword: "x", newPassword: "y" } },
    updateNotifications: { token, body: { approvalMails: false } },
    endSession: { token, id: randomUUID() },
    confirmTotp: { token, body: { code: "123456" } },
    enrollPasskey: { token, body: { name: "Late", response: madeUpRegistration() } },
    updatePasskey: { token, id: ANY_PASSKEY, body: { name: "Late" } },
    removePasskey: { token, id: ANY_PASSKEY },
    signInWithPasskey: { body: { response: madeUpAssertion() } },
    stepUp: { token, body: { method: "totp", code: "123456" } },
    getConnection: { token, id: ANY_CONNECTION },
    connectClient: { token, id: agent.id, body: { connectionId: ANY_CONNECTION } },
    startSso: { body: { email: "a@example.com" } },
    finishSso: { body: { organizationId: "01890a5d-ac96-774b-bcce-b302099a8057", code: "x", state: "x" } },
    endSsoSessions: { body: { logout_token: LOGOUT_TOKEN } },
    getSso: { token },
    setSso: {
      token,
      body: {
        issuer: "https://127.0.0.1",
        clientId: "x",
        domains: ["example.com"],
        required: false,
        jit: null,
      },
    },
    removeSso: { token },
    denyConnection: { token, body: { connectionId: ANY_CONNECTION } },
    createAgent: { token, body: create },
    setAgentRestrictions: { token, id: agent.id, body: restricting() },
    updateAgentBudgetPolicy: { token, id: agent.id, body: { version: 1, budgetCents: 9_000 } },
    updateAgent: { token, id: agent.id, body: { name: "Renamed" } },
    payX402Request: { token: agent.key, body: x402Request() },
    createPayment: { token: agent.key, body: cardPayment() },
    getPayment: { token: asker.key, id: transactionId },
    getTransaction: { token, id: transactionId },
    getApproval: { token, id: approvalId },
    cancelPayment: { token: asker.key, id: transactionId },
    listPayments: { token: agent.key },
    getProjectBudget: { token, id: projectId },
    setProjectBudget: { token, id: projectId, body: { capCents: 1, teams: [], version: 1 } },
    getProjectCalendar: { token, id: projectId },
    setProjectCalendar: { token, id: projectId, body: CALENDAR },
    stopTeam: { token, id: stopped.teamId },
    stopProject: { token, id: stopped.projectId },
    stopOrganization: { token: elsewhere },
    pauseProjectAgents: { token, id: stopped.projectId },
    revokeProjectAgentKeys: { token, id: stopped.projectId },
    pauseTeamAgents: { token, id: stopped.teamId },
    revokeTeamAgentKeys: { token, id: stopped.teamId },
    getTeamBudget: { token, id: teamId },
    setTeamBudget: { token, id: teamId, body: { capCents: 1, agents: [], version: 1 } },
    requestRaise: { token: agent.key, body: raiseOrder() },
    listRaiseRequests: { token },
    getRaiseRequest: { token, id: raiseRequestId },
    grantRaiseRequest: { token, id: raiseRequestId },
    refuseRaiseRequest: { token, id: refusedId, body: { feedback: "no" } },
    approveApproval: { token, id: approvalId },
    denyApproval: { token, id: approvalId, body: { feedback: "no" } },
    decideApprovals: { token, body: { decisions: [{ id: approvalId, decision: "approve" }] } },
    createWebhook: {
      token,
      body: { name: "Late", url: NOBODYS_URL, eventTypes: ["billing.payment_failed"] },
    },
    getWebhook: { token, id: endpointId },
    updateWebhook: { token, id: endpointId, body: { name: "Late" } },
    deleteWebhook: { token, id: unwantedId },
    rotateWebhookSecret: { token, id: endpointId },
    testWebhook: { token, id: endpointId },
    listWebhookDeliveries: { token, id: endpointId },
    getWebhookDelivery: { token, id: endpointId, deliveryId },
    redeliverWebhook: { token, id: endpointId, deliveryId },
    replayWebhook: { token, id: endpointId, body: { since: new Date().toISOString() } },
    getWebhookReplay: { token, id: endpointId },
    streamChanges: { token },
    getTransactionStory: { token, id: transactionId },
    getTransactionExplanation: { token, id: transactionId },
    getApprovalContext: { token, id: approvalId },
  };
  return requests[id] ?? { token, id: agent.id };
}
