import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { getAddress } from "viem";
import { z } from "zod";
import { AgentProofs } from "../../src/agents/agent-proofs.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { walletReconciliation } from "../../src/rails/wallet/reconcile.ts";
import { paymentEntry } from "../../src/rails/findings.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import {
  ChainView,
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fund,
  fundedAgent,
  idOnChain,
  payFromWallet,
  recordOnce,
  walletPayment,
} from "../support/chain.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { shortOrSoak } from "../support/soak.ts";
import { elevate, newWorld, paymentOf, tally, type TestAgent, times, type World } from "../support/world.ts";

const masterKey = MasterKey.parse(TEST_MASTER_KEY, "a test");

const { checkPayment, createWalletPayment, getDenialFeedback, getWallet } = operations;

describe("wallet payments", () => {
  let world: World;
  let chain: ChainView;
  before(async () => {
    world = await newWorld();
    await elevate(world);
    chain = new ChainView(world);
  });

  const setBudget = (id: string, budgetCents: number) =>
    world.api.ok("updateAgentBudgetPolicy", 200, {
      token: world.token,
      id,
      body: { version: 1, budgetCents },
    });

  const asking = (cents: number) => fundedAgent(world, cents, { autoApprovalThresholdCents: 0 });

  async function hold(agent: TestAgent) {
    const { approval, transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    expect([transaction.status, transaction.onChainTxHash]).to.deep.equal(["pending", null]);
    return { approvalId: approval?.id ?? "", transactionId: transaction.id };
  }

  const approve = (id: string) => world.api.ok("approveApproval", 200, { token: world.token, id });

  it("an undeployed wallet is funded; a payment deploys it, and is one transfer under its id", async () => {
    const agent = await world.agent();
    const { wallet } = (await world.api.ok("getAgent", 200, { token: world.token, id: agent.id })).agent;
    expect(wallet?.chainCaip2).to.equal("eip155:31337");
    expect(wallet?.address).to.equal(getAddress(wallet?.address ?? ""));
    expect((await fund(world, agent, 5_000)).balanceCents).to.equal(5_000);
    expect(await chain.isDeployed(agent)).to.equal(false);
    const to = freshRecipient();
    const { approval, transaction } = await payFromWallet(
      world,
      agent,
      walletPayment(to, { amountCents: 1_234 }),
    );
    expect(transaction).to.deep.include({
      status: "approved",
      rail: "wallet",
      merchant: to,
      amountCents: 1_234,
      currency: "USD",
      direction: "debit",
      chainCaip2: "eip155:31337",
      denialCode: null,
    });
    expect(approval).to.equal(null);
    expect(await chain.isDeployed(agent)).to.equal(true);
    const spent = { hash: transaction.onChainTxHash, id: idOnChain(transaction.id), to, cents: 1_234 };
    expect(await chain.transfers(agent)).to.deep.equal([spent]);
    expect(await chain.cents(agent, to)).to.equal(1_234);
    await expectChainAgrees(world, agent, 5_000);
  });

  it("payments at once on a budget for half: exactly half go through, and only those on chain", async () => {
    const half = shortOrSoak(8, 50);
    const agent = await fundedAgent(world, 100_000, { budgetCents: half * 100 });
    const to = freshRecipient();
    const made = await Promise.all(times(2 * half, () => payFromWallet(world, agent, walletPayment(to))));
    const done = await Promise.all(made.map(({ transaction }) => finalPayment(world, agent, transaction.id)));
    const outcomes = tally(done.map(({ transaction }) => transaction.denialCode ?? transaction.status));
    expect(outcomes).to.deep.equal({ approved: half, BUDGET_EXCEEDED: half });
    expect(await expectChainAgrees(world, agent, 100_000)).to.have.lengthOf(half);
  });

  it("made while reconcile reads, after the records and before the chain, are no difference", async () => {
    const agent = await fundedAgent(world, 1_000);
    const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    await finalPayment(world, agent, transaction.id);
    const { connections, db, env } = world.service;
    const { transactions, ...collections } = collectionsOf(db);
    const sources = {
      db,
      env,
      collections,
      accessProofs: null,
      pocketKeys: null,
      cardConnections: null,
      chainRpcUrl: connections.addresses.evmRpcUrl,
      organizationId: world.organization.organizationId,
    };
    const others = await transactions.find({ _id: { $ne: transaction.id } }).toArray();
    const payments = others.map(paymentEntry);
    const found = await walletReconciliation.findings({ ...sources, payments, paymentIds: null });
    // Earlier payments of the organization may still be on their way.
    const suspect = typeof found === "string" ? undefined : found.find(({ id }) => id === transaction.id);
    expect(suspect).to.include({ mayBeInFlight: true });
    const paymentIds = new Set([transaction.id]);
    const again = (await transactions.find({ _id: { $in: [...paymentIds] } }).toArray()).map(paymentEntry);
    const left = await walletReconciliation.findings({ ...sources, payments: again, paymentIds });
    const ofIt = typeof left === "string" ? left : left.filter(({ id }) => id === transaction.id);
    expect(ofIt).to.deep.equal([]);
  });

  describe("that wait for a person", () => {
    it("approve sends it at once: executing or approved, then approved, and on chain once", async () => {
      const agent = await asking(100);
      const { approvalId, transactionId } = await hold(agent);
      expect(await chain.isDeployed(agent)).to.equal(false);
      const decided = await approve(approvalId);
      expect(decided.approval.resolution).to.be.oneOf(["executing", "approved"]);
      const { approval, transaction } = await finalPayment(world, agent, transactionId);
      expect([transaction.status, approval?.resolution]).to.deep.equal(["approved", "approved"]);
      expect(await expectChainAgrees(world, agent, 100)).to.have.lengthOf(1);
    });

    it("deny, cancel, and an approval that can't be paid send nothing and give the amount back", async () => {
      const agent = await asking(50);
      const [denied, cancelled, approved] = [await hold(agent), await hold(agent), await hold(agent)];
      const body = { feedback: "not this one" };
      await world.api.ok("denyApproval", 200, { token: world.token, id: denied.approvalId, body });
      await world.api.ok("cancelPayment", 200, { token: agent.key, id: cancelled.transactionId });
      await approve(approved.approvalId);
      const ends = [denied, cancelled, approved].map(async ({ transactionId }) => {
        const { approval, transaction } = await finalPayment(world, agent, transactionId);
        const { denialCode, onChainTxHash, status } = transaction;
        return [status, denialCode, onChainTxHash, approval?.resolution];
      });
      expect(await Promise.all(ends)).to.deep.equal([
        ["denied", "APPROVAL_DENIED", null, "denied"],
        ["denied", "CANCELLED_BY_AGENT", null, "denied"],
        ["failed", "INSUFFICIENT_FUNDS", null, "failed"],
      ]);
      expect(await expectChainAgrees(world, agent, 50)).to.deep.equal([]);
    });
  });

  it("the same idempotency key pays once, whichever way its recipient's address is written", async () => {
    const agent = await fundedAgent(world, 500);
    const to = freshRecipient();
    const body = walletPayment(to);
    const paid = await payFromWallet(world, agent, body);
    const lower = { ...body, recipient: to.toLowerCase() };
    for (const again of [body, lower]) {
      const replayed = await world.api.ok("createPayment", 200, { token: agent.key, body: again });
      expect(replayed).to.deep.equal({ ...paid, replayed: true });
    }
    const other = { token: agent.key, body: { ...body, recipient: freshRecipient() } };
    const { message } = await world.api.refused("createPayment", 422, "IDEMPOTENCY_KEY_REUSED", other);
    expect(message, "which payment it was").to.include(paid.transaction.id);
    const first = walletPayment(to.toLowerCase());
    const inLower = await payFromWallet(world, agent, first);
    expect(inLower.transaction.merchant).to.equal(to);
    const inMixed = { token: agent.key, body: { ...first, recipient: to } };
    expect(await world.api.ok("createPayment", 200, inMixed)).to.deep.equal({ ...inLower, replayed: true });
    expect(await expectChainAgrees(world, agent, 500)).to.have.lengthOf(2);
  });

  it("a wallet that holds too little fails the payment, gives it back, and tells the agent", async () => {
    const agent = await fundedAgent(world, 99);
    const to = freshRecipient();
    const body = walletPayment(to);
    const { transaction } = await payFromWallet(world, agent, body);
    expect(transaction).to.deep.include({
      status: "failed",
      denialCode: "INSUFFICIENT_FUNDS",
      denialDetails: null,
      onChainTxHash: null,
    });
    await recordOnce(world, agent, 0, 0);
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const args = { transactionId: transaction.id };
    const { denials } = await mcp.ok(getDenialFeedback.output, "get_denial_feedback", args);
    expect(denials).to.have.lengthOf(1);
    expect(denials[0]).to.deep.include({
      status: "failed",
      denialCode: "INSUFFICIENT_FUNDS",
      feedback: null,
    });
    expect(denials[0]?.denialReason).to.match(/wallet does not hold enough/);
    await mcp.close();

    await fund(world, agent, 1);
    // What failed stays failed: the agent must decide anew.
    const replayed = await world.api.ok("createPayment", 200, { token: agent.key, body });
    expect(replayed.transaction.status).to.equal("failed");
    expect((await payFromWallet(world, agent, walletPayment(to))).transaction.status).to.equal("approved");
    expect(await expectChainAgrees(world, agent, 100)).to.have.lengthOf(1);
  });

  it("policy is asked before the wallet: over budget is BUDGET_EXCEEDED, whatever it holds", async () => {
    const agent = await world.agent({ budgetCents: 99 });
    const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    expect(transaction).to.deep.include({ status: "denied", denialCode: "BUDGET_EXCEEDED" });
    expect(await chain.isDeployed(agent)).to.equal(false);
  });

  it("check_payment answers a wallet payment by policy, whatever the wallet holds", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 500, budgetCents: 1_000 });
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const recipient = freshRecipient();
    for (const [amountCents, decision] of [
      [500, "approved"],
      [501, "held"],
      [1_001, "denied"],
    ] as const) {
      const args = { rail: "wallet", recipient, amountCents };
      expect((await mcp.ok(checkPayment.output, "check_payment", args)).decision).to.equal(decision);
    }
    await mcp.close();
  });

  it("a wallet of another chain is never read or funded: balance unknown, payments fail", async () => {
    const agent = await world.agent();
    const agents = world.service.db.collection<AgentDocument>(COLLECTIONS.agents);
    await agents.updateOne({ _id: agent.id }, { $set: { "wallet.chainCaip2": "eip155:1" } });
    const record = await agents.findOne({ _id: agent.id });
    if (record === null) throw new Error("the agent's record is gone");
    // As if it had been created on that chain.
    const proof = new AgentProofs(masterKey.macs("agent-proofs")).ofAgent(record);
    await agents.updateOne({ _id: agent.id }, { $set: { proof } });
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    await mcp.refused("get_wallet", "SERVICE_UNAVAILABLE");
    await mcp.close();
    const funding = { token: world.token, id: agent.id, body: { amountCents: 100 } };
    await world.api.refused("fundAgentInSandbox", 404, "NOT_FOUND", funding);
    const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    expect(transaction).to.deep.include({ status: "failed", denialCode: "RAIL_UNAVAILABLE" });
    await recordOnce(world, agent, 0, 0);
  });

  it("an idempotency key of a card payment is not good for a wallet payment", async () => {
    const agent = await fundedAgent(world, 100);
    const idempotencyKey = randomUUID();
    await agent.pay({ idempotencyKey });
    const body = walletPayment(freshRecipient(), { idempotencyKey });
    await world.api.refused("createPayment", 422, "IDEMPOTENCY_KEY_REUSED", { token: agent.key, body });
    expect(await chain.isDeployed(agent)).to.equal(false);
  });

  it("a raised budget can be spent at once, to the cent", async () => {
    const agent = await fundedAgent(world, 2_000, { budgetCents: 100 });
    const to = freshRecipient();
    const pay = async (amountCents: number) =>
      (await payFromWallet(world, agent, walletPayment(to, { amountCents }))).transaction;
    expect((await pay(100)).status).to.equal("approved");
    expect((await pay(1)).denialCode).to.equal("BUDGET_EXCEEDED");
    await setBudget(agent.id, 1_000);
    expect((await pay(900)).status).to.equal("approved");
    expect((await pay(1)).denialCode).to.equal("BUDGET_EXCEEDED");
    expect(await expectChainAgrees(world, agent, 2_000)).to.have.lengthOf(2);
  });

  it("create_wallet_payment and get_wallet over MCP answer what REST and the chain say", async () => {
    const agent = await world.agent();
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const read = () => mcp.ok(getWallet.output, "get_wallet");
    const { chainCaip2, address } = await chain.wallet(agent);
    expect(await read()).to.deep.equal({
      address,
      chainCaip2,
      balanceCents: 0,
      pocketCents: 0,
      currency: "USD",
    });
    await fund(world, agent, 700);
    const { rail, ...args } = walletPayment(freshRecipient());
    const paid = await mcp.ok(createWalletPayment.output, "create_wallet_payment", args);
    expect(paid.transaction.status).to.equal("approved");
    const id = paid.transaction.id;
    const shown = await world.api.ok("getPayment", 200, { token: agent.key, id });
    expect(shown).to.deep.equal(paymentOf(paid));
    const again = { ...paid, replayed: true };
    expect(await mcp.ok(createWalletPayment.output, "create_wallet_payment", args)).to.deep.equal(again);
    const twin = { token: agent.key, body: { rail, ...args } };
    expect(await world.api.ok("createPayment", 200, twin)).to.deep.equal(again);
    expect((await read()).balanceCents).to.equal(600);
    expect(await chain.cents(agent, getAddress(address))).to.equal(600);
    expect(await expectChainAgrees(world, agent, 700)).to.have.lengthOf(1);
    await mcp.close();
  });

  it("what was paid can't be cancelled, and the list tells wallet from card", async () => {
    const agent = await fundedAgent(world, 100);
    const byCard = await agent.pay();
    const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    const cancel = { token: agent.key, id: transaction.id };
    await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", cancel);
    const listed = z.array(z.looseObject({ id: z.string() }));
    const idsOf = async (type: string) => {
      const query = { agent_id: agent.id, type };
      const page = await world.api.ok("listTransactions", 200, { token: world.token, query });
      return listed.parse(page.transactions).map(({ id }) => id);
    };
    expect(await idsOf("wallet")).to.deep.equal([transaction.id]);
    expect(await idsOf("card")).to.deep.equal([byCard.transaction.id]);
  });
});
