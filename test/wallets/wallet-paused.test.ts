import { expect } from "chai";
import { disturbed } from "../support/disturbed.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { startTestService, type TestService } from "../support/service.ts";
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
import { elevate, newWorld, type TestAgent, until, type World } from "../support/world.ts";

const MONEY = 10_000;
/** Soon, since what is unconfirmed is looked after only then. */
const SWEEP_SECONDS = 2;
/** It is not promised. */
const SWEPT_MS = 120_000;

describe("agents that are stopped while their chain stands still", () => {
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

  const manage = ({ id }: TestAgent) => ({ token: world.token, id });
  const pause = (agent: TestAgent) => world.api.ok("pauseAgent", 200, manage(agent));
  const resume = (agent: TestAgent) => world.api.ok("resumeAgent", 200, manage(agent));
  const revoke = (agent: TestAgent) => world.api.ok("revokeAgentKey", 200, manage(agent));
  const transfers = (agent: TestAgent) => new ChainView(world, chain.url).transfers(agent);

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

  /** What was decided and then stopped in one of these ways. */
  const releasedBy = (stop: (agent: TestAgent) => Promise<unknown>) => async () => {
    const agent = await fundedAgent(world, MONEY);
    return async () => {
      const id = await undelivered(agent);
      await pause(agent);
      await stop(agent);
      await released(id);
      await recordOnce(world, agent, 0, 0);
      return async () => {
        const other = await fundedAgent(world, MONEY);
        await payFromWallet(world, other, walletPayment(freshRecipient()));
        expect(await transfers(agent)).to.deep.equal([]);
      };
    };
  };

  describe("what was decided while it stands still", () => {
    disturbed(
      { begin: () => chain.hang(), end: () => chain.goOn() },
      {
        "what was decided is not sent though the chain goes on; once resumed it is, once": async () => {
          const [agent, other] = [await fundedAgent(world, MONEY), await fundedAgent(world, MONEY)];
          return async () => {
            const [waiting, witness] = await Promise.all([undelivered(agent), undelivered(other)]);
            await pause(agent);
            return async () => {
              // Decided with it and looked after like it: a process that had sent the one would have sent the other.
              const witnessed = await finalPayment(world, other, witness, SWEPT_MS);
              expect(witnessed.transaction.status).to.equal("approved");
              expect((await record(waiting)).status).to.equal("pending");
              expect(await transfers(agent)).to.deep.equal([]);
              await resume(agent);
              const paid = await finalPayment(world, agent, waiting, SWEPT_MS);
              expect(paid.transaction.status).to.equal("approved");
              const view = new ChainView(world, chain.url);
              expect(await expectChainAgrees(world, agent, MONEY, view)).to.have.lengthOf(1);
            };
          };
        },
        "what was decided is released when it is paused and its key is revoked, and is never sent":
          releasedBy(revoke),
        "what was decided is released when it is paused and it is archived, and is never sent": releasedBy(
          (agent) => world.api.ok("archiveAgent", 200, manage(agent)),
        ),
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
              const settled = await finalPayment(world, again, paid.transaction.id, SWEPT_MS);
              expect(settled.transaction.status).to.equal("approved");
              expect(await transfers(agent)).to.have.lengthOf(1);
            };
          };
        },
      },
    );
  });

  it("what was signed before the stop is followed: it is mined, and so it is paid", async () => {
    const agent = await fundedAgent(world, MONEY);
    await payFromWallet(world, agent, walletPayment(freshRecipient()));
    await chain.call("evm_setAutomine", [false]);
    const { transaction } = await payAtOnceFromWallet(world, agent, walletPayment(freshRecipient()));
    expect(transaction.status).to.equal("pending");
    expect(transaction.onChainTxHash).to.match(/^0x/);
    await pause(agent);
    await revoke(agent);
    await chain.call("evm_setAutomine", [true]);
    await chain.call("evm_mine");
    const paid = await until(
      "it is paid",
      async () => {
        const { status } = await record(transaction.id);
        return status === "pending" ? null : status;
      },
      SWEPT_MS,
    );
    expect(paid).to.equal("approved");
    expect(await transfers(agent)).to.have.lengthOf(2);
  });
});
