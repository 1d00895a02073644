import { expect } from "chai";
import { type OperationId, operationList, operations } from "../../src/contract/registry.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { codeOf } from "../support/contract-api.ts";
import { authenticatorFor, enrolPasskey } from "../support/passkeys.ts";
import {
  cardPayment,
  counts,
  elevate,
  newEndpoint,
  newWorld,
  NOBODYS_URL,
  testDelivery,
  type World,
} from "../support/world.ts";
import { mintKey } from "./scene.ts";
import { askRaise } from "../support/raises.ts";
import { SIMULATED } from "../support/simulations.ts";
import { restricting } from "../support/restrictions.ts";

/**
 * Another organization's ids do not exist: 404 for every operation that names one, whatever else is right about the
 * request, and nothing changes by it. The real things are there, so a look-up that forgot the organization finds them.
 */
describe("what belongs to another organization is not found", () => {
  let mine: World;
  let theirs: World;
  /** An id of theirs for each noun of a path. */
  let ids: Readonly<Record<string, string>>;
  let deliveryId: string;
  let myAgentKey: string;
  let recorded: Awaited<ReturnType<typeof counts>>;

  before(async () => {
    mine = await newWorld();
    theirs = await newWorld();
    const { token } = theirs;
    const agent = await theirs.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await agent.hold();
    const { project } = await theirs.api.ok("createProject", 201, { token, body: { name: "Theirs" } });
    const { team } = await theirs.api.ok("createTeam", 201, { token, body: { name: "Theirs" } });
    await mintKey(theirs, ORGANIZATION_SCOPES);
    const minted = await theirs.api.ok("listOrganizationKeys", 200, { token });
    const body = { email: "somebody@example.com", role: "member" };
    const { invite } = await theirs.api.ok("createInvite", 201, { token, body });
    const endpoint = await newEndpoint(theirs);
    deliveryId = await testDelivery(theirs, endpoint);
    ids = {
      agents: agent.id,
      // A client's request is no organization's; this is none.
      connections: "x".repeat(43),
      approvals: approvalId,
      "raise-requests": await askRaise(theirs, agent),
      payments: transactionId,
      transactions: transactionId,
      projects: project.id,
      teams: team.id,
      members: theirs.organization.userId,
      invites: invite.id,
      sessions: (await theirs.api.ok("listSessions", 200, { token })).sessions[0]?.id ?? "",
      auth: (await enrolPasskey(theirs, authenticatorFor(theirs))).id,
      "organization-keys": minted.organizationKeys[0]?.id ?? "",
      webhooks: endpoint.id,
    };
    myAgentKey = (await mine.agent()).key;
    await elevate(mine);
    recorded = await counts(mine);
  });

  /** Bodies that nothing is wrong with; an operation whose schema takes none has none. */
  const BODIES: Partial<Record<OperationId, object>> = {
    updateAgent: { name: "Mine now" },
    updateAgentBudgetPolicy: { version: 1, budgetCents: 1 },
    fundAgent: { amountCents: 1 },
    viewCard: { nonce: "n" },
    disputeTransaction: { reason: "other", explanation: "Not ours." },
    connectClient: { connectionId: "x".repeat(43) },
    denyApproval: { feedback: "no" },
    refuseRaiseRequest: { feedback: "no" },
    updateMember: { role: "member" },
    updateProject: { name: "Mine now" },
    updateTeam: { name: "Mine now" },
    updatePasskey: { name: "Mine now" },
    updateWebhook: { name: "Mine now" },
    replayWebhook: { since: "2026-01-01T00:00:00Z" },
    setProjectApprovalRules: { rules: [], version: 1 },
    setTeamApprovalRules: { rules: [], version: 1 },
    setProjectRestrictions: restricting(),
    setTeamRestrictions: restricting(),
    setAgentRestrictions: restricting(),
    ...SIMULATED,
    // Stale, too: existence comes before the version.
    setProjectCalendar: {
      timezone: "UTC",
      resetTime: "00:00",
      weekStartsOn: "mon",
      monthStartsOn: 1,
      yearStartsIn: 1,
      version: 999,
    },
    setProjectBudget: { capCents: 1, teams: [], version: 999 },
    setTeamBudget: { capCents: 1, agents: [], version: 999 },
  };

  const naming = operationList.flatMap(([id, { http }]) =>
    http?.path.includes(":id") ? [{ id, http }] : [],
  );

  for (const { id, http } of naming) {
    it(`${id}: a foreign one is NOT_FOUND to a stepped-up owner`, async () => {
      const noun = http.path.includes("/sessions/") ? "sessions" : (http.path.split("/")[2] ?? "");
      const body = BODIES[id];
      const isAgents = operations[id].access.kind === "agent";
      const answer = await mine.api.call(id, {
        token: isAgents ? myAgentKey : mine.token,
        id: ids[noun] ?? "",
        deliveryId,
        ...(body === undefined ? {} : { body }),
      });
      expect([answer.status, codeOf(answer)]).to.deep.equal([404, "NOT_FOUND"]);
    });
  }

  it("nothing was made or removed by any of it", async () => {
    expect(await counts(mine)).to.deep.equal(recorded);
  });

  it("an id of theirs in a body is 404, too", async () => {
    const { token } = mine;
    const { projects: projectId = "", teams: teamId = "" } = ids;
    await mine.api.refused("createAgent", 404, "NOT_FOUND", {
      token,
      body: { name: "x", teamId, budgetCents: 1 },
    });
    await mine.api.refused("createTeam", 404, "NOT_FOUND", { token, body: { name: "x", projectId } });
    for (const binding of [
      { type: "project", id: projectId },
      { type: "team", id: teamId },
    ]) {
      const body = { name: "x", scopes: ["agents:read"], binding };
      await mine.api.refused("mintOrganizationKey", 404, "NOT_FOUND", { token, body });
    }
  });

  it("a delivery is found below its own endpoint alone, and never below another organization's", async () => {
    const [own, other] = [await newEndpoint(mine), await newEndpoint(mine)];
    const owned = await testDelivery(mine, own);
    for (const operation of ["getWebhookDelivery", "redeliverWebhook"] as const) {
      const below = (id: string, named: string) => ({ token: mine.token, id, deliveryId: named });
      await mine.api.refused(operation, 404, "NOT_FOUND", below(own.id, deliveryId));
      await mine.api.refused(operation, 404, "NOT_FOUND", below(other.id, owned));
      await mine.api.ok(operation, 200, below(own.id, owned));
    }
  });

  it("an endpoint's scope names nothing of theirs, neither from the start nor by a change", async () => {
    const { token } = mine;
    const endpoint = await newEndpoint(mine);
    const { agents = "", projects = "", teams = "" } = ids;
    for (const scope of [
      { scopeType: "agent", scopeIds: [agents] },
      { scopeType: "project", scopeIds: [mine.organization.projectId, projects] },
      { scopeType: "team", scopeIds: [teams] },
    ]) {
      const body = { name: "x", url: NOBODYS_URL, eventTypes: ["*"], ...scope };
      await mine.api.refused("createWebhook", 404, "NOT_FOUND", { token, body });
      await mine.api.refused("updateWebhook", 404, "NOT_FOUND", { token, id: endpoint.id, body: scope });
    }
  });

  it("another agent's payment is not found by an agent of the same organization", async () => {
    const other = await mine.agent();
    const { transaction } = await mine.api.ok("createPayment", 201, {
      token: other.key,
      body: cardPayment(),
    });
    for (const id of ["getPayment", "cancelPayment"] as const) {
      await mine.api.refused(id, 404, "NOT_FOUND", { token: myAgentKey, id: transaction.id });
    }
  });
});
