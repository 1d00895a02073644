import { expect } from "chai";
import { getAddress } from "viem";
import { deployWalletData, GAS, spendData } from "../../src/chain/contracts.ts";
import type { Payment, RailOutcome } from "../../src/domain/ledger/payment.ts";
import { shortOrSoak } from "../support/soak.ts";
import {
  ended,
  hashOf,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  randomAddress,
  type Scene,
  type TestAgent,
} from "./support.ts";

describe("a wallet payment is made once", () => {
  let scene: Scene;
  let instances: readonly Instance[];
  before(async () => {
    scene = await openScene();
    instances = [scene.open(), scene.open(), scene.open()];
  });
  after(() => scene.close());

  const instanceAt = (at: number): Instance => {
    const instance = instances[at % instances.length];
    if (instance === undefined) throw new Error("no instance");
    return instance;
  };
  const send = (at: number, agent: TestAgent, payment: Payment): Promise<RailOutcome> =>
    instanceAt(at).wallets.rail.send(agent.profile, payment);

  it("sent several times at once by three processes, is one transfer with one outcome and hash", async () => {
    const agent = await scene.funded(1_000);
    const payment = newPayment(300);
    await Promise.all(Array.from({ length: 6 }, (_nothing, at) => send(at, agent, payment)));
    const outcomes = await Promise.all(
      Array.from({ length: 3 }, (_nothing, at) => ended(instanceAt(at), agent, payment)),
    );
    const { spent } = await scene.audit([agent], [payment]);
    const hashes = spent.get(payment.request.transactionId);
    expect(hashes).to.have.length(1);
    for (const outcome of outcomes) {
      expect(outcome).to.deep.equal({
        status: "settled",
        onChain: { txHash: hashes?.[0], chainCaip2: "eip155:31337" },
      });
    }
    expect(await scene.balanceCents(agent.wallet)).to.equal(700);
  });

  it("payments from several wallets, sent by two processes at once, all settle, each once", async () => {
    const agents = await Promise.all(Array.from({ length: 3 }, () => scene.funded(800)));
    const payments = newPayments(shortOrSoak(12, 24), 100);
    const outcomes = await Promise.all(
      payments.map(async (payment, at) => {
        const agent = agents[at % agents.length];
        if (agent === undefined) throw new Error("no agent");
        await send(at % 2, agent, payment);
        return ended(instanceAt(at % 2), agent, payment);
      }),
    );
    const { spent, spentCents } = await scene.audit(agents, payments);
    for (const [at, payment] of payments.entries()) {
      const outcome = outcomes[at] ?? null;
      expect(outcome?.status).to.equal("settled");
      expect(spent.get(payment.request.transactionId)).to.deep.equal([hashOf(outcome)]);
    }
    expect(spentCents).to.equal(payments.length * 100);
    const nonces = await scene.nonces();
    expect(nonces).to.deep.equal(nonces.map((_nonce, at) => (nonces[0] ?? 0) + at));
  });

  it("of 6 payments of 1.00 from 4.00, four settle, two lack funds and are never sent", async () => {
    const agent = await scene.funded(400);
    const payments = newPayments(6, 100);
    const outcomes = await Promise.all(payments.map((payment) => send(0, agent, payment)));
    const failed = outcomes.flatMap((outcome) => (outcome.status === "failed" ? [outcome.code] : []));
    expect(failed).to.deep.equal(["INSUFFICIENT_FUNDS", "INSUFFICIENT_FUNDS"]);
    const { spentCents } = await scene.audit([agent], payments);
    expect(spentCents).to.equal(400);
    const attempts = await scene.transactions
      .find({ wallet: agent.wallet, amountCents: { $gt: 0 } })
      .toArray();
    expect(attempts, "nothing was sent for those that were refused").to.have.length(4);
    expect(await scene.balanceCents(agent.wallet)).to.equal(0);
  });

  it("also when three processes race for the money, exactly as many settle as it is for", async () => {
    const half = shortOrSoak(4, 10);
    const agent = await scene.funded(half * 100);
    const payments = newPayments(2 * half, 100);
    const outcomes = await Promise.all(
      payments.map(async (payment, at) => {
        await send(at, agent, payment);
        return ended(instanceAt(at + 1), agent, payment);
      }),
    );
    const count = (status: RailOutcome["status"]) =>
      outcomes.filter((outcome) => outcome.status === status).length;
    expect([count("settled"), count("failed")]).to.deep.equal([half, half]);
    const { spent, spentCents } = await scene.audit([agent], payments);
    expect(spentCents).to.equal(half * 100);
    for (const [at, payment] of payments.entries()) {
      const isSettled = outcomes[at]?.status === "settled";
      expect(spent.has(payment.request.transactionId)).to.equal(isSettled);
    }
  });

  it("one that is sent twice at once is counted once against the wallet's money", async () => {
    const agent = await scene.funded(1_000);
    const [twice, other] = [newPayment(400), newPayment(600)];
    const outcomes = await Promise.all([send(0, agent, twice), send(0, agent, twice), send(0, agent, other)]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["settled", "settled", "settled"]);
  });

  it("one that meets its unused wallet being given up is paid or failed, as the chain shows", async () => {
    const instance = instanceAt(0);
    for (let round = 0; round < shortOrSoak(1, 6); round += 1) {
      const agent = await scene.funded(100);
      const payment = newPayment(100);
      // Another process decides that it is never deployed, after this one has looked.
      const wanted = instance.wallets.limits;
      const first = wanted.first.bind(wanted);
      wanted.first = async (wallet) => {
        await instanceAt(1).wallets.rail.detach(agent.profile);
        return first(wallet);
      };
      await send(0, agent, payment);
      wanted.first = first;
      const outcome = await ended(instance, agent, payment);
      const { spentCents } = await scene.audit([agent], [payment]);
      expect(spentCents).to.equal(outcome.status === "settled" ? 100 : 0);
      expect(outcome.status).to.equal("failed");
    }
  });

  it("one that its wallet made by an unrecorded transaction is never called failed", async () => {
    const agent = await scene.funded(300);
    expect((await send(0, agent, newPayment(100))).status).to.equal("settled");
    const payment = newPayment(100, randomAddress());
    const { recipient, transactionId } = payment.request;
    const { outbox, wallets } = instanceAt(0);
    const spend = { transactionId, token: scene.config.token, to: getAddress(recipient), units: 1_000_000n };
    const lost = { kind: "call", purpose: `lost/${transactionId}`, wallet: null, to: agent.wallet } as const;
    await outbox.record([{ ...lost, data: spendData(spend), gas: GAS.spend }]);
    for (const { raw } of await outbox.from(0, 10_000)) await wallets.rpc.send(raw);
    await send(0, agent, payment).catch(() => null);
    const outcome = await wallets.rail.settle(agent.profile, payment, 1_000).catch(() => null);
    expect(outcome?.status).not.to.equal("failed");
    expect(await scene.balanceCents(agent.wallet)).to.equal(100);
  });

  it("one from a wallet whose factory is not on the chain yet waits for it, and spoils nothing", async () => {
    const [agent, other] = [await scene.funded(100), await scene.funded(100)];
    const renamed = { $set: { "wallet.factory": randomAddress() } };
    await scene.agents.updateOne({ _id: agent.profile.agentId }, renamed);
    const [failed, settled] = await Promise.allSettled([
      send(0, agent, newPayment(100)),
      send(0, other, newPayment(100)),
    ]);
    expect(failed).to.include({ status: "rejected" });
    expect(settled).to.have.nested.property("value.status", "settled");
    const own = await scene.transactions.find({ wallet: agent.wallet, amountCents: { $gte: 0 } }).toArray();
    expect(own, "neither its deployment nor its payment was recorded").to.deep.equal([]);
  });

  it("a transaction that the chain calls a success has paid only if the wallet says so", async () => {
    const agent = await scene.funded(100);
    const payment = newPayment(100);
    const { transactionId, recipient } = payment.request;
    // As if the factory had not been there: a call to where no contract is succeeds, and does nothing.
    const { outbox, wallets } = instanceAt(0);
    const origin = {
      ...scene.config,
      owner: randomAddress(),
      spender: scene.signer.address,
      agentId: "none",
    };
    const common = { kind: "call", wallet: agent.wallet } as const;
    const spend = { transactionId, token: scene.config.token, to: randomAddress(), units: 1_000_000n };
    const { deployWallet, spend: gas } = GAS;
    const data = deployWalletData(origin);
    await outbox.record([
      { ...common, purpose: `deploy/${agent.wallet}`, to: scene.config.factory, data, gas: deployWallet },
      { ...common, purpose: `spend/${transactionId}/1`, to: agent.wallet, data: spendData(spend), gas },
    ]);
    for (const { raw } of await outbox.from(0, 10_000)) await wallets.rpc.send(raw);
    const outcome = await ended(instanceAt(0), agent, payment);
    expect(outcome.status, recipient).to.equal("failed");
    expect(await scene.balanceCents(agent.wallet)).to.equal(100);
  });
});
