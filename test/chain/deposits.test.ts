import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { createServer } from "node:http";
import { expect } from "chai";
import { numberToHex } from "viem";
import { DepositWatch } from "../../src/chain/deposits.ts";
import { atIntervals, treasuryDeposits } from "../../src/rails/wallet/deposits.ts";
import { EventJournal } from "../../src/store/journal.ts";
import { startChainProxy } from "../../lab/chaos/chain-proxy.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { times } from "../support/world.ts";
import { FUNDING_INDEXES } from "../../src/rails/wallet/fundings.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { newId, POLICY, randomAddress, randomFrom } from "./support.ts";
import { catchUp, cursorsOf, openTreasuryScene, type TreasuryScene } from "./treasury.ts";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";

describe("deposits into treasuries and wallets", () => {
  let anvil: OwnAnvil;
  let the: TreasuryScene;
  before(async () => {
    anvil = await startOwnAnvil();
    the = await openTreasuryScene(anvil);
  });
  after(async () => {
    await the.scene.close();
    await anvil.kill();
  });

  /** A further process, whose blocks have to be so deep. */
  const watcher = (confirmations = 1) => the.scene.open({ confirmations }).wallets;

  it("a deposit is told once it has its confirmations, and not before: once, with what it was", async () => {
    const watching = watcher(3);
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    await catchUp(watching);
    const { hash } = await holder.pay(treasury.address, 250);
    for (const _ of times(2, () => null)) {
      await catchUp(watching);
      expect(await the.told(treasury)).to.deep.equal([]);
      await the.mine(1);
    }
    await catchUp(watching);
    await the.mine(5);
    await catchUp(watching);
    const [event, ...more] = await the.told(treasury);
    expect(more).to.deep.equal([]);
    const nowhere = { projectId: null, teamId: null, agentId: null, agentName: null };
    const { organizationId } = treasury;
    expect(event).to.deep.include({ type: "funding.deposited", organizationId, ...nowhere });
    const { deposit } = event?.data ?? {};
    expect(deposit?.id).to.match(/^dep_[0-9a-f]{32}$/);
    expect(event?._id).to.equal(`evt_${deposit?.id ?? ""}_funding.deposited`);
    expect(deposit).to.deep.include({
      amountCents: 250,
      currency: "USD",
      address: treasury.address,
      onChainTxHash: hash,
      chainCaip2: "eip155:31337",
      settledAt: event?.createdAt,
    });
  });

  it("deposits in one block and in one transaction are told each, to the one they were sent to", async () => {
    const [one, other] = [await the.organization(), await the.organization()];
    const [left, right] = [await the.holder(100), await the.holder(100)];
    await anvil.call("evm_setAutomine", [false]);
    for (const holder of [left, right]) await holder.begin(one.address, 100_000n);
    await anvil.call("evm_setAutomine", [true]);
    await the.mine(1);
    const { hash } = await left.payTogether([
      [one.address, 20],
      [other.address, 30],
      [one.address, 20],
    ]);
    await catchUp(watcher());
    expect(await the.toldCents(one)).to.have.members([10, 10, 20, 20]);
    expect(await the.toldCents(other)).to.deep.equal([30]);
    const events = [...(await the.told(one)), ...(await the.told(other))];
    expect(new Set(events.map(({ data }) => data.deposit?.id)).size).to.equal(5);
    const together = events.filter(({ data }) => data.deposit?.onChainTxHash === hash);
    expect(together).to.have.lengthOf(3);
  });

  it("no event for zero, for less than a cent, or for transfers to another address", async () => {
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    await holder.pay(randomAddress(), 10);
    await holder.begin(treasury.address, 0n);
    await holder.begin(treasury.address, 9_999n);
    const agent = await the.scene.funded(50);
    await catchUp(watcher());
    expect(await the.told(treasury)).to.deep.equal([]);
    expect(await the.scene.balanceCents(agent.wallet)).to.equal(50);
    await holder.begin(treasury.address, 19_999n);
    await catchUp(watcher());
    expect(await the.toldCents(treasury), "what is over a cent is left off").to.deep.equal([1]);
  });

  it("what others send to an agent's wallet has one event, and fundings no second one", async () => {
    const { scene } = the;
    const [treasury, shop] = [await the.organization(), await the.holder(1_000)];
    const agent = await scene.agent(POLICY, treasury.organizationId);
    const [one, other] = [watcher(), watcher()];
    await shop.pay(treasury.address, 500);
    await createIndexes(scene.db, FUNDING_INDEXES);
    const request = { _id: newId("fnd"), profile: agent.profile, amountCents: 400, idempotencyKey: null };
    let { funding } = await one.fundings.begin(request);
    while (funding.status === "pending") funding = await one.fundings.advance(funding, 5_000);
    const refund = await shop.pay(agent.wallet, 125);
    await shop.pay(randomAddress(), 1);
    await Promise.all([one, other, other].map(({ walletDeposits }) => catchUp({ deposits: walletDeposits })));
    await catchUp(one);
    const events = await the.told(treasury);
    expect(
      events.map(({ data, type }) => [type, data.funding?.amountCents, data.deposit?.amountCents]),
    ).to.have.deep.members([
      ["funding.deposited", undefined, 500],
      ["wallet.funded", 400, undefined],
      ["wallet.funded", undefined, 125],
    ]);
    const came = events.find(({ data, type }) => type === "wallet.funded" && data.deposit !== undefined);
    const { agentId, name: agentName } = agent.profile;
    expect(came).to.deep.include({ agentId, agentName });
    expect(came?.data.deposit).to.include({ address: agent.wallet, onChainTxHash: refund.hash });
    expect(await one.rail.balance(agent.profile)).to.include({ kind: "cents", cents: 525 });
  });

  it("a wallet whose record was forged has no event, and the others' deposits are told", async () => {
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    const agent = await the.scene.agent(POLICY, treasury.organizationId);
    const careful = the.scene.open({ isAgentGenuine: () => false });
    await holder.pay(agent.wallet, 1);
    await catchUp({ deposits: careful.wallets.walletDeposits });
    expect(await the.told(treasury)).to.deep.equal([]);
    expect(careful.troubles.join()).to.include(agent.profile.agentId);
  });

  it("wallets are read at an interval, unless the watch is behind", async () => {
    let steps = 0;
    const step = atIntervals({ step: () => Promise.resolve({ isBehind: (steps += 1) < 3 }) });
    for (const _ of times(5, () => null)) await step();
    expect(steps).to.equal(3);
  });

  it("several watches at once, again and again, tell each deposit once", async () => {
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    const watches = times(3, () => watcher());
    for (const cents of times(3, (index) => index + 1)) {
      const paying = holder.pay(treasury.address, cents);
      await Promise.all(watches.map(({ deposits }) => deposits.step()));
      await paying;
      await Promise.all(watches.map(({ deposits }) => deposits.step()));
    }
    for (const watching of watches) await catchUp(watching);
    expect(await the.toldCents(treasury)).to.have.members([1, 2, 3]);
  });

  it("a crash after an event, before the cursor has moved, tells it once all the same", async () => {
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    const cursors = cursorsOf(the.scene.db);
    await catchUp(watcher());
    const before = await cursors.findOne({});
    await holder.pay(treasury.address, 100);
    await catchUp(watcher());
    if (before === null) throw new Error("there is no cursor");
    await cursors.replaceOne({ _id: before._id }, before);
    await catchUp(watcher());
    expect(await the.toldCents(treasury)).to.deep.equal([100]);
    expect((await cursors.findOne({}))?.block).to.be.greaterThan(before.block);
  });

  it("an event that could not be written is written by the next step: the cursor waits for it", async () => {
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    const { config, rpc, treasuries } = the.instance.wallets;
    const journal = new EventJournal(the.scene.db, TEST_ACCESS_PROOFS);
    let failures = 2;
    const watch = new DepositWatch({
      db: the.scene.db,
      config,
      rpc,
      beginsAt: "the first block",
      clock: () => new Date(),
      recipients: treasuryDeposits(treasuries, {
        async organizationEvent(...event) {
          failures -= 1;
          if (failures >= 0) throw new Error("the database is away");
          return journal.organizationEvent(...event);
        },
      }),
    });
    await holder.pay(treasury.address, 100);
    for (const _ of times(2, () => null)) {
      const thrown = await watch.step().then(
        () => null,
        (error: unknown) => error,
      );
      expect(thrown).to.have.property("message", "the database is away");
    }
    await catchUp({ deposits: watch });
    expect(await the.toldCents(treasury)).to.deep.equal([100]);
  });

  it("off a test chain it begins where the chain is when the first address is given, not later", async () => {
    const [first, holder] = [await the.organization(), await the.holder(1_000)];
    await holder.pay(first.address, 1);
    const { config, rpc, treasuries } = the.instance.wallets;
    await cursorsOf(the.scene.db).deleteMany({});
    const watch = new DepositWatch({
      db: the.scene.db,
      config,
      rpc,
      beginsAt: "the newest final block",
      clock: () => new Date(),
      recipients: treasuryDeposits(treasuries, new EventJournal(the.scene.db, TEST_ACCESS_PROOFS)),
    });
    await watch.begin();
    await holder.pay(first.address, 2);
    const second = await the.organization();
    await holder.pay(second.address, 3);
    await catchUp({ deposits: watch });
    expect(await the.toldCents(first)).to.deep.equal([2]);
    expect(await the.toldCents(second)).to.deep.equal([3]);
  });

  it("a node that knows another chain, or is behind, makes no gap when it answers in between", async () => {
    const astray = await startOwnAnvil();
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    await catchUp(watcher());
    await holder.pay(treasury.address, 100);
    let answered = 0;
    const either = await eitherNode((body) => {
      if (answered > 2 || !body.includes("eth_getLogs")) return anvil.url;
      answered += 1;
      return astray.url;
    });
    const balanced = the.scene.open({ rpcUrl: either.url }).wallets;
    const height = Number(await the.scene.chain.getBlockNumber());
    for (const blocks of [height, 2, 2]) {
      // Of what a node does not have yet, some say that it is empty, and some that it can't be asked for.
      await balanced.deposits.step().catch(() => null);
      expect(await the.told(treasury)).to.deep.equal([]);
      // As high as the chain is, but other blocks.
      await astray.call("anvil_mine", [numberToHex(blocks)]);
    }
    await catchUp(balanced);
    expect(await the.toldCents(treasury)).to.deep.equal([100]);
    either.close();
    await astray.kill();
  });

  it(`a silent or nonsensical chain makes it throw, and loses nothing (seed ${seed})`, async () => {
    const random = randomFrom(seed);
    const proxy = await startChainProxy(anvil.url);
    const disturbed = the.scene.open({ rpcUrl: proxy.url }).wallets;
    const [treasury, holder] = [await the.organization(), await the.holder(1_000)];
    await holder.pay(treasury.address, 1);
    for (const mishap of someOrAll(
      ["silence", "too-many", "garbage", "nonsense", "cut-before"] as const,
      2,
    )) {
      proxy.behave(() => mishap);
      const thrown = await disturbed.deposits.step().then(
        () => null,
        (error: unknown) => error,
      );
      expect(thrown, mishap).to.have.property("name", "ChainUnreachable");
      expect(await the.told(treasury)).to.deep.equal([]);
    }
    const mishaps = ["pass", "pass", "too-many", "garbage", "nonsense", "cut-after", "twice"] as const;
    proxy.behave(() => mishaps[Math.floor(random() * mishaps.length)] ?? "pass");
    for (const cents of [2, 3, 4, 5]) {
      await holder.pay(treasury.address, cents);
      for (const _ of times(8, () => null)) await disturbed.deposits.step().catch(() => null);
    }
    proxy.behave(() => "pass");
    await catchUp(disturbed);
    await proxy.close();
    expect(await the.toldCents(treasury)).to.have.members([1, 2, 3, 4, 5]);
  });

  it("a treasury that is made while the cursor is far ahead misses nothing that is sent to it", async () => {
    const holder = await the.holder(1_000);
    await the.mine(700);
    await catchUp(watcher());
    const treasury = await the.organization();
    await holder.pay(treasury.address, 100);
    await catchUp(watcher());
    expect(await the.toldCents(treasury)).to.deep.equal([100]);
  });
});

/** One address with two nodes behind it, as providers have many: each request goes to the one that is chosen for it. */
async function eitherNode(choose: (body: string) => string) {
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(Buffer.from(chunk));
      const body = Buffer.concat(chunks).toString("utf8");
      const headers = { "content-type": "application/json" };
      const answer = await fetch(choose(body), { method: "POST", headers, body });
      response.writeHead(answer.status, headers).end(await answer.text());
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server has a port");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
