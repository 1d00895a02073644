import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { createServer } from "node:http";
import { z } from "zod";
import { ChainOutbox, isTransaction } from "../../src/chain/outbox.ts";
import { ChainRpc } from "../../src/chain/rpc.ts";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import { type MongoProxy, startMongoProxy } from "./mongo-proxy.ts";
import {
  ended,
  hashOf,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  randomAddress,
  type Scene,
  sharedChainUrl,
  type TestAgent,
} from "./support.ts";

const CHAIN_TRANSACTIONS = "chain_transactions";

const callOf = (purpose: string) =>
  ({ kind: "call", purpose, wallet: null, to: randomAddress(), data: "0x", gas: 60_000n }) as const;

/** As the service does: asks again with the same id for as long as there is no answer. */
const sent = async (agent: TestAgent, payment: Payment, instance: Instance) => {
  for (let call = 0; call < 20; call += 1) {
    const outcome = await instance.wallets.rail.send(agent.profile, payment).catch(() => null);
    if (outcome !== null) return outcome;
  }
  throw new Error("never sent");
};

describe("a record whose write was not acknowledged", () => {
  let scene: Scene;
  let proxy: MongoProxy;
  let mongo: MongoClient;
  let doubtful: Instance;
  let sure: Instance;
  before(async () => {
    scene = await openScene();
    proxy = await startMongoProxy(process.env["TEST_MONGODB_URI"] ?? "", scene.db.databaseName);
    mongo = await new MongoClient(proxy.uri, { serverSelectionTimeoutMS: 2_000 }).connect();
    doubtful = scene.open({ db: mongo.db(scene.db.databaseName) });
    sure = scene.open();
  });
  after(async () => {
    await mongo.close();
    await proxy.close();
    await scene.close();
  });

  // The driver repeats a write once by itself; four breaks reach us.
  for (const times of [1, 2, 4]) {
    it(`${String(times)} lost answers of the database: the payment is made once, no nonce is missing`, async () => {
      const agent = await scene.funded(1_000);
      const payment = newPayment(400);
      const before = proxy.broken();
      proxy.breakAt(CHAIN_TRANSACTIONS, times);
      const [one, other] = await Promise.all([sent(agent, payment, doubtful), sent(agent, payment, sure)]);
      // The next payment needs no nonce that no transaction has.
      const later = newPayment(100);
      await sent(agent, later, doubtful);
      proxy.breakAt("", 0);
      expect(proxy.broken()).to.be.greaterThan(before);
      const keeper = scene.open({ clock: () => new Date(Date.now() + 60_000) });
      await keeper.wallets.start();
      const outcomes = await Promise.all([ended(doubtful, agent, payment), ended(sure, agent, payment)]);
      expect((await ended(sure, agent, later)).status).to.equal("settled");
      await keeper.wallets.stop();
      expect(outcomes.map(({ status }) => status)).to.deep.equal(["settled", "settled"]);
      expect(hashOf(one) ?? hashOf(outcomes[0])).to.equal(hashOf(other) ?? hashOf(outcomes[1]));
      const { spentCents } = await scene.audit([agent], [payment, later]);
      expect(spentCents).to.equal(500);
      const nonces = await scene.nonces();
      expect(nonces).to.deep.equal(nonces.map((_nonce, at) => (nonces[0] ?? 0) + at));
    });
  }

  it("of entries that are to go together, a lost answer leaves none behind that was not recorded", async () => {
    const outbox = new ChainOutbox({
      db: mongo.db(scene.db.databaseName),
      config: scene.config,
      signer: scene.signer,
      rpc: new ChainRpc(scene.config),
      clock: () => new Date(),
      proofs: TEST_ACCESS_PROOFS,
    });
    proxy.breakAt(CHAIN_TRANSACTIONS, 2);
    const first = await outbox.record([callOf("a"), callOf("b")]).catch(() => null);
    proxy.breakAt("", 0);
    const again = await outbox.record([callOf("a"), callOf("b"), callOf("c")]);
    const nonces = ["a", "b", "c"].flatMap((purpose) => {
      const recorded = again.get(purpose);
      return recorded !== undefined && isTransaction(recorded) ? [recorded.nonce] : [];
    });
    expect(nonces).to.deep.equal([0, 1, 2].map((step) => (nonces[0] ?? 0) + step));
    if (first !== null) expect(first.get("a")).to.deep.equal(again.get("a"));
  });

  for (const times of [1, 2, 4]) {
    it(`${String(times)} lost answers to a raised fee: what may be sent of it is in the record`, async () => {
      const purpose = `raised/${String(times)}`;
      const recorded = (await sure.outbox.record([callOf(purpose)])).get(purpose);
      if (recorded?.kind !== "transaction") throw new Error("nothing was recorded");
      const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 10n };
      const before = proxy.broken();
      proxy.breakAt(CHAIN_TRANSACTIONS, times);
      const first = await doubtful.outbox.raise(recorded, fees).catch(() => null);
      proxy.breakAt("", 0);
      expect(proxy.broken()).to.be.greaterThan(before);
      const higher = { ...fees, maxFeePerGas: fees.maxFeePerGas * 2n };
      const second = await sure.outbox.raise(recorded, higher);
      const now = (await sure.outbox.find([purpose])).get(purpose);
      if (now?.kind !== "transaction") throw new Error("it is gone");
      const known = now.signings.map(({ hash }) => hash);
      expect(known).to.have.length(2);
      const mayBeSent = [first, second].flatMap((raised) => (raised === null ? [] : [raised.hash]));
      expect(known).to.include.members(mayBeSent);
    });
  }
});

const question = z.object({ id: z.number(), method: z.string() });

describe("a provider that answers a batch with less than was asked", () => {
  it("no answer is taken for another's: payments end by their own receipts and balances only", async () => {
    const scene = await openScene();
    let drops = false;
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        void (async () => {
          const body = Buffer.concat(chunks).toString("utf8");
          const headers = { "content-type": "application/json" };
          const text = await (await fetch(sharedChainUrl(), { method: "POST", headers, body })).text();
          const asked = z.array(question).safeParse(JSON.parse(body));
          const answers: unknown = JSON.parse(text);
          const loses = drops && asked.success && asked.data.length > 1 && Array.isArray(answers);
          response.writeHead(200, headers);
          response.end(loses ? JSON.stringify(answers.slice(1)) : text);
        })();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("a server has a port");
    const instance = scene.open({ rpcUrl: `http://127.0.0.1:${String(address.port)}` });
    const agents = await Promise.all([scene.funded(100), scene.funded(100_000)]);
    const [poor, rich] = agents;
    const read = async ({ profile }: TestAgent) => instance.wallets.rail.balance(profile);
    await Promise.all(agents.map(read));
    drops = true;
    const balances = await Promise.all([read(poor), read(rich)]);
    for (const [at, cents] of [100, 100_000].entries()) {
      expect([{ kind: "unreadable" }, { kind: "cents", cents, pocketCents: 0 }]).to.deep.include(
        balances[at],
      );
    }
    const payments = newPayments(6, 100);
    const outcomes = await Promise.all(
      payments.map((payment, at) =>
        instance.wallets.rail.send((agents[at % 2] ?? poor).profile, payment).catch(() => null),
      ),
    );
    drops = false;
    await Promise.all(
      payments.map((payment, at) => instance.wallets.rail.send((agents[at % 2] ?? poor).profile, payment)),
    );
    for (const { raw } of await instance.outbox.from(0, 1_000)) await instance.wallets.rpc.send(raw);
    const ends = await Promise.all(
      payments.map((payment, at) => ended(instance, agents[at % 2] ?? poor, payment)),
    );
    const { spent } = await scene.audit(agents, payments);
    for (const [at, payment] of payments.entries()) {
      const early = outcomes[at]?.status;
      const end = ends[at] ?? null;
      if (early === "settled" || early === "failed") expect(end?.status).to.equal(early);
      expect(spent.has(payment.request.transactionId)).to.equal(end?.status === "settled");
    }
    expect(ends.filter(({ status }) => status === "settled")).to.have.length(4);
    server.closeAllConnections();
    server.close();
    await scene.close();
  });
});
