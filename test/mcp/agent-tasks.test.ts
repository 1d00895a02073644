import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { expectBooksAgree } from "../support/books.ts";
import { fund } from "../support/chain.ts";
import { type Fields, newWorld, type TestAgent, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const {
  cancelPayment,
  checkPayment,
  createCardPayment,
  createWalletPayment,
  getBudget,
  getDenialFeedback,
  getPayment,
  getWallet,
  listPayments,
} = operations;

const card = (mcp: McpCaller, merchant: string, amountCents: number, more: Fields = {}) =>
  mcp.ok(createCardPayment.output, "create_card_payment", {
    merchant,
    amountCents,
    purpose: `What ${merchant} sells`,
    idempotencyKey: randomUUID(),
    ...more,
  });

const list = (mcp: McpCaller, args: Fields) => mcp.ok(listPayments.output, "list_payments", args);

/** An agent with what its model has: the list of tools, and what they answer. */
interface Hired {
  readonly agent: TestAgent;
  readonly mcp: McpCaller;
}

/**
 * What an agent may be asked to do, each done in the calls that a model made of it that knew nothing but the list of tools.
 * Where it went on from an answer, the answer must still say what it went on from.
 */
describe("tasks of an agent, done with the tools alone", () => {
  let world: World;
  let open: McpCaller[];
  before(async () => {
    world = await newWorld();
  });
  beforeEach(() => {
    open = [];
  });
  afterEach(() => Promise.all(open.map((caller) => caller.close())));

  async function hired(fields: Fields = {}): Promise<Hired> {
    const agent = await world.agent({ budgetCents: 50_000, autoApprovalThresholdCents: 5_000, ...fields });
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    open.push(mcp);
    return { agent, mcp };
  }

  const decide = (operation: "approveApproval" | "denyApproval", id: string | undefined, feedback?: string) =>
    world.api.ok(operation, 200, {
      token: world.token,
      id: id ?? "none",
      ...(feedback === undefined ? {} : { body: { feedback } }),
    });

  it("pay 12.50 USD to Acme Corp by card for a domain, and tell whether it went through", async () => {
    const { agent, mcp } = await hired();
    const { transaction } = await card(mcp, "Acme Corp", 1_250);
    expect(transaction).to.include({ status: "approved", merchant: "Acme Corp", amountCents: 1_250 });
    expect((await expectBooksAgree(world, agent)).spentCents).to.equal(1_250);
  });

  it("find out why a payment was refused, and pay again as the person asked", async () => {
    const { mcp } = await hired();
    const asked = await card(mcp, "Conference Inc", 8_000);
    await decide("denyApproval", asked.approval?.id, "The online ticket for 20 USD will do.");
    const { payments } = await list(mcp, { status: "denied", limit: 5 });
    const refused = payments.find(({ merchant }) => merchant === "Conference Inc");
    const { denials } = await mcp.ok(getDenialFeedback.output, "get_denial_feedback", {
      transactionId: refused?.id,
    });
    expect(denials[0]?.feedback).to.include("20 USD");
    expect((await card(mcp, "Conference Inc", 2_000)).transaction.status).to.equal("approved");
  });

  it("buy what needs a person's approval, wait for it, and say when it is paid", async () => {
    const { mcp } = await hired();
    const { approval, approvalUrl, transaction } = await card(mcp, "Conference Inc", 8_000);
    expect(transaction.status).to.equal("pending");
    expect(approvalUrl).to.include(approval?.id);
    const waiting = mcp.ok(getPayment.output, "get_payment", {
      transactionId: transaction.id,
      waitSeconds: 45,
    });
    await decide("approveApproval", approval?.id);
    expect((await waiting).transaction.status).to.equal("approved");
  });

  it("how much can still be spent today, and how much in all?", async () => {
    const { mcp } = await hired({ dailySpendLimitCents: 20_000 });
    await card(mcp, "Paper & Pens", 1_500);
    const { dailySpendLimitCents, usage } = await mcp.ok(getBudget.output, "get_budget");
    expect([(dailySpendLimitCents ?? 0) - usage.todayCents, usage.remainingCents]).to.deep.equal([
      18_500, 48_500,
    ]);
  });

  it("would 300 USD to Big Spender go through? if not, what is the most that would?", async () => {
    const { mcp } = await hired({ dailySpendLimitCents: 20_000, autoApprovalThresholdCents: null });
    const wish = { rail: "card", merchant: "Big Spender", amountCents: 30_000 };
    const checked = await mcp.ok(checkPayment.output, "check_payment", wish);
    expect(checked).to.include({ decision: "denied", denialCode: "DAILY_SPEND_LIMIT_EXCEEDED" });
    const amountCents = checked.denialDetails?.remaining;
    expect((await mcp.ok(checkPayment.output, "check_payment", { ...wish, amountCents })).decision).to.equal(
      "approved",
    );
    expect((await list(mcp, {})).payments).to.deep.equal([]);
  });

  it("send 5 USD to an address, if there is enough; a mistyped address is asked for again", async () => {
    const { agent, mcp } = await hired();
    await fund(world, agent, 1_000);
    const { balanceCents } = await mcp.ok(getWallet.output, "get_wallet");
    expect(balanceCents).to.equal(1_000);
    const wish = { amountCents: 500, purpose: "A bounty", idempotencyKey: randomUUID(), waitSeconds: 45 };
    const mistyped = { ...wish, recipient: "0x52908400098527886E0F7030069857d2E4169EE7" };
    const { issues } = await mcp.refused("create_wallet_payment", "VALIDATION_FAILED", mistyped);
    expect(issues?.[0]?.message).to.match(/checksum.*ask for it again/);
    const told = { ...wish, recipient: "0x52908400098527886E0F7030069857D2E4169EE7" };
    const paid = await mcp.ok(createWalletPayment.output, "create_wallet_payment", told);
    expect(paid.transaction.status).to.equal("approved");
    expect(paid.transaction.onChainTxHash).to.match(/^0x/);
  });

  it("the hotel is not needed any more: cancel what still waits for approval", async () => {
    const { agent, mcp } = await hired();
    await card(mcp, "Paper & Pens", 100);
    await card(mcp, "Hotel", 6_000);
    const { payments } = await list(mcp, { status: "pending" });
    const hotel = payments.find(({ merchant }) => merchant === "Hotel");
    const args = { transactionId: hotel?.id };
    const { transaction } = await mcp.ok(cancelPayment.output, "cancel_payment", args);
    expect(transaction).to.include({ status: "denied", denialCode: "CANCELLED_BY_AGENT" });
    const { message } = await mcp.refused("cancel_payment", "PAYMENT_NOT_CANCELLABLE", args);
    expect(message).to.include("get_payment");
    expect((await expectBooksAgree(world, agent)).reservedCents).to.equal(0);
  });

  it("the last call timed out: see to it that Paper & Pens is paid once, and no more", async () => {
    const { agent, mcp } = await hired();
    const idempotencyKey = randomUUID();
    const first = await card(mcp, "Paper & Pens", 1_500, { idempotencyKey });
    const again = await card(mcp, "Paper & Pens", 1_500, { idempotencyKey });
    expect(again.transaction.id).to.equal(first.transaction.id);
    const wrong = { merchant: "Paper & Pens", amountCents: 1_600, purpose: "Paper", idempotencyKey };
    const { message } = await mcp.refused("create_card_payment", "IDEMPOTENCY_KEY_REUSED", wrong);
    expect(message).to.include(first.transaction.id).and.to.include("get_payment");
    expect((await expectBooksAgree(world, agent)).entries).to.equal(1);
  });

  it("what was paid to Cloud Inc so far, in all?", async () => {
    const { mcp } = await hired();
    for (const amountCents of [100, 200, 300]) await card(mcp, "Cloud Inc", amountCents);
    await card(mcp, "Paper & Pens", 50);
    await card(mcp, "Cloud Inc", 60_000);
    let sumCents = 0;
    let cursor: string | null = null;
    do {
      const args: Fields = { status: "approved", limit: 2, ...(cursor === null ? {} : { cursor }) };
      const page: Awaited<ReturnType<typeof list>> = await list(mcp, args);
      for (const { amountCents, merchant } of page.payments)
        sumCents += merchant === "Cloud Inc" ? amountCents : 0;
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(sumCents).to.equal(600);
  });

  it("the card was declined: say why, and do not try the same again", async () => {
    const { mcp } = await hired();
    const { transaction } = await card(mcp, "sandbox-decline", 900);
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["failed", "CARD_DECLINED"]);
    const { denials } = await mcp.ok(getDenialFeedback.output, "get_denial_feedback", {
      transactionId: transaction.id,
    });
    expect(denials[0]).to.include({ denialCode: "CARD_DECLINED", feedback: null });
    const { tools } = await mcp.client.listTools();
    const text = tools.find(({ name }) => name === "get_denial_feedback")?.description;
    expect(text).to.include("CARD_DECLINED: by the card network");
  });
});
