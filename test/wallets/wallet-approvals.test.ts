import { expect } from "chai";
import { atOnce, expectDoneOnce } from "../support/at-once.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  ChainView,
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fundedAgent,
  payFromWallet,
  recordOnce,
  walletPayment,
} from "../support/chain.ts";
import { elevate, newWorld, type TestAgent, type World } from "../support/world.ts";

const WINDOW_SECONDS = 2;

describe("wallet payments that wait for a person", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const asking = (cents: number, on = world): Promise<TestAgent> =>
    fundedAgent(on, cents, { autoApprovalThresholdCents: 0 });

  async function hold(agent: TestAgent, on = world) {
    const { approval, transaction } = await payFromWallet(on, agent, walletPayment(freshRecipient()));
    if (approval === null) throw new Error("was not held");
    expect([transaction.status, transaction.onChainTxHash]).to.deep.equal(["pending", null]);
    return { approvalId: approval.id, transactionId: transaction.id };
  }

  it("approve sends it at once: executing or approved, then approved, and on chain once", async () => {
    const agent = await asking(100);
    const { approvalId, transactionId } = await hold(agent);
    expect(await new ChainView(world).isDeployed(agent)).to.equal(false);
    const decided = await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    expect(decided.approval.resolution).to.be.oneOf(["executing", "approved"]);
    const { approval, transaction } = await finalPayment(world, agent, transactionId);
    expect([transaction.status, approval?.resolution]).to.deep.equal(["approved", "approved"]);
    expect(await expectChainAgrees(world, agent, 100)).to.have.lengthOf(1);
  });

  it("ten approvals at once are one transfer: one decides, nine are told that it was resolved", async () => {
    const agent = await asking(1_000);
    const { approvalId, transactionId } = await hold(agent);
    const request = { token: world.token, id: approvalId };
    const answers = await atOnce(10, () => world.api.call("approveApproval", request));
    expectDoneOnce(answers, "APPROVAL_ALREADY_RESOLVED", 200);
    expect((await finalPayment(world, agent, transactionId)).transaction.status).to.equal("approved");
    expect(await expectChainAgrees(world, agent, 1_000)).to.have.lengthOf(1);
  });

  it("deny and cancel send nothing and give the amount back", async () => {
    const agent = await asking(1_000);
    const [denied, cancelled] = [await hold(agent), await hold(agent)];
    const body = { feedback: "not this one" };
    await world.api.ok("denyApproval", 200, { token: world.token, id: denied.approvalId, body });
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: cancelled.transactionId });
    for (const { transactionId } of [denied, cancelled]) {
      const { transaction } = await finalPayment(world, agent, transactionId);
      expect([transaction.status, transaction.onChainTxHash]).to.deep.equal(["denied", null]);
    }
    expect(await expectChainAgrees(world, agent, 1_000)).to.deep.equal([]);
  });

  it("what is approved and can't be paid fails with INSUFFICIENT_FUNDS and is given back", async () => {
    const agent = await asking(50);
    const { approvalId, transactionId } = await hold(agent);
    await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
    const { approval, transaction } = await finalPayment(world, agent, transactionId);
    expect([transaction.status, transaction.denialCode, approval?.resolution]).to.deep.equal([
      "failed",
      "INSUFFICIENT_FUNDS",
      "failed",
    ]);
    await recordOnce(world, agent, 0, 0);
    expect(await expectChainAgrees(world, agent, 50)).to.deep.equal([]);
  });

  it("approving while the agent is paused or over a lowered budget fails it and sends nothing", async () => {
    for (const [code, stop] of [
      [
        "AGENT_PAUSED",
        (id: string) => world.api.ok("pauseAgent", 200, { token: world.token, id }).then(() => undefined),
      ],
      [
        "BUDGET_EXCEEDED",
        async (id: string) => {
          const body = { version: 1, budgetCents: 99 };
          await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id, body });
        },
      ],
    ] as const) {
      const agent = await asking(100);
      const { approvalId } = await hold(agent);
      await stop(agent.id);
      const { approval } = await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
      expect(approval.resolution, code).to.equal("failed");
      await recordOnce(world, agent, 0, 0);
      const query = { agent_id: agent.id };
      const { transactions } = await world.api.ok("listTransactions", 200, { token: world.token, query });
      expect(transactions[0]).to.deep.include({ status: "failed", denialCode: code, onChainTxHash: null });
      expect(await expectChainAgrees(world, agent, 100)).to.deep.equal([]);
    }
  });

  describe("with a short window", () => {
    let service: TestService;
    before(async () => {
      service = await startTestService({ approvalWindowSeconds: WINDOW_SECONDS });
    });
    after(() => service.stop());

    it("what stays undecided expires: nothing is sent and the amount is given back", async () => {
      const own = await newWorld(service);
      const agent = await asking(100, own);
      const { transactionId } = await hold(agent, own);
      const { transaction } = await finalPayment(own, agent, transactionId);
      expect([transaction.status, transaction.denialCode]).to.deep.equal(["expired", "APPROVAL_EXPIRED"]);
      expect(await expectChainAgrees(own, agent, 100)).to.deep.equal([]);
    });
  });
});
