import { expect } from "chai";
import { readAddresses } from "../../server/config.ts";
import { connect } from "../../src/store/connections.ts";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import { ANSWER_MS, inTime } from "../support/in-time.ts";
import type { Answer } from "../support/api.ts";
import { ForgetfulCounts } from "../support/forgetful-counts.ts";
import { isSoak, someOrAll } from "../support/soak.ts";
import type { TestService } from "../support/service.ts";
import { booksOnceAgreed, expectBooksAgree } from "../support/books.ts";
import { codeOf, expectError } from "../support/contract-api.ts";
import { startServiceOn } from "../support/own-service.ts";
import { send } from "../support/wire.ts";
import { cardPayment, newWorld, type TestAgent, times, until, type World } from "../support/world.ts";
import { testPayloads } from "../support/payloads.ts";
import { ownEngines, type OwnEngines } from "./engines.ts";
import { newScene, requestOf, type Scene } from "./requests.ts";

/** Less than a call to an engine takes to fail, however busy the service is with such calls. */
const READY_MS = 3_000;
const RECOVERY_MS = 20_000;
const IN_FLIGHT = 20;

/** Operations that need no actor: they are answered while Temporal is away. */
const WITHOUT_TEMPORAL: readonly OperationId[] = [
  // Each decision is answered by itself, with its own 503.
  "decideApprovals",
  // Its shop can't be reached, so nothing is to be decided.
  "payX402Request",
  ...(["signIn", "refreshSession", "signOut", "getMe", "enrollTotp", "confirmTotp", "stepUp"] as const),
  ...(["changePassword", "listSessions", "endSession", "endOtherSessions"] as const),
  ...(["getNotifications", "updateNotifications"] as const),
  ...(["passkeyOptions", "enrollPasskey", "listPasskeys", "updatePasskey", "removePasskey"] as const),
  ...(["passkeySignInOptions", "signInWithPasskey", "stepUpOptions"] as const),
  ...(["listAgents", "summarizeAgents", "getAgent", "connectAgent"] as const),
  ...(["startSso", "finishSso", "endSsoSessions", "getSso", "setSso", "removeSso"] as const),
  ...(["getConnection", "connectClient", "denyConnection"] as const),
  ...(["listPendingApprovals", "listCompletedApprovals"] as const),
  ...(["listRaiseRequests", "getRaiseRequest", "refuseRaiseRequest"] as const),
  ...([
    "listTransactions",
    "exportTransactions",
    "getTransaction",
    "streamChanges",
    "summarizeTransactions",
    "getTransactionStory",
    "getTransactionExplanation",
    "getAgentWallet",
    "verifyAuditLog",
    "getApproval",
    "listPayments",
    "getPayment",
  ] as const),
  ...(["setUp", "checkSetUp", "listMembers", "updateMember", "removeMember"] as const),
  ...([
    "getOrganization",
    "updateOrganization",
    "fundAgent",
    "fundAgentInSandbox",
    "listCardLedger",
  ] as const),
  ...(["depositToTreasury", "failBilling"] as const),
  ...(["listRails", "connectCardIssuer", "disconnectCardIssuer", "checkCardIssuer"] as const),
  ...(["viewCard", "disputeTransaction"] as const),
  ...(["createInvite", "listInvites", "revokeInvite", "checkInvite", "acceptInvite"] as const),
  ...(["mintOrganizationKey", "listOrganizationKeys"] as const),
  ...(["listAuditLog", "exportAuditLog"] as const),
  ...(["rotateOrganizationKey", "revokeOrganizationKey"] as const),
  ...(["listProjects", "getProject", "updateProject", "archiveProject"] as const),
  ...(["createTeam", "listTeams", "getTeam", "updateTeam", "archiveTeam"] as const),
  ...(["getProjectApprovalRules", "setProjectApprovalRules"] as const),
  ...(["getTeamApprovalRules", "setTeamApprovalRules"] as const),
  ...(["getProjectRestrictions", "setProjectRestrictions"] as const),
  ...(["getTeamRestrictions", "setTeamRestrictions", "getAgentRestrictions"] as const),
  ...(["simulateAgentBudgetPolicy", "simulateAgentRestrictions", "simulateTeamBudget"] as const),
  ...(["simulateTeamApprovalRules", "simulateTeamRestrictions", "simulateProjectBudget"] as const),
  ...(["simulateProjectApprovalRules", "simulateProjectRestrictions", "simulateProjectCalendar"] as const),
  ...(["createWebhook", "listWebhooks", "getWebhook", "updateWebhook", "deleteWebhook"] as const),
  ...(["listWebhookDeliveries", "getWebhookDelivery", "getWebhookReplay"] as const),
];

/** Refused unread, since what they are given here was made up. */
const REFUSED_UNREAD: readonly OperationId[] = [
  "refreshSession",
  "setUp",
  "checkSetUp",
  "checkInvite",
  "acceptInvite",
  "finishSso",
];

function expectUnavailable(id: string, answer: Answer): void {
  const code = codeOf(answer);
  expect([answer.status, code], `${id}: ${JSON.stringify(answer.body)}`).to.deep.equal([
    503,
    code === "CREATE_RETRYABLE" ? code : "SERVICE_UNAVAILABLE",
  ]);
  expect(expectError(answer).retry_after_seconds, id).to.be.at.least(1);
}

describe("an engine that is gone or hung", () => {
  const requestCounts = new ForgetfulCounts();
  let engines: OwnEngines;
  let service: TestService;
  let world: World;
  before(async () => {
    engines = await ownEngines();
    service = await startServiceOn({ env: engines.env, counts: requestCounts });
    world = await newWorld(service);
  });
  // The same person signs in again and again.
  beforeEach(() => requestCounts.forget());
  after(async () => {
    await service?.stop();
    await engines?.stop();
  });

  /** Every kind of request at once; each must be answered in time, and is. */
  async function askEverything(the: Scene): Promise<Map<OperationId, Answer>> {
    const routes = operationList.flatMap(([id, { http }]) => (http === null ? [] : [id]));
    const asked = routes.map(
      async (id) => [id, await inTime(id, world.api.call(id, requestOf(id, the, world)))] as const,
    );
    return new Map(await Promise.all(asked));
  }

  const ready = async () => {
    const { body, status } = await send(service.baseUrl, "/readyz");
    return { status, body };
  };

  const isWhole = ({ body }: Awaited<ReturnType<typeof ready>>): boolean =>
    JSON.stringify(body).includes('"missing":[]');

  const untilReady = () =>
    until("the engines can be used again", async () => (isWhole(await ready()) ? true : null), RECOVERY_MS);

  /** The known states may be some seconds old. */
  const unready = (missing: readonly string[]) =>
    until(
      `/readyz names ${missing.join(", ")}`,
      async () => {
        const answer = await inTime("/readyz", ready(), READY_MS);
        expect(answer.status, "the process takes requests").to.equal(200);
        return JSON.stringify(answer.body).includes(`"missing":${JSON.stringify(missing)}`) ? answer : null;
      },
      ANSWER_MS,
    );

  const mcpTool = (key: string, name: string) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: {} },
    });
    return send(service.baseUrl, "/mcp", { method: "POST", headers, body });
  };

  const untilAnswered = (id: OperationId, request: object): Promise<Answer> =>
    until(
      `${id} is answered`,
      async () => {
        const answer = await world.api.call(id, request);
        return answer.status === 503 ? null : answer;
      },
      RECOVERY_MS,
    );

  /** A create that was answered 503 is finished by its replay: one agent, never two. */
  async function expectOneAgent({ create }: Scene): Promise<void> {
    const { status } = await untilAnswered("createAgent", { token: world.token, body: create });
    expect(status).to.be.oneOf([200, 201]);
    expect(await service.db.collection("agents").countDocuments({ name: create.name })).to.equal(1);
  }

  /** Payments that were under way when it happened, sent again with their keys until every one is known. */
  async function replay(
    agent: TestAgent,
    bodies: readonly object[],
    first: readonly Answer[],
  ): Promise<void> {
    for (const [index, body] of bodies.entries()) {
      const replayed = await untilAnswered("createPayment", { token: agent.key, body });
      expect(replayed.status).to.be.oneOf(first[index]?.status === 201 ? [200] : [200, 201]);
      expect(JSON.stringify(replayed.body)).to.include('"status":"approved"');
    }
    const books = await expectBooksAgree(world, agent);
    expect(books).to.deep.include({
      spentCents: 100 * bodies.length,
      entries: bodies.length,
      reservedCents: 0,
    });
  }

  /** Breaks something under load, asks everything meanwhile, mends it, and audits what became of it all. */
  async function outage(
    missing: readonly string[],
    breaks: () => void | Promise<void>,
    mends: () => void | Promise<void>,
  ) {
    const the = await newScene(world);
    const victim = await world.agent();
    const bodies = times(IN_FLIGHT, () => cardPayment());
    const paying = bodies.map((body) =>
      inTime("a payment under way", world.api.call("createPayment", { token: victim.key, body })),
    );
    await breaks();
    const during = Promise.all([
      Promise.all(paying),
      askEverything(the),
      inTime("a tool", mcpTool(the.agent.key, "get_budget")),
      unready(missing),
      send(service.baseUrl, "/healthz"),
    ]);
    await Promise.allSettled([during]);
    await mends();
    const [inFlight, answers, tool, , health] = await during;
    expect(health.status).to.equal(200);
    await untilReady();
    for (const answer of inFlight.filter(({ status }) => status !== 201))
      expectUnavailable("in flight", answer);
    await replay(victim, bodies, inFlight);
    await expectOneAgent(the);
    return { the, answers, tool };
  }

  /** What was on hold when it happened is decided once, before or after. */
  async function expectHeldIsSettled({ asker, transactionId }: Scene): Promise<void> {
    const { status } = await untilAnswered("cancelPayment", { token: asker.key, id: transactionId });
    expect(status).to.be.oneOf([200, 409]);
    await booksOnceAgreed(world, asker);
    expect((await asker.pay()).transaction.status).to.equal("pending");
  }

  const mongodb: readonly (readonly [string, () => void | Promise<void>, () => void | Promise<void>])[] = [
    ["hung", () => engines.mongodb.freeze(), () => engines.mongodb.thaw()],
    ["gone", () => engines.mongodb.kill(), () => engines.mongodb.start()],
  ];
  for (const [how, breaks, mends] of someOrAll(mongodb, 1)) {
    it(`MongoDB ${how}: every request is 503 within 5 s; later each payment was made exactly once`, async () => {
      const { answers, the, tool } = await outage(["MongoDB"], breaks, mends);
      for (const [id, answer] of answers) {
        if (REFUSED_UNREAD.includes(id)) expect(answer.status, id).to.be.oneOf([401, 404, 503]);
        else expectUnavailable(id, answer);
      }
      expectUnavailable("get_budget", tool);
      await expectHeldIsSettled(the);
    });
  }

  const temporal: typeof mongodb = [
    ["hung", () => engines.temporal.freeze(), () => engines.temporal.thaw()],
    ["gone", () => engines.temporal.kill(), () => engines.temporal.start()],
  ];
  for (const [how, breaks, mends] of someOrAll(temporal, 1)) {
    it(`Temporal ${how}: what needs an actor is 503 in 5 s, reads go on, each payment is made once`, async () => {
      const { answers, the, tool } = await outage(["Temporal", "a worker"], breaks, mends);
      for (const [id, answer] of answers) {
        if (WITHOUT_TEMPORAL.includes(id)) expect(answer.status, id).to.be.below(500);
        else expectUnavailable(id, answer);
      }
      expect(tool.status).to.equal(200);
      expect(JSON.stringify(tool.body)).to.include("SERVICE_UNAVAILABLE").and.to.include('"isError":true');
      await expectHeldIsSettled(the);
    });
  }

  // In `npm test`, `restart/killed` tests it where the whole process dies.
  const replacedUnderDeath = async (): Promise<void> => {
    const { token } = world;
    for (const afterMs of [0, 40, 120]) {
      await untilReady();
      const project = await world.api.ok("createProject", 201, { token, body: { name: "Late" } });
      const projectId = project.project.id;
      const { team } = await world.api.ok("createTeam", 201, { token, body: { name: "Late", projectId } });
      const agents = await Promise.all(times(6, () => world.agent({ teamId: team.id })));
      const spent = { token: agents[0]?.key, body: cardPayment({ amountCents: 300 }) };
      expect((await untilAnswered("createPayment", spent)).status).to.be.oneOf([200, 201]);
      const named = agents.map(({ id }) => ({ agentId: id, budgetCents: 5_000 }));
      const body = { capCents: 1_000, agents: named, version: 1 };
      const putting = inTime("a replacement", world.api.call("setTeamBudget", { token, id: team.id, body }));
      await new Promise((resolve) => setTimeout(resolve, afterMs)); // somewhere in its course
      await engines.temporal.kill();
      const answer = await putting;
      await engines.temporal.start();
      if (answer.status !== 200) expectUnavailable("setTeamBudget", answer);
      // Until its actor has carried it through.
      await untilAnswered("getTeamBudget", { token, id: team.id });
      const shown = await world.api.ok("getTeamBudget", 200, { token, id: team.id });
      const isReplaced = shown.version === 2;
      expect(isReplaced || answer.status !== 200, "an answered one stands").to.equal(true);
      const budgetCents = isReplaced ? 5_000 : 10_000;
      expect(shown.capCents).to.equal(isReplaced ? 1_000 : null);
      expect(shown.agents.map((child) => child.budgetCents)).to.deep.equal(agents.map(() => budgetCents));
      for (const { id } of agents) {
        await until(
          "its policy is as its team's budget says",
          async () => {
            const policy = await world.api.call("getAgentBudgetPolicy", { token, id });
            return JSON.stringify(policy.body).includes(`"budgetCents":${budgetCents},`) ? true : null;
          },
          RECOVERY_MS,
        );
      }
      const [, other] = agents;
      const { transaction } = (await other?.pay({ amountCents: 701 })) ?? {};
      expect(transaction?.denialCode).to.equal(isReplaced ? "TEAM_CAP_EXCEEDED" : null);
    }
  };
  if (isSoak)
    it(
      "a replacement that Temporal dies under is 200 or 503, and then whole or not at all",
      replacedUnderDeath,
    );

  it("a service stopped while Temporal is gone leaves no retry that would end the process", async () => {
    const connections = await connect(readAddresses(engines.env), testPayloads());
    await engines.temporal.kill();
    let settled = false;
    const call = connections.temporal.withDeadline(Date.now() + ANSWER_MS, () =>
      connections.temporal.workflow.getHandle("nobody").describe(),
    );
    call.then(() => (settled = true)).catch(() => (settled = true));
    await new Promise((resolve) => setTimeout(resolve, 300)); // refused at once, it waits to be retried
    await connections.close();
    await until("the call is over", async () => (settled ? true : null));
    await engines.temporal.start();
  });
});
