import { expect } from "chai";
import { parseAbi, zeroAddress } from "viem";
import { type ChainProxy, startChainProxy } from "../../scripts/chaos/chain-proxy.ts";
import { inTime } from "../support/in-time.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  ChainView,
  freshRecipient,
  fund,
  fundedAgent,
  payFromWallet,
  walletPayment,
} from "../support/chain.ts";
import { archive, expectEvents, expiredAgents, orchestrator, readAgent } from "../support/life.ts";
import { newWorld, type TestAgent, type TestOrganizationKey, until, type World } from "../support/world.ts";

const DETACHED_MS = 120_000;
const MISHAPS = ["silence", "cut-before", "garbage", "nonsense", "too-many"] as const;

const walletAbi = parseAbi(["function spender() view returns (address)"]);

describe("archiving while the chain does not answer", () => {
  const rpcUrl = process.env["TEST_EVM_RPC_URL"] ?? "";
  let proxy: ChainProxy;
  let service: TestService;
  let world: World;
  let by: TestOrganizationKey;
  before(async () => {
    proxy = await startChainProxy(rpcUrl);
    service = await startTestService({ evmRpcUrl: proxy.url, keyDeliveryWindowSeconds: 4 });
    world = await newWorld(service);
    by = await orchestrator(world);
  });
  after(async () => {
    proxy.behave(() => "pass");
    await service.stop();
    await proxy.close();
  });
  beforeEach(() => proxy.behave(() => "pass"));

  /** Funded, and with a wallet that is deployed and that the service may spend from. */
  async function deployed(): Promise<TestAgent> {
    const agent = await fundedAgent(world, 1_000);
    await payFromWallet(world, agent, walletPayment(freshRecipient()));
    expect(await spenderOf(agent)).not.to.equal(zeroAddress);
    return agent;
  }

  async function spenderOf(agent: TestAgent) {
    const chain = new ChainView(world, rpcUrl);
    const address = await chain.walletAddress(agent);
    return chain.client.readContract({ address, abi: walletAbi, functionName: "spender" });
  }

  it("a deployed wallet is detached on chain with the answer; the organization keeps the balance", async () => {
    const agent = await deployed();
    const { walletsFailed } = await inTime("archive", archive(world, agent));
    expect(walletsFailed).to.deep.equal([]);
    expect(await spenderOf(agent)).to.equal(zeroAddress);
    const chain = new ChainView(world, rpcUrl);
    expect(await chain.cents(agent, await chain.walletAddress(agent))).to.equal(900);
  });

  it("200 names the wallet in walletsFailed, repeatedly; empty and detached once it answers", async () => {
    const agent = await deployed();
    const { wallet } = await readAgent(world, agent);
    for (const mishap of MISHAPS) {
      proxy.behave(() => mishap);
      const { agent: record, walletsFailed } = await inTime("archive", archive(world, agent));
      expect([record.state, walletsFailed], mishap).to.deep.equal(["archived", [wallet]]);
    }
    await world.api.refused("listPayments", 401, "UNAUTHORIZED", { token: agent.key });
    proxy.behave(() => "pass");
    await until(
      "walletsFailed is empty",
      async () => ((await archive(world, agent)).walletsFailed.length === 0 ? true : null),
      DETACHED_MS,
    );
    expect(await spenderOf(agent)).to.equal(zeroAddress);
    proxy.behave(() => "silence");
    expect((await inTime("archive", archive(world, agent))).walletsFailed, "it stays so").to.deep.equal([]);
    const events = { "agent.created": 1, "agent.archived": 1, "transaction.completed": 1 };
    await expectEvents(world, agent, events);
  });

  it("the actor detaches it by itself when nobody asks again", async () => {
    const agent = await deployed();
    proxy.behave(() => "silence");
    expect((await inTime("archive", archive(world, agent))).walletsFailed).to.have.lengthOf(1);
    proxy.behave(() => "pass");
    await until(
      "the wallet is detached",
      async () => ((await spenderOf(agent)) === zeroAddress ? true : null),
      DETACHED_MS,
    );
  });

  it("a machine's archive is 409 BALANCE_UNVERIFIABLE, and 200 once the balance is known as zero", async () => {
    const [agent, funded] = await expiredAgents(world, by, 2);
    if (agent === undefined || funded === undefined) throw new Error("two were made");
    await fund(world, funded, 100);
    for (const mishap of MISHAPS) {
      proxy.behave(() => mishap);
      for (const { id } of [agent, funded]) {
        const request = { token: by.token, id };
        await inTime("archive", world.api.refused("archiveAgent", 409, "BALANCE_UNVERIFIABLE", request));
      }
    }
    expect((await readAgent(world, agent)).state).to.equal("active");
    proxy.behave(() => "pass");
    const request = { token: by.token, id: funded.id };
    await until("the balance is read", async () => {
      const { status } = await world.api.call("archiveAgent", request);
      return status === 403 ? true : null;
    });
    await world.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", request);
    await archive(world, agent, by.token);
  });

  it("what never changes comes before a balance that nobody can read", async () => {
    const [agent] = await expiredAgents(world, by, 1, "unproven");
    if (agent === undefined) throw new Error("one was made");
    proxy.behave(() => "silence");
    const request = { token: by.token, id: agent.id };
    await world.api.refused("archiveAgent", 409, "KEY_DELIVERY_UNPROVEN", request);
    const other = await orchestrator(world);
    const foreign = { token: other.token, id: agent.id };
    await world.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", foreign);
  });
});
