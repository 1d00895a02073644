import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { ChainView, fundedAgent } from "../support/chain.ts";
import { type Fields, newWorld, type TestAgent, until, type World } from "../support/world.ts";
import { openShop, type Shop } from "./shops.ts";

describe("purchases from shops that speak x402", () => {
  let world: World;
  let chain: ChainView;
  let shop: Shop;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    chain = new ChainView(world);
    agent = await fundedAgent(world, 10_000, {});
    shop = await openShop({
      rpcUrl: world.service.env["EVM_RPC_URL"] ?? "",
      token: await chain.token(agent),
    });
  });
  after(() => shop.close());

  const request = (fields: Fields = {}): Fields => ({
    url: `${shop.url}/paid/weather`,
    maxAmountCents: 5,
    purpose: "a test",
    idempotencyKey: randomUUID(),
    ...fields,
  });
  const buy = (body: Fields, by = agent) => world.api.ok("payX402Request", 201, { token: by.key, body });

  it("what is free is answered as it came, and nothing is decided", async () => {
    const answer = await buy(request({ url: `${shop.url}/free` }));
    expect(answer).to.deep.include({ httpStatus: 200, body: "free", transaction: null, replayed: false });
  });

  it("a purchase is paid once on the chain, and the same key gets what was bought", async () => {
    const body = request();
    const bought = await buy(body);
    expect(bought).to.deep.include({ httpStatus: 200, body: JSON.stringify({ bought: "/weather" }) });
    expect(bought.transaction).to.deep.include({
      status: "approved",
      rail: "wallet",
      merchant: shop.payTo,
      amount: "0.001",
      amountCents: 1,
      protocol: "x402/2",
      resource: body["url"],
    });
    expect(bought.transaction?.receipt).to.include(bought.transaction?.onChainTxHash ?? "none");
    expect(await chain.succeeded(bought.transaction?.onChainTxHash)).to.equal(true);
    const again = await world.api.ok("payX402Request", 200, { token: agent.key, body });
    expect(again).to.deep.include({ httpStatus: 200, body: bought.body, replayed: true });
    expect(shop.visits.filter((visit) => visit === "/paid/weather*")).to.have.length(1);
  });
  void until;
});
