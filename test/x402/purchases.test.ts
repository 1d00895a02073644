import { hkdfSync, randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { ChainView, finalPayment, fund, fundedAgent } from "../support/chain.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { noteSecret } from "../support/secrets.ts";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { secondService } from "../support/own-service.ts";
import { ContractApi } from "../support/contract-api.ts";
import { type Fields, newWorld, times, type TestAgent, type World } from "../support/world.ts";
import { ask, openHandMade, requirement, somebody, type TokenFacts } from "./hand-made.ts";
import { openMppShop } from "./mpp-shop.ts";
import { openShop, type Shop } from "./shops.ts";

const { checkPayment, getBudget } = operations;

const CROWD = 20;
const RACES = 5;
/** Secrets of each kind: a database's compression may break one apart. */
const SECRETS = 8;

/** A value for which the databases' files and the logs are searched at the end of the run. */
function newSecret(kind: string): string {
  const secret = `${kind}-${randomBytes(16).toString("hex")}`;
  noteSecret(secret);
  return secret;
}

describe("purchases from shops that ask for payment with 402", () => {
  let world: World;
  let chain: ChainView;
  let shop: Shop;
  let agent: TestAgent;
  let facts: TokenFacts;
  before(async () => {
    world = await newWorld();
    chain = new ChainView(world);
    agent = await fundedAgent(world, 10_000, {});
    shop = await openShop({ rpcUrl: rpcUrl(), token: await chain.token(agent) });
    facts = shop.facts;
  });
  after(() => shop.close());

  const rpcUrl = (): string => world.service.env["EVM_RPC_URL"] ?? "";
  const request = (fields: Fields = {}): Fields => ({
    url: `${shop.url}/paid/weather`,
    maxAmountCents: 5,
    purpose: "a test",
    idempotencyKey: randomUUID(),
    ...fields,
  });
  const buy = (body: Fields, { key }: Pick<TestAgent, "key"> = agent) =>
    world.api.ok("payX402Request", 201, { token: key, body });
  const again = (body: Fields, { key }: Pick<TestAgent, "key"> = agent) =>
    world.api.ok("payX402Request", 200, { token: key, body });
  const approve = (id = "") => world.api.ok("approveApproval", 200, { token: world.token, id });

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
    const story = { token: world.token, id: bought.transaction?.id ?? "" };
    const { railSteps } = await world.api.ok("getTransactionStory", 200, story);
    const steps = railSteps.map(({ amountCents, kind, onChainTxHash }) => [kind, amountCents, onChainTxHash]);
    expect(steps).to.deep.equal([["signed", 1, bought.transaction?.onChainTxHash]]);
    expect(await again(body)).to.deep.include({ httpStatus: 200, body: bought.body, replayed: true });
    expect(shop.visits.filter((visit) => visit === "/paid/weather*")).to.have.length(1);
    await world.api.refused("payX402Request", 422, "IDEMPOTENCY_KEY_REUSED", {
      token: agent.key,
      body: { ...body, maxAmountCents: 6 },
    });
  });

  it("requests to shops, goods and the pocket's key lie nowhere in the clear", async () => {
    const payments = times(SECRETS, () => ({ header: newSecret("header"), body: newSecret("request") }));
    const goods = payments.map(() => newSecret("goods"));
    const asked: unknown[] = [];
    const secretive = await openShop({
      rpcUrl: rpcUrl(),
      token: facts.token,
      deliver: (incoming, response) => {
        asked.push(incoming.headers["x-order"]);
        response.send(goods[asked.length - 1]);
      },
    });
    for (const [at, { body, header }] of payments.entries()) {
      const order = { url: `${secretive.url}/paid/x`, method: "POST", headers: { "x-order": header }, body };
      expect((await buy(request(order))).body).to.equal(goods[at]);
    }
    expect(asked).to.deep.equal(payments.map(({ header }) => header));
    await secretive.close();

    const subKey = MasterKey.parse(TEST_MASTER_KEY, "a test").deriveKey("pocket-keys");
    const salt = "agent-spending-control/pocket/1";
    const key = Buffer.from(hkdfSync("sha256", subKey, salt, agent.id, 32));
    const authorizations = world.service.db.collection(COLLECTIONS.pocketAuthorizations);
    const signed = await authorizations.findOne({ agentId: agent.id });
    expect(signed?.["from"]).to.equal(privateKeyToAccount(toHex(key)).address);
    for (const form of ["hex", "base64", "base64url"] as const) noteSecret(key.toString(form));
  });

  it("a dry run says what a URL costs and whether it would be paid, and pays nothing", async () => {
    const other = await world.agent({ autoApprovalThresholdCents: 0 });
    const caller = await McpCaller.connect(world.service.baseUrl, other.key);
    const check = (body: Fields) => caller.ok(checkPayment.output, "check_payment", body);
    const before = shop.visits.length;
    expect(await check({ url: `${shop.url}/paid/a` })).to.deep.include({
      decision: "held",
      offer: { httpStatus: 402, protocol: "x402/2", recipient: shop.payTo, amount: "0.001" },
    });
    expect(await check({ url: `${shop.url}/free` })).to.deep.include({ decision: "approved" });
    expect(shop.visits.slice(before)).to.deep.equal(["/paid/a", "/free"]);
  });

  it(`of ${String(CROWD)} purchases at once none is paid twice, none is lost, and sub-cent prices add up`, async () => {
    const crowd = await fundedAgent(world, 10_000, {});
    const bodies = Array.from({ length: CROWD }, (_none, at) =>
      request({ url: `${shop.url}/paid/crowd/${String(at)}` }),
    );
    const answers = await Promise.all(bodies.map((body) => buy(body, crowd)));
    const ids = answers.map(({ transaction }) => transaction?.id ?? "");
    const ended = await Promise.all(ids.map((id) => finalPayment(world, crowd, id)));
    const paid = ended.filter(({ transaction }) => transaction.status === "approved");
    expect(new Set(paid.map(({ transaction }) => transaction.onChainTxHash)).size).to.equal(paid.length);
    expect(paid.length).to.equal(CROWD);
    const caller = await McpCaller.connect(world.service.baseUrl, crowd.key);
    const { usage } = await caller.ok(getBudget.output, "get_budget", {});
    expect(usage).to.deep.include({ spentCents: Math.ceil(CROWD / 10), reservedCents: 0 });
    expect(Number(await chain.unitsAt(crowd, shop.payTo))).to.be.at.least(CROWD * 1_000);
  });

  it("two servers asked at once under one key pay once, and the shop is shown one payment", async () => {
    const second = await secondService(world.service);
    try {
      const other = new ContractApi(second.baseUrl);
      const racing = await fundedAgent(world, 1_000, {});
      const before = await chain.unitsAt(racing, shop.payTo);
      for (const path of times(RACES, (at) => `/paid/race/${String(at)}`)) {
        const asked = { token: racing.key, body: request({ url: `${shop.url}${path}` }) };
        const apis = [world.api, other, world.api, other];
        await Promise.all(apis.map((api) => api.call("payX402Request", asked)));
        const { httpStatus, transaction } = await again(asked.body, racing);
        expect(httpStatus).to.equal(200);
        const ended = await finalPayment(world, racing, transaction?.id ?? "");
        expect(ended.transaction.status).to.equal("approved");
        expect(shop.visits.filter((visit) => visit === `${path}*`)).to.have.length(1);
      }
      const paid = (await chain.unitsAt(racing, shop.payTo)) - before;
      expect(paid).to.equal(BigInt(RACES) * 1_000n);
    } finally {
      await second.stop();
    }
  });

  it("a held purchase is made by its key after the approval, which names the shop", async () => {
    const careful = await fundedAgent(world, 1_000, { autoApprovalThresholdCents: 0 });
    const body = request();
    const held = await buy(body, careful);
    expect(held).to.deep.include({ httpStatus: 402, headers: {}, body: null });
    expect(held.approval).to.deep.include({ resource: body["url"], amount: "0.001" });
    expect(await again(body, careful)).to.deep.include({ httpStatus: 402, body: null, replayed: true });
    await approve(held.approval?.id);
    const bought = await again(body, careful);
    expect(bought).to.deep.include({ httpStatus: 200, body: JSON.stringify({ bought: "/weather" }) });
    expect(bought.transaction).to.deep.include({ id: held.transaction?.id, status: "approved" });
  });

  it("an approved purchase whose price or payee has changed fails, and nothing is signed", async () => {
    const careful = await fundedAgent(world, 1_000, { autoApprovalThresholdCents: 0 });
    const payTo = somebody();
    for (const change of [{ amount: "2000" }, { payTo: somebody() }]) {
      let asked: object = { payTo };
      const fickle = await openHandMade((_visit, response) => ask(response, requirement(facts, asked)));
      const body = request({ url: `${fickle.url}/` });
      const held = await buy(body, careful);
      await approve(held.approval?.id);
      asked = { payTo, ...change };
      const failed = await again(body, careful);
      expect(failed).to.deep.include({ httpStatus: 402, body: null });
      expect(failed.transaction).to.deep.include({ status: "failed", denialCode: "PRICE_CHANGED" });
      expect(fickle.visits.filter(({ payment }) => payment !== null)).to.deep.equal([]);
      await fickle.close();
    }
  });

  it("a denied purchase is answered with its denial, and the shop is not paid", async () => {
    const poor = await fundedAgent(world, 100, { budgetCents: 0 });
    const denied = await buy(request(), poor);
    expect(denied).to.deep.include({ httpStatus: 402, headers: {}, body: null });
    expect(denied.transaction).to.deep.include({ status: "denied", denialCode: "BUDGET_EXCEEDED" });
  });

  it("a wallet without money for it fails the purchase for good", async () => {
    const empty = await world.agent({});
    const body = request();
    const failed = await buy(body, empty);
    expect(failed.transaction).to.deep.include({ status: "failed", denialCode: "INSUFFICIENT_FUNDS" });
    await fund(world, empty, 100);
    expect((await again(body, empty)).transaction?.status).to.equal("failed");
  });

  it("a shop of mppx is paid by MPP, and its receipt is kept", async () => {
    const mpp = await openMppShop(rpcUrl(), facts.token, "0.002");
    const bought = await buy(request({ url: `${mpp.url}/data` }));
    expect(bought).to.deep.include({ httpStatus: 200, body: JSON.stringify({ data: "bought" }) });
    expect(bought.transaction).to.deep.include({
      status: "approved",
      merchant: mpp.payTo,
      protocol: "mpp",
      amount: "0.002",
    });
    expect(bought.transaction?.receipt).to.include(bought.transaction?.onChainTxHash ?? "none");
    await mpp.close();
  });
});
