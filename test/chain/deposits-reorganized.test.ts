import { expect } from "chai";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { times } from "../support/world.ts";
import { mined } from "../support/mined.ts";
import { eventually, randomFrom } from "./support.ts";
import { seed } from "../support/seed.ts";
import {
  catchUp,
  cursorsOf,
  openTreasuryScene,
  type Sent,
  type TestTreasury,
  type TreasuryScene,
} from "./treasury.ts";

/** As if everything recorded were old already: then the keeper sends again at its first look. */
const AHEAD = { clock: () => new Date(Date.now() + 60_000) };

describe("deposits on a chain that is reorganized", () => {
  let anvil: OwnAnvil;
  let the: TreasuryScene;
  let treasury: TestTreasury;
  before(async () => {
    anvil = await startOwnAnvil();
  });
  beforeEach(async () => {
    the = await openTreasuryScene(anvil);
    treasury = await the.organization();
  });
  afterEach(() => the.scene.close());
  after(() => anvil.kill());

  const watcher = (confirmations = 1) => the.scene.open({ confirmations }).wallets;
  const blockOf = async ({ hash }: Sent) => (await mined(the.scene.chain, hash)).blockNumber;
  const again = ({ raw }: Sent) => anvil.call("eth_sendRawTransaction", [raw]);

  it("a deposit that moves to another block before it is final is told once, when it is final", async () => {
    const watching = watcher(4);
    const holder = await the.holder(1_000);
    const paid = await holder.pay(treasury.address, 100);
    const before = await blockOf(paid);
    await the.mine(1);
    await catchUp(watching);
    await anvil.call("anvil_reorg", [2, []]);
    await the.mine(3);
    await catchUp(watching);
    expect(await the.told(treasury), "the transaction is gone").to.deep.equal([]);
    await again(paid);
    expect(await blockOf(paid)).not.to.equal(before);
    await the.mine(2);
    await catchUp(watching);
    expect(await the.told(treasury), "it is not final yet").to.deep.equal([]);
    await the.mine(3);
    await catchUp(watching);
    expect(await the.toldCents(treasury)).to.deep.equal([100]);
  });

  it("a deposit that was told, taken back and mined again elsewhere is not told again", async () => {
    const watching = watcher();
    const [holder, other] = [await the.holder(1_000), await the.holder(1_000)];
    const paid = await holder.pay(treasury.address, 100);
    await the.mine(3);
    await catchUp(watching);
    await anvil.call("anvil_reorg", [4, []]);
    await catchUp(watching);
    await anvil.call("evm_setAutomine", [false]);
    await other.begin(treasury.address, 70_000n);
    await again(paid);
    await anvil.call("evm_setAutomine", [true]);
    await the.mine(2);
    await catchUp(watching);
    expect(await the.toldCents(treasury)).to.have.members([100, 7]);
  });

  it("deposits at heights that were looked through before, in other blocks, are found", async () => {
    const watching = watcher();
    const [holder, other] = [await the.holder(1_000), await the.holder(1_000)];
    await catchUp(watching);
    const snapshot = await anvil.call("evm_snapshot");
    const first = await holder.pay(treasury.address, 100);
    const height = await blockOf(first);
    await the.mine(700);
    await catchUp(watching);
    expect((await cursorsOf(the.scene.db).findOne({}))?.block).to.equal(Number(height) + 700);
    await anvil.call("evm_revert", [snapshot]);
    // Nothing is final now that was not before.
    await catchUp(watching);
    const second = await other.pay(treasury.address, 7);
    expect(await blockOf(second)).to.equal(height);
    await catchUp(watching);
    expect(await the.toldCents(treasury)).to.have.members([100, 7]);
    await again(first);
    expect(await blockOf(first)).to.equal(height + 1n);
    await catchUp(watching);
    expect(await the.toldCents(treasury)).to.have.members([100, 7]);
  });

  it(`whatever is taken back and mined again, each deposit is told once (seed ${seed})`, async () => {
    const random = randomFrom(seed);
    const watches = [watcher(), watcher(2), watcher(5)];
    const holders = await Promise.all(times(8, () => the.holder(100)));
    // Deeper than any reorganization here goes.
    await the.mine(10);
    const amounts: number[] = [];
    const sent: Sent[] = [];
    for (const [index, holder] of holders.entries()) {
      amounts.push(index + 1);
      sent.push(await holder.pay(treasury.address, index + 1));
      await the.mine(1 + Math.floor(random() * 4));
      const looking = watches.filter(() => random() < 0.6);
      const looks = Promise.all(looking.map(({ deposits }) => deposits.step()));
      if (random() < 0.5) await anvil.call("anvil_reorg", [1 + Math.floor(random() * 6), []]);
      await looks;
      // What was taken back comes in again, in another order.
      for (const each of sent.toReversed()) await again(each).catch(() => null);
      for (const each of sent) await blockOf(each);
    }
    await the.mine(5);
    for (const watching of watches) await catchUp(watching);
    expect(await the.toldCents(treasury)).to.have.members(amounts);
  });

  it("a local chain that is killed: what is mined again is not told again, what is new is found", async () => {
    const watching = watcher();
    const deposit = async (cents: number): Promise<void> => {
      const minted = await the.instance.wallets.sandbox?.mint(`mint-${cents}`, treasury.address, cents);
      if (minted === null || minted === undefined) throw new Error("it did not arrive");
    };
    await deposit(100);
    await deposit(200);
    await the.mine(100);
    await catchUp(watching);
    await anvil.kill();
    await anvil.revive();
    const keeper = the.scene.open(AHEAD);
    await keeper.wallets.start();
    await eventually(
      "it is put together",
      async () => (await the.scene.balanceCents(treasury.address)) === 300,
    );
    await deposit(400);
    await catchUp(watching);
    expect(await the.toldCents(treasury)).to.have.members([100, 200, 400]);
  });
});
