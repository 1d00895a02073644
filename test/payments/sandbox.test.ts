import { expect } from "chai";
import { getWallet } from "../../src/contract/operations/payments.ts";
import { McpCaller } from "../mcp/support.ts";
import { isForNow } from "../support/api.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { ChainView, freshRecipient, fund, payFromWallet, walletPayment } from "../support/chain.ts";
import { newWorld, times, until, type World } from "../support/world.ts";

describe("the sandbox: test money and the card processor's books", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("fund mints exactly so much into the agent's wallet, and answers once it is on chain", async () => {
    const agent = await world.agent();
    const chain = new ChainView(world);
    const address = await chain.walletAddress(agent);
    let total = 0;
    for (const amountCents of [1, 99_999_999]) {
      total += amountCents;
      const funded = await fund(world, agent, amountCents);
      expect(funded.balanceCents).to.equal(total);
      const { onChainTxHash: hash } = funded;
      if (hash !== undefined) expect(await chain.succeeded(hash)).to.equal(true);
      expect(await chain.cents(agent, address)).to.equal(total);
    }
  });

  it("a wallet may hold more than the largest payment: all answers about it keep the contract", async () => {
    const agent = await world.agent();
    const most = 1_000_000_000_000;
    await fund(world, agent, most);
    expect((await fund(world, agent, most)).balanceCents).to.equal(2 * most);
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    expect((await mcp.ok(getWallet.output, "get_wallet")).balanceCents).to.equal(2 * most);
    await mcp.close();
  });

  it("fundings at the same time all arrive", async () => {
    const agent = await world.agent();
    const request = { token: world.token, id: agent.id, body: { amountCents: 10 } };
    const answers = await Promise.all(times(4, () => world.api.call("fundAgentInSandbox", request)));
    // Of one that is told to come again, on a busy machine, it is unknown.
    const told = answers.filter(({ status }) => status === 200).length;
    expect(answers.filter((answer) => answer.status !== 200 && !isForNow(answer))).to.deep.equal([]);
    const chain = new ChainView(world);
    const cents = await chain.cents(agent, await chain.walletAddress(agent));
    expect(cents).to.be.within(told * 10, 40);
  });

  it("fund takes an amount of cents from 1 on, and nothing else", async () => {
    const { id } = await world.agent();
    for (const body of [
      {},
      { amountCents: 0 },
      { amountCents: -1 },
      { amountCents: 0.5 },
      { amountCents: "1" },
      { amountCents: 1_000_000_000_001 },
      { amountCents: 1, currency: "USD" },
    ]) {
      const { issues } = await world.api.refused("fundAgentInSandbox", 400, "VALIDATION_FAILED", {
        token: world.token,
        id,
        body,
      });
      expect(issues).to.have.lengthOf(1);
    }
  });

  it("the ledger has one entry for each effect: capture, refund; and pages", async () => {
    const own = await newWorld();
    const agent = await own.agent();
    const merchants = ["shop", "sandbox-decline", "sandbox-reverse", "sandbox-flaky"];
    const ids: Record<string, string> = {};
    for (const merchant of merchants) ids[merchant] = (await agent.pay({ merchant })).transaction.id;
    await fund(own, agent, 100);
    await payFromWallet(own, agent, walletPayment(freshRecipient()));
    const read = () => own.api.ok("listCardLedger", 200, { token: own.token });
    const { entries, nextCursor } = await until("the refund is on the books", async () => {
      const page = await read();
      return page.entries.some(({ status }) => status === "refunded") ? page : null;
    });
    expect(nextCursor).to.equal(null);
    const seen = entries.map(({ amountCents, merchant, status, transactionId }) => [
      merchant,
      transactionId,
      amountCents,
      status,
    ]);
    const entry = (merchant: string, status: string) => [merchant, ids[merchant], 100, status];
    expect(seen).to.have.deep.members([
      entry("shop", "captured"),
      entry("sandbox-reverse", "captured"),
      entry("sandbox-reverse", "refunded"),
      entry("sandbox-flaky", "captured"),
    ]);
    expect(new Set(entries.map(({ id }) => id))).to.have.property("size", 4);
    const others = await world.api.ok("listCardLedger", 200, { token: world.token });
    expect(others.entries, "another organization's").to.deep.equal([]);
    const paged: typeof entries = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const query: Record<string, string> = { limit: "3", ...(cursor === "" ? {} : { cursor }) };
      const page = await own.api.ok("listCardLedger", 200, { token: own.token, query });
      expect(page.entries.length).to.be.within(1, 3);
      paged.push(...page.entries);
      cursor = page.nextCursor;
    }
    expect(paged).to.deep.equal(entries);
    for (const [code, query] of [
      ["BAD_CURSOR", { cursor: "x" }],
      ["VALIDATION_FAILED", { limit: "201" }],
    ] as const) {
      await own.api.refused("listCardLedger", 400, code, { token: own.token, query });
    }
    const made = entries.map(({ createdAt }) => createdAt);
    expect(made, "newest first").to.deep.equal(made.toSorted().toReversed());
  });
});

describe("a service without a chain", () => {
  let service: TestService;
  let world: World;
  before(async () => {
    service = await startTestService({ evmRpcUrl: null });
    world = await newWorld(service);
  });
  after(() => service.stop());

  it("has agents that pay by card; wallet payments fail; test money is 404, and it is ready", async () => {
    const agent = await world.agent();
    const { id } = agent;
    const record = (await world.api.ok("getAgent", 200, { token: world.token, id })).agent;
    expect(record.wallet).to.equal(null);
    expect((await agent.pay()).transaction.status).to.equal("approved");
    const { transaction } = await payFromWallet(world, agent, walletPayment(freshRecipient()));
    expect(transaction).to.deep.include({ status: "failed", denialCode: "RAIL_UNAVAILABLE" });
    const body = { amountCents: 100 };
    const { token } = world;
    await world.api.refused("fundAgentInSandbox", 404, "NOT_FOUND", { token, id, body });
    await world.api.refused("depositToTreasury", 404, "NOT_FOUND", { token, body });
    await world.api.refused("failBilling", 404, "NOT_FOUND", { token });
    expect((await fetch(`${service.baseUrl}/readyz`)).status).to.equal(200);
    const mcp = await McpCaller.connect(service.baseUrl, agent.key);
    await mcp.refused("get_wallet", "NOT_FOUND");
    await mcp.close();
  });
});
