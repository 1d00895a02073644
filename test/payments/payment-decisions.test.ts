import { expect } from "chai";
import { booksOnceAgreed, expectBooksAgree } from "../support/books.ts";
import { shortOrSoak } from "../support/soak.ts";
import {
  cardPayment,
  counts,
  elevate,
  type Fields,
  newWorld,
  tally,
  times,
  until,
  type World,
} from "../support/world.ts";

const PAYMENT_OF_NOBODY = `txn_${"0".repeat(26)}`;
const TOKEN_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7";

describe("what a payment is answered", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const policy = async (id: string, fields: Fields) => {
    await elevate(world);
    const request = { token: world.token, id };
    const { version } = await world.api.ok("getAgentBudgetPolicy", 200, request);
    await world.api.ok("updateAgentBudgetPolicy", 200, { ...request, body: { version, ...fields } });
  };

  it("a payment within the budget is final in the answer: 201 approved, no approval", async () => {
    const agent = await world.agent();
    const { approval, transaction } = await agent.pay({ amountCents: 1_234, merchantCategory: "5734" });
    expect(approval).to.equal(null);
    expect(transaction).to.deep.include({
      agentId: agent.id,
      agentName: "Agent",
      merchant: "shop",
      amountCents: 1234,
      currency: "USD",
      direction: "debit",
      rail: "card",
      status: "approved",
      purpose: "a test",
      denialCode: null,
      denialReason: null,
      denialDetails: null,
      onChainTxHash: null,
      chainCaip2: null,
    });
    expect(transaction.id).to.match(/^txn_/);
    const read = await world.api.ok("getPayment", 200, { token: agent.key, id: transaction.id });
    expect(read.transaction).to.deep.equal(transaction);
    expect((await expectBooksAgree(world, agent)).ledgerCents).to.equal(1_234);
  });

  it("a denial by the budget is 201 too, says what is left, and neither reserves nor charges", async () => {
    const agent = await world.agent({ budgetCents: 150 });
    await agent.pay();
    const { approval, transaction } = await agent.pay();
    expect(approval).to.equal(null);
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["denied", "BUDGET_EXCEEDED"]);
    expect(transaction.denialReason).to.be.a("string");
    expect(transaction.denialDetails).to.deep.equal({ limit: 150, remaining: 50, resetsAt: null });
    expect(await expectBooksAgree(world, agent)).to.deep.include({ spentCents: 100, reservedCents: 0 });
  });

  it("payments at once on a budget for half of them: exactly half are approved and processed", async () => {
    const half = shortOrSoak(15, 50);
    const agent = await world.agent({ budgetCents: half * 100 });
    const paid = await Promise.all(times(2 * half, () => agent.pay()));
    const answers = tally(paid.map(({ transaction }) => transaction.denialCode ?? transaction.status));
    expect(answers).to.deep.equal({ approved: half, BUDGET_EXCEEDED: half });
    const books = { spentCents: half * 100, reservedCents: 0, ledgerCents: half * 100, entries: half };
    expect(await expectBooksAgree(world, agent)).to.deep.equal(books);
  });

  it("each limit denies under its own code, the first in the order of checks", async () => {
    const agent = await world.agent({ budgetCents: 1_000 });
    await agent.pay();
    const limits: Fields = {
      perTransactionLimitCents: 500,
      budgetCents: 400,
      dailySpendLimitCents: 300,
      hourlyVelocityLimit: 1,
      dailyVelocityLimit: 1,
    };
    await policy(agent.id, limits);
    const denied = async (amountCents: number) => {
      const { transaction } = await agent.pay({ amountCents });
      return [transaction.denialCode, transaction.denialDetails?.limit, transaction.denialDetails?.remaining];
    };
    expect(await denied(501)).to.deep.equal(["PER_TRANSACTION_LIMIT_EXCEEDED", 500, 500]);
    expect(await denied(301)).to.deep.equal(["BUDGET_EXCEEDED", 400, 300]);
    expect(await denied(201)).to.deep.equal(["DAILY_SPEND_LIMIT_EXCEEDED", 300, 200]);
    expect(await denied(200)).to.deep.equal(["HOURLY_VELOCITY_EXCEEDED", 1, 0]);
    await policy(agent.id, { hourlyVelocityLimit: null });
    expect(await denied(200)).to.deep.equal(["DAILY_VELOCITY_EXCEEDED", 1, 0]);
    await policy(agent.id, { dailyVelocityLimit: 2 });
    expect((await agent.pay({ amountCents: 200 })).transaction.status).to.equal("approved");
    await expectBooksAgree(world, agent);
  });

  it("a limit lowered during a hold fails it on approval, with the limit's code and details", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await agent.hold({ amountCents: 300 });
    await policy(agent.id, { perTransactionLimitCents: 200 });
    const { approval } = await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    expect(approval.resolution).to.equal("failed");
    const { transaction } = await world.api.ok("getPayment", 200, { token: agent.key, id: transactionId });
    expect(transaction).to.deep.include({ status: "failed", denialCode: "PER_TRANSACTION_LIMIT_EXCEEDED" });
    expect(transaction.denialDetails).to.deep.equal({ limit: 200, remaining: 200, resetsAt: null });
    expect((await expectBooksAgree(world, agent)).reservedCents).to.equal(0);
  });

  const refusedFields: readonly (readonly [string, Fields])[] = [
    ...[-1, -100, 0, 0.5, 1e13, "100", null, true, [100], { $gt: 0 }].map(
      (amountCents) => ["amountCents", { amountCents }] as const,
    ),
    ["currency", { currency: "EUR" }],
    ["merchant", { merchant: "" }],
    ["merchant", { merchant: "x".repeat(201) }],
    // As long as may be, but each character becomes 18 when it is compared.
    ["merchant", { merchant: "\ufdfa".repeat(45) }],
    ["purpose", { purpose: "" }],
    ["purpose", { purpose: "x".repeat(501) }],
    ["merchantCategory", { merchantCategory: "57" }],
    ["idempotencyKey", { idempotencyKey: "" }],
    ["idempotencyKey", { idempotencyKey: 7 }],
    ["recipient", { recipient: TOKEN_ADDRESS }],
    ["agentId", { agentId: "01890a5d-ac96-774b-bcce-b302099a8057" }],
    ["rail", { rail: "cash" }],
  ];
  it("amounts that are negative, zero, fractional, huge or no number are 400, nothing written", async () => {
    const agent = await world.agent();
    const before = await counts(world);
    for (const [path, fields] of refusedFields) {
      const request = { token: agent.key, body: cardPayment(fields) };
      const { issues } = await world.api.refused("createPayment", 400, "VALIDATION_FAILED", request);
      expect(
        issues?.map((issue) => issue.path),
        JSON.stringify(fields),
      ).to.include(path);
    }
    expect(await counts(world)).to.deep.equal(before);
    expect(await expectBooksAgree(world, agent)).to.deep.include({ spentCents: 0, reservedCents: 0 });
  });

  it("without an idempotencyKey it is 400 IDEMPOTENCY_KEY_REQUIRED, whatever else is wrong", async () => {
    const agent = await world.agent();
    const { idempotencyKey: _key, ...body } = cardPayment();
    const code = "IDEMPOTENCY_KEY_REQUIRED";
    await world.api.refused("createPayment", 400, code, { token: agent.key, body });
    await world.api.refused("createPayment", 400, code, {
      token: agent.key,
      body: { ...body, amountCents: -1 },
    });
  });

  it("an agent reads, lists and cancels its own payments only: another's are 404", async () => {
    const [mine, theirs] = [await world.agent(), await world.agent({ autoApprovalThresholdCents: 0 })];
    const { transactionId } = await theirs.hold();
    for (const id of [transactionId, PAYMENT_OF_NOBODY, "txn_1", "%20"]) {
      await world.api.refused("getPayment", 404, "NOT_FOUND", { token: mine.key, id });
      await world.api.refused("cancelPayment", 404, "NOT_FOUND", { token: mine.key, id });
    }
    const { payments } = await world.api.ok("listPayments", 200, { token: mine.key });
    expect(payments).to.deep.equal([]);
    const { transaction } = await world.api.ok("getPayment", 200, { token: theirs.key, id: transactionId });
    expect(transaction.status).to.equal("pending");
  });

  it("sandbox merchants: a decline has no effect, a reversal is given back, a slow one settles", async () => {
    const agent = await world.agent();
    const declined = (await agent.pay({ merchant: "sandbox-decline" })).transaction;
    expect([declined.status, declined.denialCode]).to.deep.equal(["failed", "CARD_DECLINED"]);
    const flaky = (await agent.pay({ merchant: "sandbox-flaky" })).transaction;
    expect(flaky.status).to.equal("approved");
    const reversed = (await agent.pay({ merchant: "sandbox-reverse" })).transaction;
    const slow = (await agent.pay({ merchant: "sandbox-slow" })).transaction;
    // It is given back after a second, on a busy machine before the answer; that it was spent, its entries tell below.
    expect(reversed.status).to.be.oneOf(["approved", "reversed"]);
    expect(slow.status).to.equal("pending");
    const becomes = (id: string, status: string) =>
      until(`${id} is ${status}`, async () => {
        const read = await world.api.ok("getPayment", 200, { token: agent.key, id });
        return read.transaction.status === status ? true : null;
      });
    await becomes(reversed.id, "reversed");
    await becomes(slow.id, "approved");
    const given = await world.api.ok("getPayment", 200, { token: agent.key, id: reversed.id });
    expect(given.transaction).to.include({ denialCode: null }).and.have.property("denialReason");
    expect(given.transaction.denialReason).to.match(/refunded/);
    const books = await booksOnceAgreed(world, agent);
    // flaky, slow, reverse were captured, and the reversal is an entry of its own
    expect(books).to.deep.equal({ spentCents: 200, reservedCents: 0, ledgerCents: 300, entries: 4 });
  });
});
