import { expect } from "chai";
import { numberToHex } from "viem";
import { z } from "zod";
import { GAS, mintData } from "../../src/chain/contracts.ts";
import { isTransaction } from "../../src/chain/outbox.ts";
import { SANDBOX_FEES } from "../../src/chain/sandbox.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { shortOrSoak } from "../support/soak.ts";
import { ended, eventually, type Instance, newId, newPayment, openScene, type Scene } from "./support.ts";

const poolStatus = z.object({ pending: z.string(), queued: z.string() });

const BATCH = 20;
const BATCHES_MAX = shortOrSoak(15, 150);

describe("anvil's base fee, which falls only as blocks are mined", () => {
  it("is lowered by the keeper when above what the service pays, and all records are mined", async () => {
    const anvil = await startOwnAnvil();
    const scene = await openScene(anvil.url);
    const agent = await scene.funded(1_000);
    const tooMuch = SANDBOX_FEES.maxFeePerGas * 3n;
    await anvil.call("anvil_setNextBlockBaseFeePerGas", [numberToHex(tooMuch)]);
    const instance = scene.open();
    const payment = newPayment(100);
    expect(await instance.wallets.rail.send(agent.profile, payment)).to.include({ status: "pending" });
    await instance.wallets.start();
    expect(await ended(instance, agent, payment)).to.include({ status: "settled" });
    await instance.wallets.stop();
    await scene.close();
    await anvil.kill();
  });
});

describe("anvil's pool, which can hold transactions back for good", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let instance: Instance;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    instance = scene.open();
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const mined = () => scene.chain.getTransactionCount({ address: scene.signer.address, blockTag: "latest" });

  /** Several processes that send at once: what they recorded arrives in any order. */
  async function sendShuffled(wallet: `0x${string}`): Promise<void> {
    const calls = Array.from({ length: BATCH }, () => ({
      kind: "call" as const,
      purpose: `mint/${newId("test")}`,
      wallet,
      to: scene.config.token,
      data: mintData(wallet, 1n),
      gas: GAS.mint,
    }));
    const recorded = [...(await instance.outbox.record(calls)).values()].filter(isTransaction);
    const shuffled = recorded.toSorted((one, other) => (one.hash < other.hash ? -1 : 1));
    await Promise.all(shuffled.map(({ raw }) => anvil.call("eth_sendRawTransaction", [raw])));
  }

  /** Nothing is ready to be mined, and yet not everything is; mining a block changes nothing about it. */
  async function holdsBack(): Promise<boolean> {
    await anvil.call("evm_mine");
    const { pending, queued } = poolStatus.parse(await anvil.call("txpool_status"));
    return pending === "0x0" && queued !== "0x0" && (await mined()) < (await scene.nonces()).length;
  }

  it("is emptied by the keeper, and everything recorded is mined, in its order", async function () {
    const { wallet } = await scene.agent();
    let isStuck = false;
    for (let batch = 0; batch < BATCHES_MAX && !isStuck; batch += 1) {
      await sendShuffled(wallet);
      isStuck = await holdsBack();
    }
    if (!isStuck) return this.skip();
    await instance.wallets.start();
    await eventually(
      "the chain has all of it",
      async () => (await mined()) === (await scene.nonces()).length,
    );
    await instance.wallets.stop();
    expect(await scene.nonces()).to.deep.equal(Array.from({ length: await mined() }, (_nonce, at) => at));
  });
});
