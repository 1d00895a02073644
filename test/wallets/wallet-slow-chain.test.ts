import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { disturbed, type Disturbed } from "../support/disturbed.ts";
import { inTime, PAYMENT_ANSWER_MS, timed } from "../support/in-time.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { isForNow } from "../support/api.ts";
import { successOf } from "../support/contract-api.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  ChainView,
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fund,
  fundedAgent,
  payAtOnceFromWallet,
  payFromWallet,
  recordOnce,
  walletPayment,
} from "../support/chain.ts";
import { elevate, type Fields, newWorld, type TestAgent, until, type World } from "../support/world.ts";

/** Soon, since what is unconfirmed is looked after only then. */
const SWEEP_SECONDS = 2;
const SETTLED_MS = 120_000;

describe("a chain that mines slowly", () => {
  let chain: OwnAnvil;
  let service: TestService;
  let world: World;
  before(async () => {
    chain = await startOwnAnvil();
    service = await startTestService({ evmRpcUrl: chain.url, sweepAfterSeconds: SWEEP_SECONDS });
    world = await newWorld(service);
    await elevate(world);
  });
  after(async () => {
    await service.stop();
    await chain.kill();
  });

  const minesAtOnce = (yes: boolean) => chain.call("evm_setAutomine", [yes]);
  const mine = () => chain.call("evm_mine");
  /** Transactions that the next block will have. */
  const waiting = async () => Number(Object(await chain.call("txpool_status")).pending);
  // Also after one that failed.
  afterEach(() => minesAtOnce(true));

  const settled = (agent: TestAgent, id: string) => finalPayment(world, agent, id, SETTLED_MS);

  /** Funded and deployed. */
  async function deployed(cents: number, fields: Fields = {}): Promise<TestAgent> {
    const agent = await fundedAgent(world, cents + 100, fields);
    const first = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    // Several are deployed at once, which a busy machine's answer does not wait for.
    const { transaction } = await settled(agent, first.transaction.id);
    expect(transaction.status).to.equal("approved");
    return agent;
  }

  const seen = (agent: TestAgent, id: string) => world.api.ok("getPayment", 200, { token: agent.key, id });

  it("a payment that is mined a second later is final in its answer", async () => {
    const agent = await deployed(100);
    await minesAtOnce(false);
    const paying = timed(payAtOnceFromWallet(world, agent, walletPayment(freshRecipient())));
    await sleep(1_000);
    // On a busy machine the chain may have it only later.
    await until("the chain has it", async () => ((await waiting()) > 0 ? true : null));
    await mine();
    const { ms, ownMs, value } = await paying;
    await minesAtOnce(true);
    expect(value.transaction.status).to.equal("approved");
    expect(ms).to.be.above(900);
    expect(ownMs).to.be.below(PAYMENT_ANSWER_MS);
    expect(await expectChainAgrees(world, agent, 200)).to.have.lengthOf(2);
  });

  const pendingInTime: Disturbed = async () => {
    const agent = await deployed(100);
    return async () => {
      const body = walletPayment(freshRecipient());
      const { ms, ownMs, value } = await timed(payAtOnceFromWallet(world, agent, body));
      const { id, onChainTxHash, status } = value.transaction;
      expect([status, value.approval]).to.deep.equal(["pending", null]);
      // Most of it is a wait, which a busy machine hardly makes longer.
      expect(ms).to.be.within(2_500, 4_000);
      expect(ownMs).to.be.below(PAYMENT_ANSWER_MS);
      const { transaction } = await seen(agent, id);
      expect(transaction).to.deep.include({ status: "pending", chainCaip2: "eip155:31337" });
      expect(transaction.onChainTxHash).to.match(/^0x[0-9a-f]{64}$/);
      expect(onChainTxHash).to.equal(transaction.onChainTxHash);
      await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", { token: agent.key, id });
      await recordOnce(world, agent, 100, 100);
      const again = world.api.okAtOnce("createPayment", 200, { token: agent.key, body });
      const replayed = await inTime("its replay", again, PAYMENT_ANSWER_MS);
      expect(replayed.transaction.status).to.equal("pending");
      return async () => {
        const paid = await settled(agent, id);
        expect(paid.transaction).to.deep.include({ status: "approved", onChainTxHash });
        expect(await expectChainAgrees(world, agent, 200)).to.have.lengthOf(2);
      };
    };
  };

  const notSpentAgain: Disturbed = async () => {
    const agent = await deployed(100);
    return async () => {
      const [first, second] = await Promise.all([
        payFromWallet(world, agent, walletPayment(freshRecipient())),
        payFromWallet(world, agent, walletPayment(freshRecipient())),
      ]);
      const codes = [first, second].map(({ transaction }) => transaction.denialCode ?? transaction.status);
      expect(codes.toSorted()).to.deep.equal(["INSUFFICIENT_FUNDS", "pending"]);
      const onItsWay = [first, second].find(({ transaction }) => transaction.status === "pending");
      return async () => {
        await settled(agent, onItsWay?.transaction.id ?? "");
        expect(await expectChainAgrees(world, agent, 200)).to.have.lengthOf(2);
      };
    };
  };

  /** With its wallet's deployment. */
  const pausedOnItsWay: Disturbed = async () => {
    const agent = await fundedAgent(world, 100);
    return async () => {
      const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
      expect(transaction.status).to.equal("pending");
      const manage = { token: world.token, id: agent.id };
      const { version } = await world.api.ok("getAgentBudgetPolicy", 200, manage);
      const body = { version, budgetCents: 0 };
      const lowered = await world.api.ok("updateAgentBudgetPolicy", 200, { ...manage, body });
      expect(lowered.usage).to.deep.include({ spentCents: 0, reservedCents: 100, remainingCents: 0 });
      await world.api.ok("pauseAgent", 200, manage);
      await world.api.ok("revokeAgentKey", 200, manage);
      return async () => {
        const query = { agent_id: agent.id };
        await until(
          "it settles",
          async () => {
            const request = { token: world.token, query };
            const { transactions } = await world.api.ok("listTransactions", 200, request);
            return transactions.every(({ status }) => status === "approved") ? transactions : null;
          },
          SETTLED_MS,
        );
        const view = new ChainView(world);
        expect(await view.transfers(agent)).to.have.lengthOf(1);
        await recordOnce(world, agent, 100, 0);
      };
    };
  };

  const approved: Disturbed = async () => {
    const agent = await deployed(1_000, { autoApprovalThresholdCents: 100 });
    const held = await payFromWallet(world, agent, walletPayment(freshRecipient(), { amountCents: 101 }));
    const { id: transactionId } = held.transaction;
    return async () => {
      const request = { token: world.token, id: held.approval?.id ?? "" };
      const first = await inTime("approve", world.api.call("approveApproval", request));
      // On a busy machine that may be 503.
      const { approval: approving } = isForNow(first)
        ? await world.api.okAgain("approveApproval", 200, request)
        : successOf("approveApproval", first.body);
      expect(approving.resolution).to.equal("executing");
      await until("its transaction is known", async () => {
        const { transaction } = await seen(agent, transactionId);
        return transaction.onChainTxHash;
      });
      return async () => {
        const { approval, transaction } = await settled(agent, transactionId);
        expect([transaction.status, approval?.resolution]).to.deep.equal(["approved", "approved"]);
        expect(await expectChainAgrees(world, agent, 1_100)).to.have.lengthOf(2);
      };
    };
  };

  const fundedLater: Disturbed = async () => {
    const agent = await world.agent();
    return async () => {
      const request = { token: world.token, id: agent.id, body: { amountCents: 500 } };
      await inTime("fund", world.api.refused("fundAgentInSandbox", 503, "SERVICE_UNAVAILABLE", request));
      return async () => {
        const view = new ChainView(world);
        expect(await view.cents(agent, await view.walletAddress(agent))).to.equal(500);
        expect((await fund(world, agent, 1)).balanceCents).to.equal(501);
      };
    };
  };

  describe("what comes while nothing is mined", () => {
    disturbed(
      {
        begin: () => minesAtOnce(false),
        end: async () => {
          await mine();
          // What the keeper was just sending again is mined as it comes.
          await minesAtOnce(true);
        },
      },
      {
        "else it is pending within 3.5 s, with its hash, not cancellable, and approved once mined":
          pendingInTime,
        "money on its way is not spent again: of two payments that one balance covers, one fails":
          notSpentAgain,
        "a pause, a revoked key and a budget lowered below it stop nothing on its way: it settles":
          pausedOnItsWay,
        "approve answers executing in time while nothing is mined; afterwards it is approved, once": approved,
        "fund tells that it does not know yet, and the money arrives once, when it is mined": fundedLater,
      },
    );
  });
});
