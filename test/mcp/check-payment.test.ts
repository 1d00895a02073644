import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { array, assert, asyncProperty, boolean, integer, option, record } from "fast-check";
import type { z } from "zod";
import { operations } from "../../src/contract/registry.ts";
import { expectBooksAgree } from "../support/books.ts";
import { TestBudgets } from "../support/budgets.ts";
import { shortOrSoak } from "../support/soak.ts";
import { counts, elevate, newWorld, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const RUNS = shortOrSoak(2, 60);
const CAPPED_RUNS = shortOrSoak(1, 30);
const limit = (max: number) => option(integer({ min: 0, max }), { nil: null });
const policy = record({
  budgetCents: integer({ min: 0, max: 1_000 }),
  autoApprovalThresholdCents: limit(500),
  perTransactionLimitCents: limit(600),
  dailySpendLimitCents: limit(900),
  hourlyVelocityLimit: limit(4),
  dailyVelocityLimit: limit(4),
});
const amounts = array(integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 4 });

type Paid = z.output<typeof operations.createCardPayment.output>["transaction"];
type Details = Paid["denialDetails"];

/** All of a denial's details; those of a day only where midnight did not come between the two. */
function expectSameDetails(checked: Details, { createdAt, denialDetails }: Paid): void {
  const checkedAt = checked?.resetsAt ?? null;
  const isNextDay = checkedAt !== null && checkedAt <= createdAt;
  if (!isNextDay) expect(checked).to.deep.equal(denialDetails);
}

describe("check_payment", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const { checkPayment, createCardPayment, getBudget } = operations;

  it("says what the payment then gets, for any policy and any payments before it", async () => {
    const seed = Date.now() % 2_147_483_647;
    const property = asyncProperty(policy, amounts, async (limits, cents) => {
      const agent = await world.agent();
      const body = { version: 1, ...limits };
      await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agent.id, body });
      const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
      for (const amountCents of cents) {
        const wish = { amountCents, merchant: "shop", purpose: "x", idempotencyKey: randomUUID() };
        const checked = await mcp.ok(checkPayment.output, "check_payment", { rail: "card", ...wish });
        const { approval, transaction } = await mcp.ok(createCardPayment.output, "create_card_payment", wish);
        const decision = transaction.status === "pending" ? "held" : transaction.status;
        const { denialCode, denialReason } = transaction;
        expect(checked).to.deep.include({ decision, denialCode, denialReason });
        expectSameDetails(checked.denialDetails, transaction);
        expect(checked.flaggedByRuleTypes).to.deep.equal(approval?.flaggedByRuleTypes ?? []);
      }
      await mcp.close();
      await expectBooksAgree(world, agent);
    });
    await assert(property, { seed, numRuns: RUNS, endOnFailure: true });
  });

  it("under caps, what it says and get_budget shows at each level is what the payment gets", async () => {
    const seed = Date.now() % 2_147_483_647;
    const caps = record({ team: limit(1_500), project: limit(1_500), teams: boolean() });
    const property = asyncProperty(policy, caps, amounts, async (limits, { project, team, teams }, cents) => {
      const capped = await newWorld();
      await elevate(capped);
      const budgets = new TestBudgets(capped);
      const agent = await capped.agent();
      const other = await capped.agent(teams ? { teamId: await budgets.newTeam() } : {});
      await budgets.setTeam({ capCents: team });
      await budgets.setProject({ capCents: project });
      const body = { version: 1, ...limits };
      await capped.api.ok("updateAgentBudgetPolicy", 200, { token: capped.token, id: agent.id, body });
      const mcp = await McpCaller.connect(capped.service.baseUrl, agent.key);
      for (const amountCents of cents) {
        await other.pay({ amountCents: 1 + (amountCents % 200) });
        const wish = { amountCents, merchant: "shop", purpose: "x", idempotencyKey: randomUUID() };
        const checked = await mcp.ok(checkPayment.output, "check_payment", { rail: "card", ...wish });
        const budget = await mcp.ok(getBudget.output, "get_budget");
        expect(checked.budget).to.deep.equal(budget);
        expect(budget.team.remainingCents).to.equal((await budgets.team()).usage.remainingCents);
        expect(budget.project.remainingCents).to.equal((await budgets.project()).usage.remainingCents);
        const { approval, transaction } = await mcp.ok(createCardPayment.output, "create_card_payment", wish);
        const decision = transaction.status === "pending" ? "held" : transaction.status;
        const { denialCode, denialReason } = transaction;
        expect(checked, `seed ${seed}`).to.deep.include({ decision, denialCode, denialReason });
        expectSameDetails(checked.denialDetails, transaction);
        expect(checked.flaggedByRuleTypes).to.deep.equal(approval?.flaggedByRuleTypes ?? []);
      }
      await mcp.close();
      await expectBooksAgree(capped, agent);
    });
    await assert(property, { seed, numRuns: CAPPED_RUNS, endOnFailure: true });
  });

  it("has no effect: no record, no reservation, no count, and its idempotency key stays free", async () => {
    const agent = await world.agent({ budgetCents: 1_000, autoApprovalThresholdCents: 500 });
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const before = await counts(world);
    const idempotencyKey = randomUUID();
    for (const [amountCents, decision] of [
      [500, "approved"],
      [501, "held"],
      [1_001, "denied"],
    ] as const) {
      const wish = { rail: "card", amountCents, merchant: "shop", purpose: "x", idempotencyKey };
      const checked = await mcp.ok(checkPayment.output, "check_payment", wish);
      expect(checked.decision).to.equal(decision);
      expect(checked.budget.usage).to.deep.equal({
        spentCents: 0,
        reservedCents: 0,
        remainingCents: 1e3,
        todayCents: 0,
        lastHourCount: 0,
        todayCount: 0,
        increases: [],
      });
    }
    const recipient = "0x52908400098527886E0F7030069857D2E4169EE7";
    const wallet = { rail: "wallet", amountCents: 1, recipient };
    expect((await mcp.ok(checkPayment.output, "check_payment", wallet)).decision).to.equal("approved");
    expect(await counts(world)).to.deep.equal(before);
    expect((await agent.pay({ amountCents: 7, idempotencyKey })).transaction.status).to.equal("approved");
    await mcp.close();
  });
});
