import { expect } from "chai";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { agentWalletAbi } from "../../src/chain/contracts.ts";
import type { Payment, RailOutcome } from "../../src/domain/ledger/payment.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { cancel } from "./foreign.ts";
import {
  ended,
  eventually,
  hashOf,
  type Instance,
  newPayment,
  openScene,
  POLICY,
  type Scene,
  type TestAgent,
} from "./support.ts";

const CONFIRMATIONS = 3;
const ONE_BLOCK = ["0x1"] as const;
/** As if everything recorded were old already: then the keeper looks after it at once. */
const AHEAD = { clock: () => new Date(Date.now() + 60_000), confirmations: CONFIRMATIONS };

describe("a nonce that another transaction of the same key has used", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let instance: Instance;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    instance = scene.open({ confirmations: CONFIRMATIONS });
  });
  // A test's transactions are final before the next test begins.
  afterEach(async () => {
    await anvil.call("evm_setAutomine", [true]);
    await anvil.call("anvil_mine", ["0x8"]);
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const nextNonce = async (): Promise<number> => ((await scene.nonces()).at(-1) ?? -1) + 1;
  const attemptsOf = async (transactionId: string): Promise<number> =>
    (await instance.outbox.under(`spend/${transactionId}/`)).length;

  let made: Payment[] = [];

  /** An agent whose wallet is deployed and has made a payment. */
  async function usual(cents: number): Promise<TestAgent> {
    const agent = await scene.funded(cents);
    const first = newPayment(100);
    made = [first];
    expect(await scene.open().wallets.rail.send(agent.profile, first)).to.include({ status: "settled" });
    return agent;
  }

  /** A payment that a cancelling transaction replaces. */
  async function cancelled(agent: TestAgent, cents = 200) {
    await anvil.call("evm_setAutomine", [false]);
    const nonce = await nextNonce();
    const payment = newPayment(cents);
    expect(await instance.wallets.rail.send(agent.profile, payment)).to.include({ status: "pending" });
    const foreign = await cancel(scene, anvil, nonce);
    await anvil.call("anvil_mine", ONE_BLOCK);
    await scene.chain.getTransactionReceipt({ hash: foreign });
    return { payment, foreign, nonce };
  }

  /** Its end on a chain that goes on. */
  async function endedWhileMining(agent: TestAgent, payment: Payment): Promise<RailOutcome> {
    let outcome: RailOutcome | null = null;
    await eventually("it has an end", async () => {
      await anvil.call("anvil_mine", ONE_BLOCK);
      outcome = await instance.wallets.rail.settle(agent.profile, payment, 100);
      return outcome !== null && outcome.status !== "pending";
    });
    return outcome ?? { status: "pending" };
  }

  it("a cancelled payment is made once, by a later nonce, and the operator is told", async () => {
    const agent = await usual(1_000);
    const { foreign, nonce, payment } = await cancelled(agent);
    const keeper = scene.open(AHEAD);
    await keeper.wallets.start();
    await anvil.call("evm_setAutomine", [true]);
    await anvil.call("anvil_mine", ["0x3"]);
    await eventually("the operator is told", () =>
      Promise.resolve(keeper.troubles.some((each) => each.includes(foreign) && each.includes(String(nonce)))),
    );
    const outcome = await endedWhileMining(agent, payment);
    await keeper.wallets.stop();
    expect(keeper.repairs.get("foreign_nonce")).to.equal(1);
    expect(await attemptsOf(payment.request.transactionId)).to.equal(2);
    expect(outcome.status).to.equal("settled");
    const { spent } = await scene.audit([agent], [...made, payment]);
    expect(spent.get(payment.request.transactionId)).to.deep.equal([hashOf(outcome)]);
    expect(await scene.balanceCents(agent.wallet)).to.equal(700);
  });

  it("it is not sent again while the other transaction has too few confirmations", async () => {
    const agent = await usual(1_000);
    const { payment } = await cancelled(agent);
    const { rail } = instance.wallets;
    const { transactionId } = payment.request;
    for (let block = 1; block < CONFIRMATIONS; block += 1) {
      const outcome = await rail.settle(agent.profile, payment, 50);
      expect([outcome?.status, await attemptsOf(transactionId)]).to.deep.equal(["pending", 1]);
      await anvil.call("anvil_mine", ONE_BLOCK);
    }
    await rail.settle(agent.profile, payment, 50);
    expect(await attemptsOf(transactionId)).to.equal(2);
  });

  it("a payment whose cancelling is undone by a reorganization is made as it was first signed", async () => {
    const agent = await usual(1_000);
    const { payment } = await cancelled(agent);
    const [first] = await instance.outbox.under(`spend/${payment.request.transactionId}/`);
    if (first?.kind !== "transaction") throw new Error("it was not signed");
    await anvil.call("anvil_reorg", [1, []]);
    await anvil.call("anvil_dropAllTransactions");
    await anvil.call("eth_sendRawTransaction", [first.raw]);
    await anvil.call("anvil_mine", ["0x3"]);
    const outcome = await ended(instance, agent, payment);
    expect([outcome.status, hashOf(outcome)]).to.deep.equal(["settled", first.hash]);
    expect(await attemptsOf(payment.request.transactionId)).to.equal(1);
  });

  it("what was replaced is not sent again when blocks are lost; the payment keeps its outcome", async () => {
    const agent = await usual(1_000);
    const { foreign, payment } = await cancelled(agent);
    await anvil.call("anvil_mine", ["0x4"]);
    await instance.wallets.rail.settle(agent.profile, payment, 50);
    const outcome = await endedWhileMining(agent, payment);
    const { blockNumber } = await scene.chain.getTransactionReceipt({ hash: foreign });
    const depth = Number((await scene.chain.getBlockNumber()) - blockNumber) + 1;
    await anvil.call("anvil_reorg", [depth, []]);
    await anvil.call("anvil_dropAllTransactions");
    await anvil.call("evm_setAutomine", [true]);
    const keeper = scene.open(AHEAD);
    await keeper.wallets.start();
    await eventually("the chain has all of it again", async () => {
      await anvil.call("anvil_mine", ONE_BLOCK);
      return (await instance.wallets.rail.query(payment))?.status === "settled";
    });
    await keeper.wallets.stop();
    expect(keeper.repairs.get("nonce_filled")).to.equal(1);
    expect(await instance.wallets.rail.query(payment)).to.deep.equal(outcome);
    const { spent } = await scene.audit([agent], [...made, payment]);
    expect(spent.get(payment.request.transactionId)).to.deep.equal([hashOf(outcome)]);
  });

  it("of several that settle a cancelled payment at once, exactly one sends it again", async () => {
    const agent = await usual(1_000);
    const { payment } = await cancelled(agent);
    await anvil.call("anvil_mine", ["0x4"]);
    const others = Array.from({ length: 4 }, () => scene.open({ confirmations: CONFIRMATIONS }));
    await Promise.all(others.map(({ wallets }) => wallets.rail.settle(agent.profile, payment, 50)));
    expect(await attemptsOf(payment.request.transactionId)).to.equal(2);
    await anvil.call("anvil_mine", ["0x4"]);
    expect((await endedWhileMining(agent, payment)).status).to.equal("settled");
    expect(await scene.balanceCents(agent.wallet)).to.equal(700);
  });

  it("a cancelled payment of an agent that was stopped meanwhile is not sent again", async () => {
    const agent = await usual(1_000);
    const { payment } = await cancelled(agent);
    await anvil.call("anvil_mine", ["0x4"]);
    const { rail } = instance.wallets;
    const outcome = await rail.settle(agent.profile, payment, 50, () =>
      Promise.resolve({ kind: "withdraw" }),
    );
    expect(outcome).to.include({ status: "withheld" });
    expect(await scene.balanceCents(agent.wallet)).to.equal(900);
  });

  it("a wallet whose deployment was cancelled is deployed later, and pays once", async () => {
    const agent = await scene.funded(1_000);
    await anvil.call("evm_setAutomine", [false]);
    const nonce = await nextNonce();
    const payment = newPayment(200);
    expect(await instance.wallets.rail.send(agent.profile, payment)).to.include({ status: "pending" });
    await cancel(scene, anvil, nonce);
    await anvil.call("anvil_mine", ONE_BLOCK);
    expect(await scene.chain.getCode({ address: agent.wallet })).to.equal(undefined);
    await anvil.call("evm_setAutomine", [true]);
    const keeper = scene.open(AHEAD);
    await keeper.wallets.start();
    const outcome = await endedWhileMining(agent, payment);
    await keeper.wallets.stop();
    expect(outcome.status).to.equal("settled");
    expect(await scene.balanceCents(agent.wallet)).to.equal(800);
  });

  it("a limit whose transaction was cancelled is set all the same", async () => {
    const agent = await usual(1_000);
    await anvil.call("evm_setAutomine", [false]);
    const nonce = await nextNonce();
    await instance.wallets.limits.mirror(agent.profile.agentId, { ...POLICY, budgetCents: 12_300 }, 2);
    await scene.open(AHEAD).wallets.limits.setDue();
    await cancel(scene, anvil, nonce);
    await anvil.call("evm_setAutomine", [true]);
    await anvil.call("anvil_mine", ["0x3"]);
    const keeper = scene.open(AHEAD);
    await keeper.wallets.start();
    const read = { address: agent.wallet, abi: agentWalletAbi, functionName: "limitOf" } as const;
    await eventually("the limit is the policy's", async () => {
      const [cap] = await scene.chain.readContract({ ...read, args: [scene.config.token] });
      return cap === 123_000_000n;
    });
    await keeper.wallets.stop();
  });

  it("a wallet whose giving up was cancelled is given up all the same", async () => {
    const agent = await usual(1_000);
    await anvil.call("evm_setAutomine", [false]);
    const nonce = await nextNonce();
    const detaching = instance.wallets.rail.detach(agent.profile);
    await eventually("it is recorded", async () => (await nextNonce()) === nonce + 1);
    await cancel(scene, anvil, nonce);
    await anvil.call("anvil_mine", ["0x4"]);
    expect(await detaching).to.equal("pending");
    await anvil.call("evm_setAutomine", [true]);
    // Its answer waits for blocks, so they must come from elsewhere.
    const mining = setInterval(() => void anvil.call("anvil_mine", ONE_BLOCK), 50);
    await eventually(
      "the wallet is given up",
      async () => (await instance.wallets.rail.detach(agent.profile)) === "detached",
    ).finally(() => clearInterval(mining));
  });
});

describe("what is known of a nonce that another transaction has used", () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  after(() => scene.close());

  const callOf = (purpose: string) =>
    ({ kind: "call", purpose, wallet: null, to: scene.signer.address, data: "0x", gas: 60_000n }) as const;
  const record = async (purpose: string) => {
    const recorded = (await scene.open().outbox.record([callOf(purpose)])).get(purpose);
    if (recorded?.kind !== "transaction") throw new Error("nothing was recorded");
    return recorded;
  };
  const REPLACEMENT = { hash: "0x01", blockNumber: 1, at: new Date() };
  const FEES = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 10n };

  it("nothing is replaced by a proof that does not know all that was signed under the nonce", async () => {
    const { outbox } = scene.open();
    const before = await record("test/raised");
    expect(await outbox.raise(before, FEES))
      .to.have.property("signings")
      .with.length(2);
    expect(await outbox.markReplaced(before, REPLACEMENT)).to.equal("not proven");
    const after = (await outbox.find(["test/raised"])).get("test/raised");
    expect(after).to.deep.include({ replacedBy: null });
  });

  it("under a nonce that another transaction has nothing is signed any more", async () => {
    const { outbox } = scene.open();
    const before = await record("test/replaced");
    expect(await outbox.markReplaced(before, REPLACEMENT)).to.equal("marked");
    expect(await outbox.markReplaced(before, REPLACEMENT)).to.equal("known before");
    expect(await outbox.raise(before, FEES)).to.equal(null);
  });

  it("of two that raise the same fee at once, one has its signing remembered, the other none", async () => {
    const before = await record("test/two");
    const raised = await Promise.all(
      [scene.open(), scene.open()].map(({ outbox }, at) =>
        outbox.raise(before, { ...FEES, maxFeePerGas: FEES.maxFeePerGas + BigInt(at) }),
      ),
    );
    expect(raised.filter((each) => each !== null)).to.have.length(1);
    const [winner] = raised.filter((each) => each !== null);
    const now = (await scene.open().outbox.find(["test/two"])).get("test/two");
    expect(now).to.deep.include({ hash: winner?.hash });
  });

  it("what an intruder has put in a recorded transaction's place is not signed", async () => {
    const { outbox } = scene.open();
    const [real, other] = [await record("test/real"), await record("test/other")];
    const forger = privateKeyToAccount(generatePrivateKey());
    const { chainId } = scene.config;
    const raw = await forger.signTransaction({
      chainId,
      nonce: real.nonce,
      to: forger.address,
      gas: 90_000n,
      ...FEES,
    });
    for (const bytes of [raw, other.raw]) {
      const forged = await outbox.raise({ ...real, raw: bytes }, FEES).catch((error: unknown) => error);
      expect(String(forged)).to.include("has not signed");
      const repeated = await outbox.repeat({ ...real, raw: bytes }).catch((error: unknown) => error);
      expect(String(repeated)).to.include("has not signed");
    }
  });

  it("a nonce that a foreign transaction has is not given out once that is final", async () => {
    const { outbox } = scene.open();
    const next = (await record("test/before")).nonce + 1;
    outbox.nonces.isFinalBelow(next + 3);
    const recorded = (await outbox.record([callOf("test/behind")])).get("test/behind");
    expect(recorded).to.include({ nonce: next + 3 });
  });
});
