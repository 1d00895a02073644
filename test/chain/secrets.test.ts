import { expect } from "chai";
import { createServer, type Server } from "node:http";
import { inspect } from "node:util";
import { createHmac } from "node:crypto";
import { toHex } from "viem";
import { localSigner } from "../../src/chain/signer.ts";
import { createWallets } from "../../src/rails/wallet/index.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { readChain } from "../../server/chain.ts";
import { type ChainProxy, type Mishap, startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import {
  type Instance,
  newPayment,
  openScene,
  PERMIT,
  POLICY,
  type Scene,
  sharedChainUrl,
  TRUSTED,
} from "./support.ts";

const PROVIDERS_KEY = "provider-key-4711";

/** An error with all that a log could print of it. */
const everythingOf = (error: unknown): string =>
  inspect(error, { depth: 10, showHidden: true, getters: true }) +
  (error instanceof Error
    ? `${error.message}${error.stack ?? ""}${inspect(error.cause, { depth: 10 })}`
    : "");

describe("what must not be shown, and whom not to believe", () => {
  let scene: Scene;
  let proxy: ChainProxy;
  let instance: Instance;
  before(async () => {
    scene = await openScene();
    proxy = await startChainProxy(sharedChainUrl());
    instance = scene.open({ rpcUrl: `${proxy.url}/v3/${PROVIDERS_KEY}` });
  });
  after(async () => {
    proxy.behave(() => "pass");
    await scene.close();
    await proxy.close();
  });

  const FAULTS: readonly Mishap[] = ["cut-before", "cut-after", "too-many", "garbage", "nonsense", "silence"];
  for (const mishap of FAULTS) {
    it(`no error tells the address of the chain, which carries a provider's key (${mishap})`, async () => {
      const agent = await scene.funded(100);
      const { limits, rail, rpc, sandbox } = instance.wallets;
      proxy.behave(() => mishap);
      const ends = await Promise.allSettled([
        rail.send(agent.profile, newPayment(100)),
        rail.query(newPayment(1)),
        rail.balance(agent.profile),
        limits.mirror(agent.profile.agentId, POLICY, 2),
        rpc.check(),
        rpc.head(),
        rpc.send("0x00"),
        rpc.balanceAt(agent.wallet, "latest"),
        rpc.receipt(`0x${"1".repeat(64)}`),
        rpc.hasCode(agent.wallet),
        rpc.nonceAt(agent.wallet, "latest"),
        sandbox?.giveGas() ?? Promise.resolve(),
      ]);
      expect(ends.some(({ status }) => status === "rejected")).to.equal(true);
      for (const end of ends) {
        const shown = end.status === "rejected" ? everythingOf(end.reason) : inspect(end.value);
        expect(shown).not.to.include(PROVIDERS_KEY);
      }
      proxy.behave(() => "pass");
      expect(instance.troubles.join()).not.to.include(PROVIDERS_KEY);
    });
  }

  it("a chain with another id is refused: nothing is recorded, and its balance is not believed", async () => {
    const impostor = await startImpostor(1);
    const wrong = scene.open({ rpcUrl: impostor.url });
    const agent = await scene.funded(100);
    const before = await scene.transactions.countDocuments();
    const thrown = await wrong.wallets.rail.send(agent.profile, newPayment(100)).then(
      () => null,
      (error: unknown) => error,
    );
    expect(thrown).to.be.an("error").with.property("name", "WrongChain");
    expect(await wrong.wallets.rail.balance(agent.profile)).to.deep.equal({ kind: "unreadable" });
    expect(await scene.transactions.countDocuments()).to.equal(before);
    impostor.server.close();
  });

  it("a record that names another agent's wallet, or no wallet's address, has nothing signed", async () => {
    const [mine, theirs] = [await scene.funded(100), await scene.funded(100)];
    const record = await scene.agents.findOne({ _id: mine.profile.agentId });
    const victims = await scene.agents.findOne({ _id: theirs.profile.agentId });
    if (!record?.wallet || !victims?.wallet) throw new Error("both have wallets");
    const before = await scene.transactions.countDocuments();
    const forged = [victims.wallet, { ...record.wallet, address: theirs.wallet }];
    for (const wallet of forged) {
      await scene.agents.updateOne({ _id: record._id }, { $set: { wallet } });
      const { rail } = scene.open().wallets;
      const thrown = await rail.send(mine.profile, newPayment(100)).then(
        () => null,
        (error: unknown) => error,
      );
      expect(String(thrown)).to.include("names a wallet that is not the agent's");
    }
    expect(await scene.transactions.countDocuments()).to.equal(before);
    expect(await scene.balanceCents(theirs.wallet)).to.equal(100);
  });

  it("a service does not start on a chain with another id, whether it is a sandbox or not", async () => {
    const impostor = await startImpostor(1);
    const config = { ...scene.config, rpcUrl: impostor.url };
    const common = {
      ...TRUSTED,
      db: scene.db,
      config,
      signer: scene.signer,
      pocketKey: scene.pocketKey,
      clock: () => new Date(),
    };
    for (const sandbox of [true, false]) {
      const wallets = createWallets({ ...common, sandbox, onWarning: () => undefined });
      const thrown = await wallets.start().then(
        () => null,
        (error: unknown) => error,
      );
      await wallets.stop();
      expect(thrown).to.be.an("error").with.property("name", "WrongChain");
    }
    impostor.server.close();
  });

  it("a first nonce is not taken from a chain with another id", async () => {
    const { close, db }: TestDatabase = await testDatabase();
    const impostor = await startImpostor(1);
    const { config, pocketKey, signer } = readChain(
      impostor.url,
      {},
      MasterKey.parse("another-master-key-for-this-one-test", "a test"),
      db,
    );
    const common = { ...TRUSTED, clock: () => new Date(), onWarning: () => undefined, sandbox: true };
    const wallets = createWallets({ db, config, signer, pocketKey, ...common });
    const minted = await wallets.sandbox?.mint("one", signer.address, 1).then(
      () => null,
      (error: unknown) => error,
    );
    expect(minted).to.be.an("error").with.property("name", "WrongChain");
    expect(await db.collection("chain_transactions").countDocuments()).to.equal(0);
    impostor.server.close();
    await close();
  });

  it("a wallet on another chain is not paid from, not read as empty and not called detached", async () => {
    const agent = await scene.agent();
    const agents = scene.agents;
    await agents.updateOne({ _id: agent.profile.agentId }, { $set: { "wallet.chainCaip2": "eip155:1" } });
    const { rail } = instance.wallets;
    const outcome = await rail.send(agent.profile, newPayment(100));
    expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    expect(await rail.balance(agent.profile)).to.deep.equal({ kind: "unreadable" });
    expect(await rail.detach(agent.profile)).to.equal("pending");
  });

  it("a payment sent before the service got another chain is not called failed there", async () => {
    const agent = await scene.funded(100);
    const payment = newPayment(100);
    expect((await scene.open().wallets.rail.send(agent.profile, payment)).status).to.equal("settled");
    const config = { ...scene.config, chainId: 1 };
    const common = { ...TRUSTED, clock: () => new Date(), onWarning: () => undefined, sandbox: false };
    const { rail } = createWallets({
      db: scene.db,
      config,
      signer: scene.signer,
      pocketKey: scene.pocketKey,
      ...common,
    });
    const outcome = await rail.send(agent.profile, payment, PERMIT).catch(() => null);
    expect(outcome, "only its own chain can tell").to.equal(null);
  });

  it("a payment that failed for a wrong chain is never sent once the right one is back", async () => {
    const agent = await scene.funded(100);
    const payment = newPayment(100);
    const config = { ...scene.config, chainId: 1 };
    const common = { ...TRUSTED, clock: () => new Date(), onWarning: () => undefined, sandbox: false };
    const { rail } = createWallets({
      db: scene.db,
      config,
      signer: scene.signer,
      pocketKey: scene.pocketKey,
      ...common,
    });
    expect(await rail.send(agent.profile, payment, PERMIT)).to.include({ status: "failed" });
    expect(await scene.open().wallets.rail.send(agent.profile, payment)).to.include({ status: "failed" });
    expect(await scene.balanceCents(agent.wallet)).to.equal(100);
  });

  it("the service's key does not show when what holds it is printed or serialized", () => {
    const key = toHex(createHmac("sha256", "a test").update("key").digest());
    const { config } = scene;
    const signer = localSigner(key);
    const common = { ...TRUSTED, clock: () => new Date(), onWarning: () => undefined, sandbox: true };
    const wallets = createWallets({
      ...TRUSTED,
      db: scene.db,
      config,
      signer,
      pocketKey: scene.pocketKey,
      ...common,
    });
    const options = { depth: Infinity, showHidden: true, getters: true } as const;
    const texts = [inspect(signer, options), inspect(wallets, options), JSON.stringify(signer)];
    for (const text of texts) expect(text.toLowerCase()).not.to.include(key.slice(2));
  });
});

/** Answers every question as a chain with this id would, with 77 (`0x4d`) as its number for everything else. */
async function startImpostor(chainId: number): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const answers = [...text.matchAll(/"id":(\d+),"method":"(\w+)"|"method":"(\w+)".*?"id":(\d+)/g)].map(
        (found) => {
          const [id, method] = [Number(found[1] ?? found[4]), found[2] ?? found[3]];
          return { jsonrpc: "2.0", id, result: method === "eth_chainId" ? toHex(chainId) : "0x4d" };
        },
      );
      const isBatch = text.startsWith("[");
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(isBatch ? answers : answers[0]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server has a port");
  return { url: `http://127.0.0.1:${String(address.port)}`, server };
}
