import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { z } from "zod";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { type ChainProxy, type Mishap, startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { disturbed } from "../support/disturbed.ts";
import { inTime, PAYMENT_ANSWER_MS } from "../support/in-time.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { someOrAll } from "../support/soak.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { successOf } from "../support/contract-api.ts";
import {
  ChainView,
  expectChainAgrees,
  finalPayment,
  freshRecipient,
  fundedAgent,
  payAtOnceFromWallet,
  payFromWallet,
  recordOnce,
  walletPayment,
} from "../support/chain.ts";
import { elevate, newWorld, type TestAgent, times, until, type World } from "../support/world.ts";

/** Soon, since what is unconfirmed is looked after only then. */
const SWEEP_SECONDS = 2;
const SETTLED_MS = 120_000;
const MISHAPS: readonly Mishap[] = ["silence", "too-many", "garbage", "nonsense", "cut-before", "cut-after"];
/** Change of a pocket, by default, which the limit on the chain has beside the budget. */
const FLOAT_CENTS = 500;
const MONEY = 10_000;

const { getWallet } = operations;
const readiness = z.looseObject({ ready: z.boolean(), missing: z.array(z.string()) });

describe("a chain that does not answer", () => {
  const rpcUrl = process.env["TEST_EVM_RPC_URL"] ?? "";
  let proxy: ChainProxy;
  let service: TestService;
  let world: World;
  before(async () => {
    proxy = await startChainProxy(rpcUrl);
    proxy.behave(() => "silence");
    service = await startTestService({ evmRpcUrl: proxy.url, sweepAfterSeconds: SWEEP_SECONDS });
    world = await newWorld(service);
  });
  after(async () => {
    proxy.behave(() => "pass");
    await service.stop();
    await proxy.close();
  });
  // Also after one that failed.
  afterEach(() => proxy.behave(() => "pass"));

  async function expectPending(agent: TestAgent, body = walletPayment(freshRecipient())): Promise<string> {
    const paying = payAtOnceFromWallet(world, agent, body);
    const { approval, transaction } = await inTime("the payment", paying, PAYMENT_ANSWER_MS);
    expect([transaction.status, transaction.denialCode, approval]).to.deep.equal(["pending", null, null]);
    return transaction.id;
  }

  async function expectSettledOnce(agent: TestAgent, ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const { transaction } = await finalPayment(world, agent, id, SETTLED_MS);
      expect(transaction.status).to.equal("approved");
      expect(transaction.onChainTxHash).to.match(/^0x[0-9a-f]{64}$/);
    }
    const transfers = await expectChainAgrees(world, agent, MONEY, new ChainView(world, rpcUrl));
    expect(transfers).to.have.lengthOf(ids.length);
  }

  const ready = async () => {
    const response = await fetch(`${service.baseUrl}/readyz`);
    return { status: response.status, ...readiness.parse(await response.json()) };
  };

  /** It has a wallet and pays by card; its wallet gets no money for now. */
  const expectNewAgent = async () => {
    const other = await inTime("a new agent", world.agent());
    expect((await inTime("a card", other.payAtOnce())).transaction.status).to.equal("approved");
    const { id } = other;
    const record = await world.api.ok("getAgent", 200, { token: world.token, id });
    expect(record.agent.wallet?.address).to.match(/^0x/);
    const funding = { token: world.token, id, body: { amountCents: 1 } };
    await inTime("fund", world.api.refused("fundAgentInSandbox", 503, "SERVICE_UNAVAILABLE", funding));
  };

  it("from the service's start on: its agents pay by card, and no money or payment is lost", async () => {
    const agent = await world.agent();
    const chain = new ChainView(world, rpcUrl);
    const other = await world.agent();
    expect((await inTime("a card", other.payAtOnce())).transaction.status).to.equal("approved");
    const funding = { token: world.token, id: agent.id, body: { amountCents: MONEY } };
    const refused = world.api.refused("fundAgentInSandbox", 503, "SERVICE_UNAVAILABLE", funding);
    await inTime("fund", refused);
    const body = walletPayment(freshRecipient());
    const paying = payAtOnceFromWallet(world, agent, body);
    const early = await inTime("the payment", paying, PAYMENT_ANSWER_MS);
    expect(early.transaction.status).to.equal("pending");

    proxy.behave(() => "pass");
    const { balanceCents } = await until("the money is there", async () => {
      const answer = await world.api.call("fundAgentInSandbox", funding);
      return answer.status === 200 ? successOf("fundAgentInSandbox", answer.body) : null;
    });
    expect(balanceCents)
      .to.be.at.most(MONEY)
      .and.at.least(MONEY - 100);
    const paid = await finalPayment(world, agent, early.transaction.id, SETTLED_MS);
    expect(paid.transaction.status).to.equal("approved");
    expect(await expectChainAgrees(world, agent, MONEY, chain)).to.have.lengthOf(1);
  });

  describe("whatever it does instead", () => {
    let agent: TestAgent;
    const ids: string[] = [];
    const mishaps = someOrAll(MISHAPS, 1);
    before(async () => {
      agent = await fundedAgent(world, MONEY);
    });

    for (const mishap of mishaps) {
      it(`${mishap}: a payment is pending in time, its balance unknown, and all else works`, async () => {
        const mcp = await McpCaller.connect(service.baseUrl, agent.key);
        proxy.behave(() => mishap);
        const payment = async () => {
          const body = walletPayment(freshRecipient());
          const paymentId = await expectPending(agent, body);
          ids.push(paymentId);
          const again = world.api.okAtOnce("createPayment", 200, { token: agent.key, body });
          const { transaction } = await inTime("its replay", again, PAYMENT_ANSWER_MS);
          expect([transaction.id, transaction.status]).to.deep.equal([paymentId, "pending"]);
          const cancel = { token: agent.key, id: paymentId };
          await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", cancel);
        };
        const balance = async () => {
          const unknown = await inTime("get_wallet", mcp.refused("get_wallet", "SERVICE_UNAVAILABLE"));
          expect(unknown.retry_after_seconds).to.be.a("number");
          expect(unknown).not.to.have.property("balanceCents");
          await inTime("get_budget", mcp.call("get_budget"));
        };
        await Promise.all([payment(), balance(), expectNewAgent()]);
        await until("/readyz names the chain", async () => {
          const { missing, status } = await inTime("readyz", ready());
          expect(status, "the process takes requests").to.equal(200);
          return missing.includes("the chain") ? true : null;
        });
        await mcp.close();
      });
    }

    it("each such payment settles by itself, once, when it answers again, and the balance is known", async () => {
      expect(ids).to.have.lengthOf(mishaps.length);
      proxy.behave(() => "pass");
      await expectSettledOnce(agent, ids);
      await until("the chain is there", async () => ((await ready()).missing.length === 0 ? true : null));
      const mcp = await McpCaller.connect(service.baseUrl, agent.key);
      const { balanceCents } = await mcp.ok(getWallet.output, "get_wallet");
      expect(balanceCents).to.equal(MONEY - mishaps.length * 100);
      await mcp.close();
    });
  });

  const alone = ["eth_sendRawTransaction", "eth_getTransactionReceipt", "eth_getTransactionCount"].flatMap(
    (method) => (["silence", "cut-after"] as const).map((mishap) => ({ method, mishap })),
  );
  for (const { method, mishap } of someOrAll(alone, 1)) {
    it(`${method} alone meets ${mishap}: answered in time, settled once`, async () => {
      const agent = await fundedAgent(world, MONEY);
      proxy.behave((body) => (body.includes(method) ? mishap : "pass"));
      const body = walletPayment(freshRecipient());
      const paying = payAtOnceFromWallet(world, agent, body);
      const { transaction } = await inTime("the payment", paying, PAYMENT_ANSWER_MS);
      expect(transaction.status).to.be.oneOf(["pending", "approved"]);
      proxy.behave(() => "pass");
      await expectSettledOnce(agent, [transaction.id]);
    });
  }

  const manage = ({ id }: TestAgent) => ({ token: world.token, id });
  const pause = (agent: TestAgent) => world.api.ok("pauseAgent", 200, manage(agent));
  const resume = (agent: TestAgent) => world.api.ok("resumeAgent", 200, manage(agent));
  const revoke = (agent: TestAgent) => world.api.ok("revokeAgentKey", 200, manage(agent));
  const transfers = (agent: TestAgent) => new ChainView(world, rpcUrl).transfers(agent);

  /** A payment that was answered as pending and that no rail has: the chain stands still. */
  async function undelivered(agent: TestAgent): Promise<string> {
    const { transaction } = await payAtOnceFromWallet(world, agent, walletPayment(freshRecipient()));
    expect([transaction.status, transaction.onChainTxHash]).to.deep.equal(["pending", null]);
    return transaction.id;
  }

  const record = async (transactionId: string) =>
    (await world.api.ok("getTransaction", 200, { token: world.token, id: transactionId })).transaction;

  async function released(transactionId: string): Promise<void> {
    const ended = await until("it is released", async () => {
      const { denialCode, status } = await record(transactionId);
      return status === "pending" ? null : { denialCode, status };
    });
    expect(ended).to.deep.equal({ status: "denied", denialCode: "AGENT_PAUSED" });
  }

  const releasedByArchive = async () => {
    const agent = await fundedAgent(world, MONEY);
    return async () => {
      const id = await undelivered(agent);
      await pause(agent);
      await world.api.ok("archiveAgent", 200, manage(agent));
      await released(id);
      await recordOnce(world, agent, 0, 0);
      return async () => {
        const other = await fundedAgent(world, MONEY);
        await payFromWallet(world, other, walletPayment(freshRecipient()));
        expect(await transfers(agent)).to.deep.equal([]);
      };
    };
  };

  describe("silent while several pay", () => {
    before(() => elevate(world));

    disturbed(
      { begin: () => proxy.behave(() => "silence"), end: () => proxy.behave(() => "pass") },
      {
        "payments that come one after another while it is silent are all answered in time": async () => {
          const agent = await fundedAgent(world, MONEY);
          return async () => {
            const first = expectPending(agent);
            const later = times(2, async (index) => {
              await sleep(700 * (index + 1));
              return expectPending(agent);
            });
            const ids = await Promise.all([first, ...later]);
            return () => expectSettledOnce(agent, ids);
          };
        },
        "an accepted payment settles though its budget was lowered; the wallet ends at the new one":
          async () => {
            const agent = await fundedAgent(world, MONEY);
            const first = await payFromWallet(world, agent, walletPayment(freshRecipient()));
            await finalPayment(world, agent, first.transaction.id, SETTLED_MS);
            return async () => {
              const id = await expectPending(agent);
              const body = { version: 1, budgetCents: 50 };
              const lowering = world.api.okAtOnce("updateAgentBudgetPolicy", 200, { ...manage(agent), body });
              await inTime("the policy", lowering);
              return async () => {
                const paid = await finalPayment(world, agent, id, SETTLED_MS);
                expect(paid.transaction.status).to.equal("approved");
                const chain = new ChainView(world, rpcUrl);
                expect(await chain.transfers(agent)).to.have.lengthOf(2);
                await recordOnce(world, agent, 200, 0);
                const limits = world.service.db.collection(COLLECTIONS.walletLimits);
                await until(
                  "the wallet's limit is the budget and the pocket's change",
                  async () => {
                    // It need not wait for the changes that might follow it.
                    const waiting = { agentId: agent.id, dueAt: { $exists: true } };
                    await limits.updateMany(waiting, { $set: { dueAt: new Date() } });
                    return (await chain.limitCents(agent)) === 50 + FLOAT_CENTS ? true : null;
                  },
                  SETTLED_MS,
                );
              };
            };
          },
        "what was decided before a pause is not sent though it answers again; resumed it is, once":
          async () => {
            const [agent, other] = [await fundedAgent(world, MONEY), await fundedAgent(world, MONEY)];
            return async () => {
              const [waiting, witness] = await Promise.all([undelivered(agent), undelivered(other)]);
              await pause(agent);
              return async () => {
                // Decided with it and looked after like it: a process that had sent the one would have sent the other.
                const witnessed = await finalPayment(world, other, witness, SETTLED_MS);
                expect(witnessed.transaction.status).to.equal("approved");
                expect((await record(waiting)).status).to.equal("pending");
                expect(await transfers(agent)).to.deep.equal([]);
                await resume(agent);
                const paid = await finalPayment(world, agent, waiting, SETTLED_MS);
                expect(paid.transaction.status).to.equal("approved");
                const view = new ChainView(world, rpcUrl);
                expect(await expectChainAgrees(world, agent, MONEY, view)).to.have.lengthOf(1);
              };
            };
          },
        "what was decided is released when its agent is archived, and is never sent": releasedByArchive,
        "an agent that was stopped pays again with a new key, and nothing of before comes back": async () => {
          const agent = await fundedAgent(world, MONEY);
          return async () => {
            const id = await undelivered(agent);
            await pause(agent);
            await revoke(agent);
            const { apiKey } = await world.api.ok("mintAgentKey", 201, manage(agent));
            await resume(agent);
            return async () => {
              const again = { ...agent, key: apiKey };
              const paid = await payFromWallet(world, again, walletPayment(freshRecipient()));
              await released(id);
              const settled = await finalPayment(world, again, paid.transaction.id, SETTLED_MS);
              expect(settled.transaction.status).to.equal("approved");
              expect(await transfers(agent)).to.have.lengthOf(1);
            };
          };
        },
      },
    );
  });
});
