import { expect } from "chai";
import { type Hex, keccak256, numberToHex } from "viem";
import { z } from "zod";
import { recordedRoots } from "../../src/chain/audit-roots.ts";
import { type ChainProxy, startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { rootsOnChain } from "../../server/admin/roots-on-chain.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { openOwner } from "./owner.ts";
import {
  ended,
  eventually,
  hashOf,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  randomAddress,
  type Scene,
  type TestAgent,
} from "./support.ts";

const GWEI = 10n ** 9n;
const BASE_FEE = 2n * GWEI;
const UP_TO = 1_000n * GWEI;
/** As if everything recorded were old already: then the keeper looks after it at once. */
const AHEAD = { clock: () => new Date(Date.now() + 60_000), feesUpTo: UP_TO };

describe("a base fee that has risen since a payment was signed", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let proxy: ChainProxy;
  let agent: TestAgent;
  /** Signs for what the chain asks for; its keeper does not run. */
  let instance: Instance;
  let sent: Hex[];
  before(async () => {
    anvil = await startOwnAnvil("--block-base-fee-per-gas", String(BASE_FEE));
    scene = await openScene(anvil.url);
    proxy = await startChainProxy(anvil.url);
    proxy.behave((body) => {
      sent.push(...sentIn(body));
      return "pass";
    });
    instance = scene.open({ feesUpTo: UP_TO, rpcUrl: proxy.url });
  });
  beforeEach(async () => {
    sent = [];
    await anvil.call("evm_setAutomine", [true]);
    await setBaseFee(BASE_FEE);
    agent = await scene.funded(2_000);
    expect(await scene.open().wallets.rail.send(agent.profile, newPayment(100))).to.include({
      status: "settled",
    });
    await setBaseFee(BASE_FEE);
  });
  after(async () => {
    await scene.close();
    await proxy.close();
    await anvil.kill();
  });

  const setBaseFee = async (fee: bigint): Promise<void> => {
    await anvil.call("anvil_setNextBlockBaseFeePerGas", [numberToHex(fee)]);
    // The chain says what the newest block asked for.
    await anvil.call("evm_mine");
    await anvil.call("anvil_setNextBlockBaseFeePerGas", [numberToHex(fee)]);
  };

  /** A payment that was signed for the usual base fee, before that rose. */
  async function overtaken(times: bigint) {
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(200);
    expect((await instance.wallets.rail.send(agent.profile, payment)).status).to.equal("pending");
    await setBaseFee(BASE_FEE * times);
    await anvil.call("evm_setAutomine", [true]);
    await anvil.call("anvil_setNextBlockBaseFeePerGas", [numberToHex(BASE_FEE * times)]);
    return payment;
  }

  /** All hashes that are remembered under each nonce. */
  async function remembered(): Promise<ReadonlySet<string>> {
    const documents = await scene.transactions.find({ nonce: { $gte: 0 } }).toArray();
    return new Set(JSON.stringify(documents).match(/0x[0-9a-f]{64}(?=")/g) ?? []);
  }

  it("stuck payments are offered more for by a keeper, and each is made once", async () => {
    await anvil.call("evm_setAutomine", [false]);
    const payments = newPayments(3, 200);
    await Promise.all(payments.map((payment) => instance.wallets.rail.send(agent.profile, payment)));
    await setBaseFee(BASE_FEE * 6n);
    await anvil.call("evm_setAutomine", [true]);
    const nonces = await scene.nonces();
    const keeper = scene.open({ ...AHEAD, rpcUrl: proxy.url });
    await keeper.wallets.start();
    const outcomes = await Promise.all(payments.map((payment) => ended(instance, agent, payment)));
    await keeper.wallets.stop();
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["settled", "settled", "settled"]);
    expect(await scene.nonces(), "no other nonce was used").to.deep.equal(nonces);
    expect(await scene.balanceCents(agent.wallet)).to.equal(1_300);
    for (const outcome of outcomes) {
      const receipt = await scene.chain.getTransactionReceipt({ hash: hashOf(outcome) ?? "0x" });
      expect(receipt.status, "the outcome names the one that was mined").to.equal("success");
    }
    expect(keeper.troubles.join()).to.include("was raised");
    expect(keeper.repairs.get("fee_raised")).to.be.at.least(3);
    const known = await remembered();
    for (const hash of sent) expect(known, "all that was ever sent is remembered").to.include(hash);
  });

  it("one that was signed by a clock that ran ahead is offered more for, too, and made once", async () => {
    const payment = await overtaken(6n);
    const behind = { clock: () => new Date(Date.now() - 3_600_000), feesUpTo: UP_TO };
    const keeper = scene.open({ ...behind, rpcUrl: proxy.url });
    await keeper.wallets.start();
    const outcome = await ended(instance, agent, payment);
    await keeper.wallets.stop();
    expect(outcome.status).to.equal("settled");
    expect(keeper.repairs.get("fee_raised")).to.be.at.least(1);
    expect(await scene.balanceCents(agent.wallet)).to.equal(1_700);
  });

  it("several keepers at once raise a fee without a second payment, all of it remembered", async () => {
    const payment = await overtaken(5n);
    const keepers = Array.from({ length: 4 }, () => scene.open({ ...AHEAD, rpcUrl: proxy.url }));
    await Promise.all(keepers.map(({ wallets }) => wallets.start()));
    expect((await ended(instance, agent, payment)).status).to.equal("settled");
    await Promise.all(keepers.map(({ wallets }) => wallets.stop()));
    expect(await scene.balanceCents(agent.wallet)).to.equal(1_700);
    const known = await remembered();
    for (const hash of sent) expect(known).to.include(hash);
  });

  it("no more is offered than the setting allows; payments wait, and the operator is told", async () => {
    const payment = await overtaken(8n);
    const before = (await remembered()).size;
    const keeper = scene.open({ ...AHEAD, feesUpTo: BASE_FEE * 7n });
    await keeper.wallets.start();
    await eventually("the operator is told", () =>
      Promise.resolve(keeper.troubles.some((each) => each.includes("EVM_MAX_FEE_PER_GAS_GWEI"))),
    );
    expect((await instance.wallets.rail.query(payment))?.status).to.equal("pending");
    expect((await remembered()).size, "nothing else was signed").to.equal(before);
    await setBaseFee(BASE_FEE);
    expect((await ended(instance, agent, payment)).status).to.equal("settled");
    await keeper.wallets.stop();
  });

  it("where the first signing is mined after all, not the raised one, the payment is that one", async () => {
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(200);
    const first = await instance.wallets.rail.send(agent.profile, payment);
    const [recorded] = await instance.outbox.under(`spend/${payment.request.transactionId}/`);
    if (recorded?.kind !== "transaction") throw new Error("it was not signed");
    const fees = { maxFeePerGas: BASE_FEE * 20n, maxPriorityFeePerGas: GWEI * 2n };
    const raised = await instance.outbox.raise(recorded, fees);
    expect((await instance.wallets.rail.query(payment)) ?? {}).to.have.nested.property(
      "onChain.txHash",
      raised?.hash,
    );
    await anvil.call("anvil_mine", ["0x1"]);
    const outcome = await ended(instance, agent, payment);
    expect([outcome.status, hashOf(outcome)]).to.deep.equal(["settled", hashOf(first)]);
  });

  it("where the first signing was mined and undone, the payment fails for the money it lacked", async () => {
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(200);
    const first = hashOf(await instance.wallets.rail.send(agent.profile, payment));
    const [recorded] = await instance.outbox.under(`spend/${payment.request.transactionId}/`);
    if (recorded?.kind !== "transaction") throw new Error("it was not signed");
    const fees = { maxFeePerGas: BASE_FEE * 20n, maxPriorityFeePerGas: GWEI * 2n };
    await instance.outbox.raise(recorded, fees);
    const owner = openOwner(scene);
    const withdrawal = await owner.beginWithdrawal(agent.wallet, randomAddress(), 1_900);
    await anvil.call("anvil_mine", ["0x1"]);
    await owner.isDone(withdrawal);
    expect((await scene.chain.getTransactionReceipt({ hash: first ?? "0x" })).status).to.equal("reverted");
    expect(await ended(instance, agent, payment)).to.include({ code: "INSUFFICIENT_FUNDS" });
  });

  it("the root of an anchor whose fee was raised is found on the chain by its line", async () => {
    await anvil.call("evm_setAutomine", [false]);
    const root = "ab".repeat(32);
    const line = await instance.wallets.recordRoot(root);
    const [recorded] = await instance.outbox.under(`audit/${root}`);
    if (recorded?.kind !== "transaction") throw new Error("it was not recorded");
    const raised = await instance.outbox.raise(recorded, {
      maxFeePerGas: UP_TO,
      maxPriorityFeePerGas: UP_TO,
    });
    await anvil.call("eth_sendRawTransaction", [raised?.raw]);
    await anvil.call("anvil_mine", ["0x1"]);
    const written = { version: 1, kind: "transaction", at: new Date().toISOString(), root, ...line } as const;
    const { config: at, pocketKey, signer } = scene;
    const config = { config: at, signer, pocketKey, sandbox: true };
    const found = await rootsOnChain(config, [written], await recordedRoots(scene.db));
    expect(found).to.deep.equal({ confirmed: 1, unseen: 0, wrong: [], reachable: true });
  });

  it("the first offer, too, is no more than the setting allows", async () => {
    await setBaseFee(BASE_FEE * 5n);
    const modest = scene.open({ feesUpTo: BASE_FEE * 6n });
    const payment = newPayment(200);
    expect((await modest.wallets.rail.send(agent.profile, payment)).status).to.equal("settled");
    const [first] = await instance.outbox.under(`spend/${payment.request.transactionId}/`);
    if (first?.kind !== "transaction") throw new Error("it was not signed");
    const { maxFeePerGas } = await scene.chain.getTransaction({ hash: first.hash });
    expect(maxFeePerGas).to.equal(BASE_FEE * 6n);
  });
});

const request = z.object({ method: z.string(), params: z.array(z.unknown()).optional() });
const requests = z.union([request, z.array(request)]);

/** The hashes of the transactions that a request hands over. */
function sentIn(body: string): Hex[] {
  const parsed = requests.safeParse(JSON.parse(body));
  if (!parsed.success) return [];
  const all = Array.isArray(parsed.data) ? parsed.data : [parsed.data];
  return all
    .filter(({ method }) => method === "eth_sendRawTransaction")
    .flatMap(({ params = [] }) => params.filter((raw) => typeof raw === "string"))
    .map((raw) => keccak256(`0x${raw.slice(2)}`));
}
