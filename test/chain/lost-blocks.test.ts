import { expect } from "chai";
import type { Hash } from "viem";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import {
  ended,
  eventually,
  hashOf,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  type Scene,
  type TestAgent,
} from "./support.ts";

/** As if everything recorded were old already: then the keeper sends again at its first look. */
const AHEAD = { clock: () => new Date(Date.now() + 60_000) };

describe("a node that forgets receipts", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  before(async () => {
    anvil = await startOwnAnvil("--transaction-block-keeper", "5");
    scene = await openScene(anvil.url);
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });
  afterEach(() => anvil.call("evm_setAutomine", [true]));

  it("a payment whose receipt is gone is settled by the word of its wallet", async () => {
    const instance = scene.open();
    const agent = await scene.funded(1_000);
    // Deploys the wallet.
    expect(await instance.wallets.rail.send(agent.profile, newPayment(50))).to.include({ status: "settled" });
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(100);
    const sent = await instance.wallets.rail.send(agent.profile, payment);
    expect(sent.status).to.equal("pending");
    await anvil.call("anvil_mine", ["0x20"]);
    const settled = await instance.wallets.rail.settle(agent.profile, payment, 100);
    expect(settled).to.deep.include({
      status: "settled",
      ...("onChain" in sent ? { onChain: sent.onChain } : {}),
    });
    expect(await scene.balanceCents(agent.wallet)).to.equal(850);
  });

  it("a payment that the contract undid, and whose receipt is gone, is not taken for cancelled", async () => {
    const instance = scene.open();
    const agent = await scene.funded(1_000);
    expect(await instance.wallets.rail.send(agent.profile, newPayment(100))).to.include({
      status: "settled",
    });
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(200);
    expect((await instance.wallets.rail.send(agent.profile, payment)).status).to.equal("pending");
    // The same payment under an id of its own has taken the money by then.
    await anvil.call("anvil_mine", ["0x20"]);
    const [first] = await instance.outbox.under(`spend/${payment.request.transactionId}/`);
    if (first?.kind !== "transaction") throw new Error("it was not signed");
    expect(await scene.chain.getTransactionReceipt({ hash: first.hash }).catch(() => null)).to.equal(null);
    await instance.wallets.rail.settle(agent.profile, payment, 50);
    expect(await instance.outbox.under(`spend/${payment.request.transactionId}/`)).to.have.length(1);
  });
});

describe("a chain that loses blocks", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let instance: Instance;
  let keeper: Instance;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    instance = scene.open();
    keeper = scene.open(AHEAD);
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const isInChain = async (hash: Hash): Promise<boolean> => {
    const receipt = await scene.chain.getTransactionReceipt({ hash }).catch(() => null);
    return receipt?.status === "success";
  };
  const settledHash = async (agent: TestAgent, payment = newPayment(100)) => {
    const outcome = await instance.wallets.rail.send(agent.profile, payment);
    expect(outcome.status).to.equal("settled");
    const { spent } = await scene.audit([agent], [payment]);
    const [hash] = spent.get(payment.request.transactionId) ?? [];
    if (hash === undefined) throw new Error("it was not paid");
    return { payment, hash };
  };

  it("a payment undone by a reorganization is sent again as signed, and is in the chain once", async () => {
    const agent = await scene.funded(1_000);
    const { hash, payment } = await settledHash(agent);
    await anvil.call("anvil_reorg", [1, []]);
    expect(await isInChain(hash), "the reorganization took it").to.equal(false);
    expect((await instance.wallets.rail.query(payment))?.status).to.equal("pending");
    await keeper.wallets.start();
    await eventually("it is in the chain again", () => isInChain(hash));
    await keeper.wallets.stop();
    expect(hashOf(await ended(instance, agent, payment))).to.equal(hash);
    const { spent } = await scene.audit([agent], [payment]);
    expect(spent.get(payment.request.transactionId)).to.deep.equal([hash]);
    expect(await scene.balanceCents(agent.wallet)).to.equal(900);
  });

  it("with three confirmations a payment waits for two more blocks, longer if reorganized", async () => {
    const deep = scene.open({ confirmations: 3 });
    const keeperOfAll = scene.open({ ...AHEAD, confirmations: 3 });
    const agent = await scene.funded(1_000);
    await anvil.call("anvil_mine", ["0x3"]);
    const payment = newPayment(100);
    const sent = await deep.wallets.rail.send(agent.profile, payment);
    expect(sent.status).to.equal("pending");
    const status = async () => (await deep.wallets.rail.query(payment))?.status;
    // The limit and the deployment went before it, each in a block of its own: it is in the newest.
    await anvil.call("anvil_mine", ["0x1"]);
    expect(await status()).to.equal("pending");
    await anvil.call("anvil_reorg", [2, []]);
    await anvil.call("anvil_mine", ["0x4"]);
    expect(await status(), "blocks without it do not count").to.equal("pending");
    await keeperOfAll.wallets.start();
    await eventually("it is back", () => isInChain(hashOf(sent) ?? "0x"));
    await keeperOfAll.wallets.stop();
    expect(await status()).to.equal("pending");
    await anvil.call("anvil_mine", ["0x2"]);
    expect(await status()).to.equal("settled");
    const { spent } = await scene.audit([agent], [payment]);
    expect(spent.get(payment.request.transactionId)).to.deep.equal([hashOf(sent)]);
  });

  it("transactions that the chain's pool drops are sent again", async () => {
    const agent = await scene.funded(1_000);
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(100);
    const sent = await instance.wallets.rail.send(agent.profile, payment);
    expect(sent.status).to.equal("pending");
    await anvil.call("anvil_dropAllTransactions");
    await anvil.call("anvil_mine", ["0x1"]);
    expect((await instance.wallets.rail.query(payment))?.status).to.equal("pending");
    await anvil.call("evm_setAutomine", [true]);
    await keeper.wallets.stop();
    const other = scene.open(AHEAD);
    await other.wallets.start();
    const outcome = await ended(instance, agent, payment);
    await other.wallets.stop();
    expect([outcome.status, hashOf(outcome)]).to.deep.equal(["settled", hashOf(sent)]);
  });

  it("a payment is not refused while the money that an earlier transaction brings is on its way", async () => {
    const agent = await scene.agent();
    await anvil.call("evm_setAutomine", [false]);
    const funded = scene.fund(agent, 500);
    await eventually(
      "it is recorded",
      async () => (await scene.transactions.countDocuments({ wallet: agent.wallet })) > 0,
    );
    const [paid, tooMuch] = [newPayment(500), newPayment(1)];
    const { rail } = instance.wallets;
    expect((await rail.send(agent.profile, paid)).status).to.equal("pending");
    expect((await rail.send(agent.profile, tooMuch)).status).to.equal("failed");
    await anvil.call("evm_setAutomine", [true]);
    await anvil.call("anvil_mine", ["0x1"]);
    await funded;
    expect((await ended(instance, agent, paid)).status).to.equal("settled");
    expect(await scene.balanceCents(agent.wallet)).to.equal(0);
  });

  it("a chain killed with all its blocks is restored, and a payment meanwhile is not refused", async () => {
    const agents = await Promise.all([scene.funded(700), scene.funded(400)]);
    const payments = newPayments(4, 100);
    await Promise.all(
      payments.map((payment, at) =>
        instance.wallets.rail.send((agents[at % 2] ?? agents[0]).profile, payment),
      ),
    );
    const before = await scene.audit(agents, payments);
    expect(before.spentCents).to.equal(400);
    const after = newPayment(500);
    await anvil.kill();
    const unanswered = await instance.wallets.rail.send(agents[0].profile, after).catch(() => null);
    expect(unanswered, "nothing is decided without a chain").to.equal(null);
    await anvil.revive();
    // The chain is fresh: the wallet is empty until the keeper has looked.
    const early = await instance.wallets.rail.send(agents[0].profile, after).catch(() => null);
    expect(early?.status ?? "pending").to.equal("pending");
    const other = scene.open(AHEAD);
    await other.wallets.start();
    await eventually("all is there again", async () => {
      const { spent } = await scene.audit(agents, [...payments, after]);
      return spent.size >= payments.length && (await scene.balanceCents(agents[1].wallet)) === 200;
    });
    const sent = early ?? (await instance.wallets.rail.send(agents[0].profile, after));
    const outcome = sent.status === "pending" ? await ended(instance, agents[0], after) : sent;
    await other.wallets.stop();
    expect(outcome.status).to.equal("settled");
    const now = await scene.audit(agents, [...payments, after]);
    for (const [id, hashes] of before.spent) expect(now.spent.get(id)).to.deep.equal(hashes);
    expect(now.spentCents).to.equal(900);
    expect(await scene.balanceCents(agents[0].wallet)).to.equal(0);
  });

  it("a service that found contracts deployed by another can restore them after a kill", async () => {
    const second = await openScene(anvil.url);
    const alone = second.open();
    const agent = await second.funded(300);
    const payment = newPayment(100);
    expect((await alone.wallets.rail.send(agent.profile, payment)).status).to.equal("settled");
    await anvil.kill();
    await anvil.revive();
    const itsKeeper = second.open(AHEAD);
    await itsKeeper.wallets.start();
    const outcome = await ended(alone, agent, payment);
    expect(outcome.status).to.equal("settled");
    await eventually("the money is there", async () => (await second.balanceCents(agent.wallet)) === 200);
    await second.close();
  });
});
