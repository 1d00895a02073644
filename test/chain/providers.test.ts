import { randomInt } from "node:crypto";
import { expect } from "chai";
import { numberToHex } from "viem";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { someOrAll } from "../support/soak.ts";
import type { Payment, RailOutcome } from "../../src/domain/ledger/payment.ts";
import { cancel } from "./foreign.ts";
import {
  type BatchRefusal,
  type Provider,
  type ProviderOptions,
  startProvider,
  TOO_LARGE,
} from "./provider.ts";
import {
  ended,
  type Instance,
  newPayment,
  newPayments,
  openScene,
  randomFrom,
  type Scene,
  type TestAgent,
} from "./support.ts";

const CALLS_MAX = 50;
/** Repeats of a request that got HTTP 429, after which the service takes it for failed. */
const REPEATS = 2;
/** As in the URLs of many providers, which repeat it in their errors. */
const KEY = "a-key-that-no-log-may-have";

const REFUSALS: readonly BatchRefusal[] = [
  "error object",
  "array of one error",
  "HTTP 400",
  "HTTP 413",
  "HTTP 500",
  "cut",
  "first ones",
];

describe("an RPC endpoint with bounds", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let provider: Provider;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
  });
  afterEach(() => provider.close());
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const mine = (blocks: number) => anvil.call("anvil_mine", [numberToHex(blocks)]);

  /** A process that has its chain by such an endpoint. */
  async function behind(options: ProviderOptions, confirmations = 1): Promise<Instance> {
    provider = await startProvider(anvil.url, options);
    return scene.open({ rpcUrl: `${provider.url}/v2/${KEY}`, confirmations });
  }

  const bounds = [...REFUSALS.map((each) => [3, each] as const), [0, "error object"] as const];
  for (const [batchMax, batchRefusal] of someOrAll(bounds, 2)) {
    it(`that takes ${String(batchMax)} calls at once (${batchRefusal}): payments settle, logged`, async () => {
      const instance = await behind({ batchMax, batchRefusal });
      const agent = await scene.funded(2_000);
      const payments = newPayments(10, 10);
      // Without a keeper: what is broadcast is broadcast here.
      const outcomes = await Promise.all(payments.map((payment) => settled(instance, agent, payment)));
      expect(outcomes.every(({ status }) => status === "settled")).to.equal(true);
      const refused = instance.troubles.filter((each) => each.includes("refuses a batch"));
      expect(refused).not.to.have.length(0);
      expect(refused.join()).not.to.include(KEY);
      if (batchRefusal !== "cut" && batchRefusal !== "first ones") expect(refused[0]).to.include(TOO_LARGE);
      expect((await scene.audit([agent], payments)).spentCents).to.equal(100);
    });
  }

  it("that takes 50 ms for each broadcast: of 64 payments at once none is left to a keeper", async () => {
    const instance = await behind({ broadcastMs: 50 });
    const agent = await scene.funded(2_000);
    await scene.open().wallets.rail.send(agent.profile, newPayment(1));
    const payments = newPayments(64, 10);
    const outcomes = await Promise.all(payments.map((payment) => settled(instance, agent, payment)));
    expect(outcomes.every(({ status }) => status === "settled")).to.equal(true);
  });

  const seed = Number(process.env["TEST_SEED"] ?? randomInt(2 ** 31));
  it(`whose answers are HTTP 429 to 30 %: payments settle in one attempt (TEST_SEED=${String(seed)})`, async () => {
    const random = randomFrom(seed);
    const refusedInARow = new Map<string, number>();
    let refusals = 0;
    const isTooMany = (body: string): boolean => {
      const refused = refusedInARow.get(body) ?? 0;
      const isRefused = refused < REPEATS && random() < 0.3;
      refusedInARow.set(body, isRefused ? refused + 1 : 0);
      if (isRefused) refusals += 1;
      return isRefused;
    };
    const instance = await behind({ isTooMany });
    const agent = await scene.funded(2_000);
    const payments = newPayments(12, 10);
    for (const payment of payments) {
      // Not repeated here: a call that failed would fail the test. Refusals may outlast the wait for the receipt.
      const outcome = await instance.wallets.rail.send(agent.profile, payment);
      expect(outcome.status).to.be.oneOf(["settled", "pending"]);
      expect(await ended(instance, agent, payment)).to.include({ status: "settled" });
      const attempts = await instance.outbox.under(`spend/${payment.request.transactionId}/`);
      expect(attempts).to.have.length(1);
    }
    expect(refusals).to.be.above(0);
    expect(instance.troubles).to.deep.equal([]);
  });

  describe("that keeps the states of 128 blocks", () => {
    const CONFIRMATIONS = 200;

    it("a payment settles with 200 confirmations and not before, and no older state is read", async () => {
      const instance = await behind({ statesKept: 128 }, CONFIRMATIONS);
      const agent = await scene.funded(500);
      const payment = newPayment(100);
      await mine(300);
      expect((await instance.wallets.rail.send(agent.profile, payment)).status).to.equal("pending");
      for (const blocks of [100, 98]) {
        await mine(blocks);
        const outcome = await instance.wallets.rail.settle(agent.profile, payment, 0);
        expect(outcome).to.include({ status: "pending" });
      }
      await mine(1);
      expect(await ended(instance, agent, payment)).to.include({ status: "settled" });
      expect(provider.missed).to.deep.equal([]);
    });

    it("a payment that another transaction replaced is made again after 200 confirmations", async () => {
      const instance = await behind({ statesKept: 128 }, CONFIRMATIONS);
      const agent = await scene.funded(500);
      await scene.open().wallets.rail.send(agent.profile, newPayment(100));
      await anvil.call("evm_setAutomine", [false]);
      const nonce = ((await scene.nonces()).at(-1) ?? -1) + 1;
      const payment = newPayment(200);
      expect(await instance.wallets.rail.send(agent.profile, payment)).to.include({ status: "pending" });
      await cancel(scene, anvil, nonce);
      await mine(1);
      await anvil.call("evm_setAutomine", [true]);
      const attempts = async (): Promise<number> =>
        (await instance.outbox.under(`spend/${payment.request.transactionId}/`)).length;
      // The block of the other transaction is found while its state is there, and believed once it is deep enough.
      for (const [blocks, expected] of [
        [70, 1],
        [128, 1],
        [1, 2],
      ] as const) {
        await mine(blocks);
        await instance.wallets.rail.settle(agent.profile, payment, 0);
        expect(await attempts()).to.equal(expected);
      }
      await mine(CONFIRMATIONS);
      expect(await ended(instance, agent, payment)).to.include({ status: "settled" });
    });
  });
});

/** The end of a payment, asked for again for as long as there is no answer, as the service does. */
async function settled(instance: Instance, agent: TestAgent, payment: Payment): Promise<RailOutcome> {
  for (let call = 0; call < CALLS_MAX; call += 1) {
    const outcome = await instance.wallets.rail.send(agent.profile, payment).catch(() => null);
    if (outcome !== null) return outcome.status === "pending" ? ended(instance, agent, payment) : outcome;
  }
  throw new Error("never sent");
}
