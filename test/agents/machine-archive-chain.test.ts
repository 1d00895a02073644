import { expect } from "chai";
import { parseAbi, zeroAddress } from "viem";
import { type ChainProxy, startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { disturbed } from "../support/disturbed.ts";
import { inTime } from "../support/in-time.ts";
import { startTestService, type TestService } from "../support/service.ts";
import {
  ChainView,
  finalPayment,
  freshRecipient,
  fund,
  fundedAgent,
  payFromWallet,
  walletPayment,
} from "../support/chain.ts";
import { archive, expectEvents, expiredAgents, orchestrator, readAgent } from "../support/life.ts";
import { someOrAll } from "../support/soak.ts";
import { newWorld, type TestAgent, type TestOrganizationKey, until, type World } from "../support/world.ts";

const DETACHED_MS = 120_000;
const OTHER_MISHAPS = ["cut-before", "garbage", "nonsense", "too-many"] as const;

const walletAbi = parseAbi(["function spender() view returns (address)"]);

describe("archiving while the chain does not answer", () => {
  const rpcUrl = process.env["TEST_EVM_RPC_URL"] ?? "";
  let proxy: ChainProxy;
  let service: TestService;
  let world: World;
  let by: TestOrganizationKey;
  before(async () => {
    proxy = await startChainProxy(rpcUrl);
    service = await startTestService({ evmRpcUrl: proxy.url, keyDeliveryWindowSeconds: 2 });
    world = await newWorld(service);
    by = await orchestrator(world);
  });
  after(async () => {
    proxy.behave(() => "pass");
    await service.stop();
    await proxy.close();
  });
  // Also after one that failed.
  afterEach(() => proxy.behave(() => "pass"));

  /** Funded, and with a wallet that is deployed and that the service may spend from. */
  async function deployed(): Promise<TestAgent> {
    const agent = await fundedAgent(world, 1_000);
    const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    await finalPayment(world, agent, transaction.id);
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

  /** What is told of a person's archive, which is done all the same. */
  async function expectNamed(agent: TestAgent, what: string): Promise<void> {
    const { wallet } = await readAgent(world, agent);
    const { agent: record, walletsFailed } = await inTime("archive", archive(world, agent));
    expect([record.state, walletsFailed], what).to.deep.equal(["archived", [wallet]]);
  }

  const namesNone = (agent: TestAgent) =>
    until(
      "walletsFailed is empty",
      async () => ((await archive(world, agent)).walletsFailed.length === 0 ? true : null),
      DETACHED_MS,
    );

  /** Two of a machine that only their balance is in the way of: one without money, one with it. */
  async function emptyAndFunded() {
    const [empty, funded] = await expiredAgents(world, by, 2);
    if (empty === undefined || funded === undefined) throw new Error("two were made");
    await fund(world, funded, 100);
    return [empty, funded] as const;
  }

  const expectUnverifiable = ({ id }: { readonly id: string }) =>
    inTime(
      "a machine's archive",
      world.api.refused("archiveAgent", 409, "BALANCE_UNVERIFIABLE", { token: by.token, id }),
    );

  it("whatever else it does, a person's archive names the wallet, a machine's is 409", async () => {
    const [agent, [empty, funded]] = await Promise.all([deployed(), emptyAndFunded()]);
    for (const mishap of someOrAll(OTHER_MISHAPS, 2)) {
      proxy.behave(() => mishap);
      await expectNamed(agent, mishap);
      for (const each of [empty, funded]) await expectUnverifiable(each);
    }
    proxy.behave(() => "pass");
    await namesNone(agent);
    expect(await spenderOf(agent)).to.equal(zeroAddress);
    proxy.behave(() => "silence");
    expect((await inTime("archive", archive(world, agent))).walletsFailed, "it stays so").to.deep.equal([]);
    proxy.behave(() => "pass");
    const events = { "agent.created": 1, "agent.archived": 1, "transaction.completed": 1 };
    await expectEvents(world, agent, events);
  });

  describe("while it is silent", () => {
    disturbed(
      { begin: () => proxy.behave(() => "silence"), end: () => proxy.behave(() => "pass") },
      {
        "200 names the wallet in walletsFailed, repeatedly; empty and detached once it answers": async () => {
          const agent = await deployed();
          return async () => {
            await expectNamed(agent, "first");
            await expectNamed(agent, "again");
            await world.api.refused("listPayments", 401, "UNAUTHORIZED", { token: agent.key });
            return async () => {
              await namesNone(agent);
              expect(await spenderOf(agent)).to.equal(zeroAddress);
            };
          };
        },
        "a machine's archive is 409 BALANCE_UNVERIFIABLE, and 200 once the balance is known as zero":
          async () => {
            const [empty, funded] = await emptyAndFunded();
            return async () => {
              await Promise.all([empty, funded].map(expectUnverifiable));
              expect((await readAgent(world, empty)).state).to.equal("active");
              return async () => {
                const request = { token: by.token, id: funded.id };
                await until("the balance is read", async () => {
                  const { status } = await world.api.call("archiveAgent", request);
                  return status === 403 ? true : null;
                });
                await world.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", request);
                await archive(world, empty, by.token);
              };
            };
          },
      },
    );
  });
});
