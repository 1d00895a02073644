import { expect } from "chai";
import { getAddress } from "viem";
import { agentWalletAbi } from "../../src/chain/contracts.ts";
import { unitsOf } from "../../src/chain/units.ts";
import { COALESCE_MS } from "../../src/rails/wallet/limits.ts";
import { PaidUnrecorded } from "../../src/rails/wallet/diagnosis.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { shortOrSoak } from "../support/soak.ts";
import { openOwner, type Owner } from "./owner.ts";
import {
  ended,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  POLICY,
  randomAddress,
  type Scene,
  type TestAgent,
} from "./support.ts";

const NO_CHANGE = { capCents: 1_000_000, periodSeconds: 0 } as const;

/** Notes a policy, as its ledger has it done. */
const note = (instance: Instance, { profile }: TestAgent, capCents: number, version: number) =>
  instance.wallets.limits.mirror(profile.agentId, { ...POLICY, budgetCents: capCents }, version);

describe("the limit that a wallet has on the chain", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let one: Instance;
  let other: Instance;
  let owner: Owner;
  let nowMs = Date.now();
  const clock = (): Date => new Date(nowMs);
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    [one, other] = [scene.open({ clock }), scene.open({ clock })];
    owner = openOwner(scene);
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const limitOf = async ({ wallet }: TestAgent) => {
    const read = { address: wallet, abi: agentWalletAbi, functionName: "limitOf" } as const;
    const [cap, periodSeconds] = await scene.chain.readContract({ ...read, args: [scene.config.token] });
    return { capCents: Number(cap / unitsOf(1, 6)), periodSeconds: Number(periodSeconds) };
  };
  const pay = async (agent: TestAgent, cents: number, instance = one) => {
    const payment = newPayment(cents);
    const outcome = await instance.wallets.rail.send(agent.profile, payment);
    return outcome.status === "pending" ? ended(instance, agent, payment) : outcome;
  };
  /** Until what is recorded is in the chain. */
  const mined = async () => {
    for (;;) {
      const nonce = await one.wallets.rpc.nonceAt(scene.signer.address, "latest");
      if ((await one.outbox.from(nonce, 1)).length === 0) return;
    }
  };

  /** A round of a keeper's, once what was noted is due. */
  const setDue = async (instance = one) => {
    nowMs += 2 * COALESCE_MS;
    await instance.wallets.limits.setDue();
  };
  const mirror = async (instance: Instance, agent: TestAgent, capCents: number, version: number) => {
    await note(instance, agent, capCents, version);
    await setDue(instance);
  };

  it("is what the policy says after the first use, and after each change of the policy", async () => {
    const agent = await scene.funded(1_000, { ...POLICY, budgetCents: 5_000, dailySpendLimitCents: 700 });
    await pay(agent, 100);
    await mined();
    expect(await limitOf(agent)).to.deep.equal({ capCents: 700, periodSeconds: 86_400 });
    await mirror(one, agent, 4_000, 2);
    await mined();
    expect(await limitOf(agent)).to.deep.equal({ capCents: 4_000, periodSeconds: 0 });
  });

  it("a policy change before the first use costs no transaction; the wallet is deployed with it", async () => {
    const agent = await scene.funded(1_000);
    const before = await scene.nonces();
    await mirror(one, agent, 3_000, 2);
    expect(await scene.nonces()).to.have.length(before.length);
    await pay(agent, 100, other);
    await mined();
    expect(await limitOf(agent)).to.deep.equal({ ...NO_CHANGE, capCents: 3_000 });
  });

  it("changes that no payment needs are one transaction of each wallet, a minute later", async () => {
    const agents = await Promise.all(["", ""].map(() => scene.funded(1_000)));
    await Promise.all(agents.map((agent) => pay(agent, 100)));
    const before = await scene.nonces();
    for (let version = 2; version < 7; version += 1) {
      for (const agent of agents) await note(one, agent, version * 1_000, version);
      await one.wallets.limits.setDue();
    }
    expect(await scene.nonces(), "within the minute").to.have.length(before.length);
    await setDue();
    await setDue(other);
    expect(await scene.nonces()).to.have.length(before.length + agents.length);
    await mined();
    for (const agent of agents) expect(await limitOf(agent)).to.include({ capCents: 6_000 });
  });

  it("a changed limit goes on the chain before the wallet's next payment, and once", async () => {
    const agent = await scene.funded(2_000, { ...POLICY, budgetCents: 200 });
    await pay(agent, 100);
    await note(one, agent, 1_500, 2);
    const before = await scene.nonces();
    expect((await pay(agent, 900, other)).status).to.equal("settled");
    await setDue();
    expect(await scene.nonces(), "the limit and the payment").to.have.length(before.length + 2);
    await mined();
    expect(await limitOf(agent)).to.include({ capCents: 1_500 });
  });

  it("an organization whose limits all change holds up no other's", async () => {
    const many = await Promise.all(Array.from({ length: 21 }, () => scene.funded(10, POLICY, "org_many")));
    const single = await scene.funded(10, POLICY, "org_single");
    await Promise.all([...many, single].map((agent) => pay(agent, 1)));
    for (const agent of [...many, single]) await note(one, agent, 70, 2);
    const before = await scene.nonces();
    await setDue();
    await mined();
    expect(await limitOf(single)).to.include({ capCents: 70 });
    expect(await scene.nonces(), "20 of the other in one round").to.have.length(before.length + 21);
    await setDue();
    expect(await scene.nonces()).to.have.length(before.length + 22);
  });

  it("a payment that its wallet has no money for sends nothing: no deployment, no limit", async () => {
    const agent = await scene.funded(100);
    const before = await scene.nonces();
    expect(await pay(agent, 101)).to.include({ status: "failed", code: "INSUFFICIENT_FUNDS" });
    expect(await scene.nonces()).to.have.length(before.length);
    expect(await pay(agent, 100)).to.include({ status: "settled" });
    await note(one, agent, 50, 2);
    const deployed = await scene.nonces();
    expect(await pay(agent, 1)).to.include({ status: "failed", code: "INSUFFICIENT_FUNDS" });
    expect(await scene.nonces(), "nor the limit of a deployed one").to.have.length(deployed.length);
  });

  it("an organization's many payments hold up no other's", async () => {
    const crowd = await scene.funded(1_000, POLICY, "org_crowd");
    const single = await scene.funded(1_000, POLICY, "org_single");
    await Promise.all([crowd, single].map((agent) => pay(agent, 1)));
    const all = newPayments(76, 1).map((payment) => one.wallets.rail.send(crowd.profile, payment));
    await one.wallets.rail.send(single.profile, newPayment(1));
    await Promise.all(all);
    const inOrder = await scene.transactions
      .find({ wallet: { $in: [crowd.wallet, single.wallet] }, amountCents: 1 })
      .sort({ nonce: 1 })
      .toArray();
    const at = inOrder.findLastIndex(({ wallet }) => wallet === single.wallet);
    expect(at, "behind the batch that was under way").to.be.lessThan(2 + 64 + 9);
  });

  it("of ten policies that two processes mirror at once, the newest is on the chain in the end", async () => {
    const agent = await scene.funded(1_000);
    await pay(agent, 100);
    const versions = Array.from({ length: 10 }, (_nothing, at) => at + 2);
    await Promise.all(
      versions.map((version) => mirror(version % 2 === 0 ? one : other, agent, version * 1_000, version)),
    );
    await setDue();
    await mined();
    expect(await limitOf(agent)).to.deep.equal({ ...NO_CHANGE, capCents: 11_000 });
    await mirror(other, agent, 99, 5);
    await mined();
    expect(await limitOf(agent), "an old one that comes late changes nothing").to.include({
      capCents: 11_000,
    });
  });

  it("the first payment and a new policy at once: the newest is on the chain in the end", async () => {
    for (let round = 0; round < shortOrSoak(1, 4); round += 1) {
      const agent = await scene.funded(1_000);
      await Promise.all([pay(agent, 100), mirror(other, agent, 2_000, 2), pay(agent, 100, other)]);
      await setDue();
      await mined();
      expect(await limitOf(agent)).to.include({ capCents: 2_000 });
    }
  });

  it("a payment that was allowed before its limit was lowered is made, and the limit is set back", async () => {
    const agent = await scene.funded(1_000);
    await pay(agent, 100);
    await mirror(one, agent, 150, 2);
    await mined();
    expect((await pay(agent, 300)).status).to.equal("settled");
    await mined();
    expect(await limitOf(agent)).to.include({ capCents: 150 });
  });

  it("many payments allowed before the limit was lowered are made, by two processes at once", async () => {
    const agent = await scene.funded(5_000);
    await pay(agent, 100);
    await mirror(one, agent, 100, 2);
    await mined();
    const payments = newPayments(shortOrSoak(6, 16), 100);
    const outcomes = await Promise.all(
      payments.map(async (payment, at) => {
        const instance = at % 2 === 0 ? one : other;
        const outcome = await instance.wallets.rail.send(agent.profile, payment);
        return outcome.status === "pending" ? ended(instance, agent, payment) : outcome;
      }),
    );
    expect(outcomes.map(({ status }) => status)).to.deep.equal(payments.map(() => "settled"));
    expect(await scene.balanceCents(agent.wallet)).to.equal(5_000 - 100 - payments.length * 100);
    await mined();
    await mirror(one, agent, 100, 2);
    await mined();
    expect(await limitOf(agent)).to.include({ capCents: 100 });
  });

  it("the owner's ceiling is respected: a payment above it fails, and one below it is made", async () => {
    const agent = await scene.funded(1_000);
    await pay(agent, 100);
    await owner.setCeiling(agent.wallet, 150);
    const outcome = await pay(agent, 300);
    expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    expect((await pay(agent, 50)).status).to.equal("settled");
    expect(await scene.balanceCents(agent.wallet)).to.equal(850);
  });

  it("a payment fails when the owner removed the service, and stays so when it is added again", async () => {
    const agent = await scene.funded(1_000);
    await pay(agent, 100);
    await owner.setSpender(agent.wallet, "0x0000000000000000000000000000000000000000");
    const payment = newPayment(100);
    await one.wallets.rail.send(agent.profile, payment);
    const outcome = await ended(one, agent, payment);
    expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    await owner.setSpender(agent.wallet, scene.signer.address);
    expect(await other.wallets.rail.send(agent.profile, payment)).to.include({ status: "failed" });
    expect(await other.wallets.rail.settle(agent.profile, payment, 100)).to.deep.equal(outcome);
    expect(await scene.balanceCents(agent.wallet)).to.equal(900);
  });

  it("a limit changed while the service was no spender is on the chain once it is one again", async () => {
    const agent = await scene.funded(1_000);
    await pay(agent, 100);
    await owner.setSpender(agent.wallet, randomAddress());
    await mirror(one, agent, 300, 2);
    expect(await pay(agent, 50)).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    await owner.setSpender(agent.wallet, scene.signer.address);
    await pay(agent, 50);
    await mined();
    expect(await limitOf(agent)).to.include({ capCents: 300 });
  });

  it("a payment whose id the wallet has paid by another sender is never called failed", async () => {
    const agent = await scene.funded(1_000);
    const payment = newPayment(100);
    const { recipient, transactionId } = payment.request;
    // Deploys the wallet.
    await pay(agent, 50);
    const units = unitsOf(100, scene.config.tokenDecimals);
    await owner.payInItsPlace(agent.wallet, { transactionId, to: getAddress(recipient), units });
    await one.wallets.rail.send(agent.profile, payment).catch(() => null);
    await mined();
    const error = await other.wallets.rail
      .settle(agent.profile, payment, 2_000)
      .catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(PaidUnrecorded);
    expect(await other.wallets.rail.query(payment)).to.include({ status: "pending" });
    expect(await scene.balanceCents(agent.wallet)).to.equal(850);
  });

  it("a payment fails if the owner withdraws before it is mined, and is not made with new money", async () => {
    const agent = await scene.funded(1_000);
    await pay(agent, 100);
    await anvil.call("evm_setAutomine", [false]);
    // Waits in the pool, and goes first because it offers more.
    const withdrawn = await owner.beginWithdrawal(agent.wallet, randomAddress(), 900);
    const payment = newPayment(400);
    const sent = await one.wallets.rail.send(agent.profile, payment);
    expect(sent.status).to.equal("pending");
    await anvil.call("anvil_mine", ["0x1"]);
    await anvil.call("evm_setAutomine", [true]);
    await owner.isDone(withdrawn);
    const outcome = await ended(one, agent, payment);
    expect(outcome).to.include({ status: "failed", code: "INSUFFICIENT_FUNDS" });
    await scene.fund(agent, 1_000);
    expect(await one.wallets.rail.send(agent.profile, payment)).to.deep.equal(outcome);
    expect(await other.wallets.rail.query(payment)).to.deep.equal(outcome);
    expect(await scene.balanceCents(agent.wallet)).to.equal(1_000);
  });

  describe("giving up a wallet", () => {
    it("nothing is spent afterwards, by any process, however often it is repeated", async () => {
      const agent = await scene.funded(1_000);
      await pay(agent, 100);
      expect(await one.wallets.rail.detach(agent.profile)).to.equal("detached");
      for (const instance of [one, other, scene.open()]) {
        expect(await pay(agent, 100, instance)).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
      }
      const before = await scene.nonces();
      expect(await other.wallets.rail.detach(agent.profile)).to.equal("detached");
      expect(await one.wallets.rail.detach(agent.profile)).to.equal("detached");
      expect(await scene.nonces(), "repeating costs nothing").to.have.length(before.length);
      expect(await scene.balanceCents(agent.wallet)).to.equal(900);
    });

    it("of a never-used wallet costs no transaction, and the service can never deploy it", async () => {
      const agent = await scene.funded(1_000);
      const before = await scene.nonces();
      expect(await one.wallets.rail.detach(agent.profile)).to.equal("detached");
      for (const instance of [one, other]) {
        expect(await pay(agent, 100, instance)).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
        await mirror(instance, agent, 500, 2);
      }
      expect(await scene.nonces()).to.have.length(before.length);
      expect(await one.wallets.rpc.hasCode(agent.wallet)).to.equal(false);
    });

    it("works again after the owner has made the service a spender again", async () => {
      const agent = await scene.funded(1_000);
      await pay(agent, 100);
      for (let round = 0; round < 2; round += 1) {
        expect(await one.wallets.rail.detach(agent.profile)).to.equal("detached");
        await owner.setSpender(agent.wallet, scene.signer.address);
        expect((await pay(agent, 100)).status).to.equal("settled");
      }
      expect(await other.wallets.rail.detach(agent.profile)).to.equal("detached");
      expect((await pay(agent, 100)).status).to.equal("failed");
    });

    it("while payments are under way from three processes, each is paid or failed, as on chain", async () => {
      const agent = await scene.funded(2_000);
      await pay(agent, 100);
      const third = scene.open();
      const payments = newPayments(shortOrSoak(9, 18), 100);
      const sent = payments.map(async (payment, at) => {
        const instance = [one, other, third][at % 3] ?? one;
        const outcome = await instance.wallets.rail.send(agent.profile, payment);
        return outcome.status === "pending" ? ended(instance, agent, payment) : outcome;
      });
      expect(await other.wallets.rail.detach(agent.profile)).to.equal("detached");
      const settled = (await Promise.all(sent)).filter(({ status }) => status === "settled").length;
      expect(await scene.balanceCents(agent.wallet)).to.equal(1_900 - settled * 100);
    });
  });
});
