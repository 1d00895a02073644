import { expect } from "chai";
import { isTransaction } from "../../src/chain/outbox.ts";
import { eventually, openScene, randomAddress, type Scene } from "./support.ts";

const HOUR_MS = 3_600_000;

describe("transactions that were recorded by a process whose clock ran ahead, and were never sent", () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  after(() => scene.close());

  it("are sent by another process's keeper, long before their time comes", async () => {
    const ahead = scene.open({ clock: () => new Date(Date.now() + HOUR_MS) });
    const call = {
      kind: "call",
      purpose: "x",
      wallet: null,
      to: randomAddress(),
      data: "0x",
      gas: 60_000n,
    } as const;
    const recorded = (await ahead.outbox.record([call])).get("x");
    if (recorded === undefined || !isTransaction(recorded)) throw new Error("it was not recorded");
    const { address } = scene.signer;
    expect(await scene.chain.getTransactionCount({ address })).to.equal(recorded.nonce);
    await scene.open().wallets.start();
    const isMined = async () => (await scene.chain.getTransactionCount({ address })) > recorded.nonce;
    await eventually("it is mined", isMined);
  });
});
