import { expect } from "chai";
import type { AuditDocument } from "../../src/store/audit-documents.ts";
import { canonicalJson } from "../../src/domain/audit/canonical.ts";
import { atOnce } from "../support/at-once.ts";
import { cardPayment, elevate, newWorld, times, until, type World } from "../support/world.ts";
import { breakIn, entriesOf, testSeal } from "./support.ts";

const brief = (found: readonly AuditDocument[]) =>
  found.map(({ action, actor, decision, result }) => [
    action,
    actor.type,
    (decision as { readonly outcome: string }).outcome,
    result.code,
  ]);

const decisionsIn = (found: readonly AuditDocument[]) =>
  found.filter(({ action }) => action === "decidePayment").map(({ resource }) => resource.id);

describe("decisions on payments in the audit log", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const entries = (on = world) => entriesOf(on.service.db, on.organization.organizationId);

  /** The entries of a transaction, once there are so many. */
  const about = (transactionId: string, count: number, on = world): Promise<AuditDocument[]> =>
    until(`${count} entries about ${transactionId}`, async () => {
      const found = (await entries(on)).filter(({ resource }) => resource.id === transactionId);
      return found.length >= count ? found : null;
    });

  const decide = (approvalId: string, how: "approveApproval" | "denyApproval", body?: object) =>
    world.api.call(how, { token: world.token, id: approvalId, ...(body === undefined ? {} : { body }) });

  it("one that is approved at once: on which policy, by which inputs, by whom", async () => {
    const agent = await world.agent();
    await elevate(world);
    const body = { version: 1, perTransactionLimitCents: 5_000 };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agent.id, body });
    const fields = {
      amountCents: 120,
      merchant: "a shop",
      merchantCategory: "5411",
      purpose: "not kept here",
    };
    const { transaction } = await agent.pay(fields);
    const [entry] = await about(transaction.id, 1);
    expect(entry).to.deep.include({
      entryKey: `${transaction.id}/decided`,
      action: "decidePayment",
      actor: { type: "agent", id: agent.id, name: "Agent" },
      resource: { type: "transaction", id: transaction.id },
      from: null,
      result: { status: null, code: null },
      decision: {
        agentId: agent.id,
        policyVersion: 2,
        inputs: {
          rail: "card",
          amountCents: 120,
          currency: "USD",
          recipient: "a shop",
          merchantCategory: "5411",
        },
        limits: [
          { level: "agent", limit: "per_transaction", value: 5_000, used: 0 },
          { level: "agent", limit: "budget", value: 10_000, used: 0 },
        ],
        outcome: "approved",
        code: null,
        reason: null,
        details: null,
        flaggedByRuleTypes: [],
      },
    });
    expect(entry?.at.toISOString()).to.equal(transaction.createdAt);
    // Each payment has one of these: as they come they are in the order that their hash is over.
    for (const part of [entry?.actor, entry?.resource, entry?.result, entry?.decision]) {
      expect(JSON.stringify(part)).to.equal(canonicalJson(part));
    }
  });

  it("one that is denied: by which limit, and why", async () => {
    const agent = await world.agent({ budgetCents: 100 });
    const { transaction } = await agent.pay({ amountCents: 101 });
    const [entry] = await about(transaction.id, 1);
    expect(entry?.result).to.deep.equal({ status: null, code: "BUDGET_EXCEEDED" });
    expect(entry?.decision).to.deep.include({
      outcome: "denied",
      code: "BUDGET_EXCEEDED",
      reason: transaction.denialReason,
      details: { limit: 100, remaining: 100, resetsAt: null },
    });
  });

  it("one that its rail declines was approved: the log has what the policy said", async () => {
    const agent = await world.agent();
    const { transaction } = await agent.pay({ merchant: "sandbox-decline" });
    expect(transaction.status).to.equal("failed");
    expect(brief(await about(transaction.id, 1))).to.deep.equal([
      ["decidePayment", "agent", "approved", null],
    ]);
  });

  it("one on hold, and who resolved it how: approved, denied with feedback, cancelled, archived", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const held = await Promise.all(times(4, () => agent.hold()));
    const [approved, denied, cancelled, archived] = held.map(({ transactionId }) => transactionId);
    await decide(held[0]?.approvalId ?? "", "approveApproval");
    await decide(held[1]?.approvalId ?? "", "denyApproval", { feedback: "too dear" });
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: cancelled ?? "" });
    await elevate(world);
    await world.api.ok("archiveAgent", 200, { token: world.token, id: agent.id });
    const first = ["decidePayment", "agent", "held", null];
    const resolutions = [
      [approved, ["resolvePayment", "user", "approved", null]],
      [denied, ["resolvePayment", "user", "denied", "APPROVAL_DENIED"]],
      [cancelled, ["resolvePayment", "agent", "cancelled", "CANCELLED_BY_AGENT"]],
      [archived, ["resolvePayment", "system", "denied", "AGENT_ARCHIVED"]],
    ] as const;
    for (const [id = "", resolution] of resolutions) {
      expect(brief(await about(id, 2)), resolution[2]).to.deep.equal([first, resolution]);
    }
    const [, byPerson] = await about(denied ?? "", 2);
    expect(byPerson?.actor.id).to.equal(world.organization.userId);
    expect(byPerson?.decision).to.deep.include({ feedback: "too dear", approvalId: held[1]?.approvalId });
  });

  it("one that a person approves and its limits refuse by then", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await agent.hold({ amountCents: 500 });
    await elevate(world);
    const body = { version: 1, budgetCents: 10 };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agent.id, body });
    await decide(approvalId, "approveApproval");
    const found = await about(transactionId, 3);
    expect(brief(found)).to.deep.equal([
      ["decidePayment", "agent", "held", null],
      ["resolvePayment", "user", "approved", null],
      ["refusePayment", "system", "denied", "BUDGET_EXCEEDED"],
    ]);
    expect(found.map(({ decision }) => (decision as { policyVersion: number }).policyVersion)).to.deep.equal([
      1, 2, 2,
    ]);
  });

  it("one that its team's cap refuses, and the cap as it was and is", async () => {
    const own = await newWorld();
    const agent = await own.agent();
    const asked = { token: own.token, id: own.organization.teamId };
    const { agents, version } = await own.api.ok("getTeamBudget", 200, asked);
    await own.api.ok("setTeamBudget", 200, { ...asked, body: { capCents: 150, agents, version } });
    const [fits, refused] = [await agent.pay(), await agent.pay()];
    expect(brief(await about(fits.transaction.id, 1, own))).to.deep.equal([
      ["decidePayment", "agent", "approved", null],
    ]);
    expect(brief(await about(refused.transaction.id, 1, own))).to.deep.equal([
      ["decidePayment", "agent", "denied", "TEAM_CAP_EXCEEDED"],
    ]);
    expect((await entries(own)).find(({ action }) => action === "setTeamBudget")).to.deep.include({
      before: { capCents: null, spendLimits: [], agents, version },
      after: { capCents: 150, spendLimits: [], agents, version: version + 1 },
    });
  });

  it("one under approval rules names their versions, on both levels, whether they flag it or not", async () => {
    const own = await newWorld();
    const agent = await own.agent();
    const { projectId, teamId } = own.organization;
    const rules = [{ type: "amount_above", params: { amountCents: 100 } }];
    const set = { token: own.token, body: { rules, version: 1 } };
    const ids = [(await agent.pay()).transaction.id];
    await own.api.ok("setProjectApprovalRules", 200, { ...set, id: projectId });
    ids.push((await agent.hold({ amountCents: 101 })).transactionId);
    await own.api.ok("setTeamApprovalRules", 200, { ...set, id: teamId });
    ids.push((await agent.pay({ amountCents: 100 })).transaction.id);
    const found = await Promise.all(ids.map(async (id) => (await about(id, 1, own))[0]?.decision));
    const told = found.map((decision) => decision as Readonly<Record<string, unknown>>);
    expect(told.map(({ outcome, rulesVersions }) => [outcome, rulesVersions])).to.deep.equal([
      ["approved", undefined],
      ["held", { project: 2, team: null, agent: null }],
      ["approved", { project: 2, team: 2, agent: null }],
    ]);
  });

  it("replays leave nothing more, whichever caller makes them and however often", async () => {
    const agent = await world.agent();
    const body = cardPayment();
    const answers = await atOnce(10, () => world.api.call("createPayment", { token: agent.key, body }));
    const ids = new Set(
      answers.map((answer) =>
        JSON.stringify((answer.body as { transaction: { id: string } }).transaction.id),
      ),
    );
    expect(ids.size).to.equal(1);
    // A payment behind it, whose decision comes after all that is written of it.
    const next = await agent.pay();
    await about(next.transaction.id, 1);
    const decided = (await entries()).filter(
      ({ action, actor }) => action === "decidePayment" && actor.id === agent.id,
    );
    expect(decided).to.have.lengthOf(2);
  });

  it("forty at once are in an unbroken chain once each, among what people do meanwhile", async () => {
    const agents = await Promise.all(times(4, () => world.agent({ budgetCents: 1_000_000 })));
    const paid = await Promise.all(agents.flatMap((agent) => times(10, () => agent.pay({ amountCents: 1 }))));
    const found = await until("the decision on each", async () => {
      const there = await entries();
      const decided = new Set(decisionsIn(there));
      return paid.every(({ transaction }) => decided.has(transaction.id)) ? there : null;
    });
    const decided = decisionsIn(found);
    expect(new Set(decided).size).to.equal(decided.length);
    expect(breakIn(found, testSeal(String(world.service.env["MASTER_KEY"])))).to.equal(null);
  });
});
