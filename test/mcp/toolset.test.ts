import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { expectBooksAgree } from "../support/books.ts";
import { elevate, newWorld, paymentOf, type TestAgent, times, until, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const PAYMENT_OF_NOBODY = `txn_${"0".repeat(26)}`;
const { cancelPayment, createCardPayment, getBudget, getDenialFeedback, getPayment, listPayments } =
  operations;

const card = (fields: object = {}) => ({
  amountCents: 100,
  merchant: "shop",
  purpose: "a test",
  idempotencyKey: randomUUID(),
  ...fields,
});

describe("the agent toolset", () => {
  let world: World;
  let agent: TestAgent;
  let mcp: McpCaller;
  before(async () => {
    world = await newWorld();
  });
  beforeEach(async () => {
    agent = await world.agent({ autoApprovalThresholdCents: 500, budgetCents: 2_000 });
    mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
  });
  afterEach(() => mcp.close());

  const pay = (fields: object = {}) => mcp.ok(createCardPayment.output, "create_card_payment", card(fields));
  const rest = (id: string) => world.api.ok("getPayment", 200, { token: agent.key, id });

  it("create_card_payment answers as REST does; the same key is the same payment in both", async () => {
    const args = card({ amountCents: 1_234 / 2 - 217 });
    const paid = await mcp.ok(createCardPayment.output, "create_card_payment", args);
    expect(paid.transaction).to.deep.include({ status: "approved", rail: "card", amountCents: 400 });
    const again = { ...paid, replayed: true };
    expect(await mcp.ok(createCardPayment.output, "create_card_payment", args)).to.deep.equal(again);
    expect(await rest(paid.transaction.id)).to.deep.equal(paymentOf(paid));
    const twin = { token: agent.key, body: { rail: "card", ...args } };
    expect(await world.api.ok("createPayment", 200, twin)).to.deep.equal(again);
    await mcp.refused("create_card_payment", "IDEMPOTENCY_KEY_REUSED", { ...args, amountCents: 401 });
    expect((await expectBooksAgree(world, agent)).entries).to.equal(1);
  });

  it("get_payment and list_payments answer what REST does, page by page", async () => {
    const paid = [await pay(), await pay(), await pay({ amountCents: 501 })];
    for (const payment of paid) {
      const args = { transactionId: payment.transaction.id };
      expect(await mcp.ok(getPayment.output, "get_payment", args)).to.deep.equal(paymentOf(payment));
    }
    const first = await mcp.ok(listPayments.output, "list_payments", { limit: 2 });
    const twin = await world.api.ok("listPayments", 200, { token: agent.key, query: { limit: "2" } });
    expect(first.payments).to.deep.equal(twin.payments);
    const second = await mcp.ok(listPayments.output, "list_payments", { limit: 2, cursor: first.nextCursor });
    expect([...first.payments, ...second.payments].map(({ id }) => id)).to.deep.equal(
      paid.map(({ transaction }) => transaction.id).toReversed(),
    );
    expect(second.nextCursor).to.equal(null);
    await mcp.refused("list_payments", "BAD_CURSOR", { cursor: "x" });
    for (const limit of [0, 201, "2.0"]) await mcp.refused("list_payments", "VALIDATION_FAILED", { limit });
  });

  it("cancel_payment takes a held payment back, and no other", async () => {
    const { approval, transaction } = await pay({ amountCents: 501 });
    expect([transaction.status, approval?.flaggedByRuleTypes]).to.deep.equal([
      "pending",
      ["agent_threshold"],
    ]);
    const args = { transactionId: transaction.id };
    const cancelled = await mcp.ok(cancelPayment.output, "cancel_payment", args);
    expect(cancelled.transaction).to.deep.include({ status: "denied", denialCode: "CANCELLED_BY_AGENT" });
    expect(cancelled).to.deep.equal(await rest(transaction.id));
    await mcp.refused("cancel_payment", "PAYMENT_NOT_CANCELLABLE", args);
    await mcp.refused("cancel_payment", "NOT_FOUND", { transactionId: PAYMENT_OF_NOBODY });
    expect((await expectBooksAgree(world, agent)).reservedCents).to.equal(0);
  });

  it("get_budget: the policy with its usage at the top level, and no caps of team and project", async () => {
    await pay();
    await pay({ amountCents: 501 });
    const { project, spendableCents, team, ...policy } = await mcp.ok(getBudget.output, "get_budget");
    const request = { token: world.token, id: agent.id };
    // The balance that people keep a wallet at is nothing that an agent may spend.
    const { walletTargetCents: _target, ...read } = await world.api.ok("getAgentBudgetPolicy", 200, request);
    expect(policy).to.deep.equal(read);
    expect(policy.usage).to.deep.include({ spentCents: 100, reservedCents: 501, remainingCents: 1_399 });
    expect(spendableCents).to.equal(1_399);
    const uncapped = { remainingCents: null, spendLimits: [] };
    expect([team, project]).to.deep.equal([uncapped, uncapped]);
  });

  const feedback = (transactionId?: string) =>
    mcp.ok(
      getDenialFeedback.output,
      "get_denial_feedback",
      transactionId === undefined ? {} : { transactionId },
    );

  async function deniedBy(text: string): Promise<string> {
    const { approval, transaction } = await pay({ amountCents: 501 });
    const request = { token: world.token, id: approval?.id ?? "", body: { feedback: text } };
    await world.api.ok("denyApproval", 200, request);
    return transaction.id;
  }

  describe("get_denial_feedback", () => {
    it("of one: code, reason and what the person said, with the moment it was denied", async () => {
      const transactionId = await deniedBy("buy the cheaper one");
      const { denials } = await feedback(transactionId);
      expect(denials).to.have.lengthOf(1);
      expect(denials[0]).to.deep.include({
        transactionId,
        status: "denied",
        denialCode: "APPROVAL_DENIED",
        feedback: "buy the cheaper one",
      });
      const { approval, transaction } = await rest(transactionId);
      expect(denials[0]?.denialReason).to.equal(transaction.denialReason);
      expect(denials[0]?.deniedAt).to.equal(approval?.resolvedAt);
    });

    it("without an id: denied, failed and cancelled ones, newest first, not approved or held ones", async () => {
      await pay();
      await pay({ amountCents: 501 });
      const byPolicy = (await pay({ amountCents: 1_999 })).transaction.id;
      const byRail = (await pay({ merchant: "sandbox-decline" })).transaction.id;
      const byPerson = await deniedBy("no");
      const { denials } = await feedback();
      expect(denials.map(({ denialCode, transactionId }) => [transactionId, denialCode])).to.deep.equal([
        [byPerson, "APPROVAL_DENIED"],
        [byRail, "CARD_DECLINED"],
        [byPolicy, "BUDGET_EXCEEDED"],
      ]);
      expect(denials.map((denial) => denial.feedback)).to.deep.equal(["no", null, null]);
    });

    it("a payment that was given back is among them, with a reason and no code", async () => {
      const { id } = (await pay({ merchant: "sandbox-reverse" })).transaction;
      await until("it is reversed", async () =>
        (await rest(id)).transaction.status === "reversed" ? id : null,
      );
      const { denials } = await feedback(id);
      expect(denials[0]).to.deep.include({ transactionId: id, status: "reversed", denialCode: null });
      expect(denials[0]?.denialReason)
        .to.match(/refunded/)
        .and.match(/available again/);
      expect((await feedback()).denials.map(({ transactionId }) => transactionId)).to.deep.equal([id]);
    });

    it("at most the last 20", async () => {
      const denied: string[] = [];
      for (const _payment of times(22, (index) => index)) {
        denied.unshift((await pay({ amountCents: 2_001 })).transaction.id);
      }
      const { denials } = await feedback();
      expect(denials.map(({ transactionId }) => transactionId)).to.deep.equal(denied.slice(0, 20));
    });

    it("a payment that was never charged says NOT_CHARGED, one in part has its amounts", async () => {
      const { transaction } = await pay({ amountCents: 400, merchant: "sandbox-uncharged" });
      const { denials } = await until("the merchant lets it lapse", () =>
        feedback(transaction.id).catch(() => null),
      );
      expect(denials[0]).to.deep.include({ status: "failed", denialCode: "NOT_CHARGED" });
      const partial = (await pay({ amountCents: 401, merchant: "sandbox-partial" })).transaction;
      expect([partial.status, partial.amountCents, partial.amounts]).to.deep.equal([
        "approved",
        200,
        { requestedCents: 401, authorizedCents: 401, capturedCents: 200, creditedCents: 0 },
      ]);
    });

    it("NOT_FOUND for approved, held, unknown and other agents' payments", async () => {
      const other = await world.agent({ budgetCents: 1 });
      const foreign = (await other.pay()).transaction;
      expect(foreign.status).to.equal("denied");
      const ids = [
        (await pay()).transaction.id,
        (await pay({ amountCents: 501 })).transaction.id,
        foreign.id,
        PAYMENT_OF_NOBODY,
      ];
      for (const transactionId of ids) {
        await mcp.refused("get_denial_feedback", "NOT_FOUND", { transactionId });
      }
    });
  });

  it("a policy change binds the next call, and usage follows the policy that is", async () => {
    await elevate(world);
    const body = { version: 1, perTransactionLimitCents: 99 };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agent.id, body });
    expect((await pay()).transaction.denialCode).to.equal("PER_TRANSACTION_LIMIT_EXCEEDED");
    const budget = await mcp.ok(getBudget.output, "get_budget");
    expect([budget.perTransactionLimitCents, budget.version]).to.deep.equal([99, 2]);
  });

  const used = async () => {
    const { agent: record } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
    return record.key?.lastUsedAt ?? null;
  };

  it("the record of the key tells when it was last used", async () => {
    const askedAt = Date.now();
    await mcp.call("get_budget");
    const lastUsedAt = await until("this use of the key is written", async () => {
      const at = Date.parse((await used()) ?? "");
      return at >= askedAt ? at : null;
    });
    expect(lastUsedAt).to.be.at.most(Date.now());
  });
});
