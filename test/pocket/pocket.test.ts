import { expect } from "chai";
import type { Document } from "mongodb";
import { createWalletClient, encodeFunctionData, http, numberToHex, recoverTypedDataAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { pocketEvents } from "../../src/rails/pocket/reconcile.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import type { Authorization, Authorized, Funding } from "../../src/rails/pocket/pocket.ts";
import { mirroredLimit } from "../../src/domain/wallet/spending-limit.ts";
import { agentWalletAbi } from "../../src/chain/contracts.ts";
import { mined } from "../support/mined.ts";
import { shortOrSoak } from "../support/soak.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import {
  type Instance,
  newId,
  openScene,
  PERMIT,
  POLICY,
  type Scene,
  type TestAgent,
} from "../chain/support.ts";
import { Steps, steppedDb } from "../rails/steps.ts";
import { CENT, centsAt, FUND_MS, newTransfer, nowSeconds, openFacilitator, unitsAt } from "./support.ts";

/** anvil's well-known account 0: the demo owner of the wallets. */
const OWNER_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/** In the long run more than the events of two calls are read from; a chain makes some hundred in a second. */
const UNSEEN_BLOCKS = shortOrSoak(40, 4_500);
const MINED_AT_ONCE = 250;

describe("an agent's pocket", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let instances: readonly [Instance, Instance];
  let shop: Awaited<ReturnType<typeof openFacilitator>>;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    instances = [scene.open({ floatCents: 500 }), scene.open({ floatCents: 500 })];
    shop = await openFacilitator(scene, anvil);
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const pockets = () => instances[0].wallets.pockets;
  const pocketOf = ({ profile }: TestAgent) => pockets().addressOf(profile.agentId);
  const fund = (agent: TestAgent, id: string, units: bigint, at: 0 | 1 = 0): Promise<Funding> =>
    instances[at].wallets.pockets.fund(agent.profile, id, units, FUND_MS);
  const signedFor = async (agent: TestAgent, id: string, units: bigint): Promise<Authorization> => {
    expect(await fund(agent, id, units)).to.deep.equal({ status: "funded" });
    return signed(await pockets().authorize(agent.profile.agentId, id, newTransfer(units), PERMIT));
  };
  const sent = () => scene.transactions.countDocuments({ nonce: { $gte: 0 } });

  it("is filled up to the float by one spend, and holds change for further payments", async () => {
    const agent = await scene.funded(2_000);
    await signedFor(agent, newId("txn"), 3n * CENT);
    expect(await centsAt(scene, pocketOf(agent))).to.equal(500);
    const before = await sent();
    for (let at = 0; at < 10; at += 1) await signedFor(agent, newId("txn"), 10n * CENT);
    expect(await sent(), "no transaction of ours for a purchase").to.equal(before);
    expect(await centsAt(scene, agent.wallet)).to.equal(1_500);
  });

  it("is topped up by what a purchase needs where that is more than the float", async () => {
    const agent = await scene.funded(2_000);
    const { nonce: _nonce, ...authorization } = await signedFor(agent, newId("txn"), 1_234n * CENT + 5n);
    expect(authorization.units).to.equal(1_234n * CENT + 5n);
    expect(await centsAt(scene, pocketOf(agent))).to.equal(1_235);
  });

  it("takes what the wallet has where that is less than the float, and no less than is needed", async () => {
    const agent = await scene.funded(120);
    expect(await fund(agent, newId("txn"), 100n * CENT)).to.deep.equal({ status: "funded" });
    expect(await centsAt(scene, pocketOf(agent))).to.equal(120);
    const outcome = await fund(agent, newId("txn"), 21n * CENT);
    expect(outcome).to.include({ status: "failed", code: "INSUFFICIENT_FUNDS" });
    expect(await centsAt(scene, agent.wallet)).to.equal(0);
  });

  it("a crowd in two processes gets one top-up, and no more is set aside than there is", async () => {
    const agent = await scene.funded(3_000);
    const ids = Array.from({ length: 12 }, () => newId("txn"));
    const outcomes = await Promise.all(
      ids.map((id, at) => fund(agent, id, 100n * CENT, at % 2 === 0 ? 0 : 1)),
    );
    expect(outcomes.every(({ status }) => status === "funded")).to.equal(true);
    const { agentId } = agent.profile;
    const all = await Promise.all(
      ids.map((id) => pockets().authorize(agentId, id, newTransfer(100n * CENT), PERMIT)),
    );
    for (const each of all) expect(await shop.settle(signed(each))).to.equal("settled");
    const spends = await scene.transactions.countDocuments({ _id: new RegExp(`spend/pocket/${agentId}/`) });
    expect(spends, "one for the first of the crowd, one for the rest").to.be.at.most(3);
    expect((await centsAt(scene, agent.wallet)) + (await centsAt(scene, pocketOf(agent)))).to.equal(1_800);
  });

  it("a balance read before another payment's settlement pays for no further payment", async () => {
    const agent = await scene.funded(2_000);
    const { agentId } = agent.profile;
    const [filling, first, second] = [newId("txn"), newId("txn"), newId("txn")];
    expect(await fund(agent, filling, 500n * CENT)).to.deep.equal({ status: "funded" });
    await pockets().release(agentId, filling);
    // Its two exchanges for the first payment pass; it is stopped before it sets aside for the second.
    const steps = new Steps(3);
    const stopped = scene.open({ db: steppedDb(scene.db, steps), floatCents: 500 }).wallets.pockets;
    expect(await stopped.fund(agent.profile, first, 500n * CENT, FUND_MS)).to.deep.equal({
      status: "funded",
    });
    const authorization = await signedFor(agent, first, 500n * CENT);
    const funding = stopped.fund(agent.profile, second, 100n * CENT, FUND_MS);
    await steps.stopped;
    expect(await shop.settle(authorization)).to.equal("settled");
    await pockets().release(agentId, first);
    steps.goOn();
    expect(await funding).to.deep.equal({ status: "funded" });
    expect(await centsAt(scene, pocketOf(agent))).to.equal(500);
  });

  it("a top-up whose process is killed anywhere is made once, by the next one that is asked", async () => {
    const agent = await scene.funded(2_000);
    const id = newId("txn");
    const records = scene.db.collection<Document & { _id: string }>(COLLECTIONS.pockets);
    const _id = `eip155:31337/${agent.profile.agentId}`;
    // Begun, and its process gone before anything was signed.
    const begun = { agentId: agent.profile.agentId, topUps: 1, topUp: { number: 1, cents: 400 } };
    await records.insertOne({ _id, reservations: [], releases: 0, closedAt: null, ...begun });
    expect(await fund(agent, id, 5n * CENT)).to.deep.equal({ status: "funded" });
    expect(await centsAt(scene, pocketOf(agent))).to.equal(400);
    // Its end was not recorded: the next one finds it paid and pays nothing.
    await records.updateOne({ _id }, { $set: { topUp: { number: 1, cents: 400 } } });
    expect(await fund(agent, newId("txn"), 600n * CENT, 1)).to.deep.equal({ status: "funded" });
    expect(await centsAt(scene, pocketOf(agent))).to.equal(605);
    expect(await centsAt(scene, agent.wallet)).to.equal(1_395);
  });

  it("what the chain has decided is no longer set aside, though nobody has given it back", async () => {
    const agent = await scene.funded(3_000);
    for (let at = 0; at < 5; at += 1)
      expect(await shop.settle(await signedFor(agent, newId("txn"), 100n * CENT))).to.equal("settled");
    expect(await centsAt(scene, pocketOf(agent))).to.equal(0);
    expect(await fund(agent, newId("txn"), 100n * CENT)).to.deep.equal({ status: "funded" });
    expect(await centsAt(scene, pocketOf(agent))).to.equal(500);
  });

  it("a settlement that nobody saw, many blocks ago, is found, and all cents agree", async () => {
    const agent = await scene.funded(1_000);
    const authorization = await signedFor(agent, newId("txn"), 100n * CENT);
    expect(await shop.settle(authorization)).to.equal("settled");
    for (let made = 0; made < UNSEEN_BLOCKS; made += MINED_AT_ONCE)
      await anvil.call("anvil_mine", [numberToHex(Math.min(MINED_AT_ONCE, UNSEEN_BLOCKS - made))]);
    const { pockets: later } = scene.open({ floatCents: 500 }).wallets;
    const [event, ...others] = await pocketEvents(scene.chain, [pocketOf(agent)], scene.config.token);
    expect(others).to.deep.equal([]);
    const used = { kind: "used", txHash: event?.hash };
    expect(await later.stateOf(authorization)).to.deep.equal(used);
    expect(await later.stateOf(authorization, true), "where the shop says so").to.deep.equal(used);
    expect(event).to.include({ nonce: authorization.nonce, units: 100n * CENT, to: authorization.to });
    expect((await centsAt(scene, agent.wallet)) + (await centsAt(scene, pocketOf(agent)))).to.equal(900);
    expect(await later.fund(agent.profile, newId("txn"), 500n * CENT, FUND_MS)).to.deep.equal({
      status: "funded",
    });
    expect(await centsAt(scene, pocketOf(agent))).to.equal(500);
  });

  it("signs one transfer for a payment, whatever it is asked, until that one is dead", async () => {
    const agent = await scene.funded(1_000);
    const id = newId("txn");
    await fund(agent, id, CENT);
    const { agentId } = agent.profile;
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_none, at) =>
        instances[at % 2 === 0 ? 0 : 1].wallets.pockets.authorize(agentId, id, newTransfer(CENT), PERMIT),
      ),
    );
    const [first, ...others] = answers.map(signed);
    for (const other of others) expect(other).to.deep.equal(first);
    expect(await pockets().authorizationsOf(id)).to.have.length(1);
    expect(await shop.settle(one(first))).to.equal("settled");
    expect(await pockets().stateOf(one(first))).to.have.property("kind", "used");
  });

  it("a fence above the permit keeps a transfer from being signed; a newer permit passes it", async () => {
    const agent = await scene.funded(1_000);
    const { agentId } = agent.profile;
    const id = newId("txn");
    await fund(agent, id, CENT);
    await pockets().fence([{ transactionId: id, fence: 5 }]);
    const transfer = newTransfer(CENT);
    expect(await pockets().authorize(agentId, id, transfer, 4)).to.deep.equal({ kind: "fenced" });
    expect(await pockets().authorizationsOf(id)).to.deep.equal([]);
    expect(await pockets().authorize(agentId, id, transfer, 5)).to.have.property("kind", "signed");
    await pockets().fence([{ transactionId: id, fence: 9 }]);
    expect(await pockets().authorizationsOf(id), "what is signed stays").to.have.length(1);
  });

  it("signs nothing without money set aside, nor for longer than 300 seconds", async () => {
    const agent = await scene.funded(1_000);
    const { agentId } = agent.profile;
    const id = newId("txn");
    const ask = (units: bigint, validBefore = nowSeconds() + 120) =>
      pockets().authorize(agentId, id, newTransfer(units, { validBefore }), PERMIT);
    expect(await ask(CENT)).to.deep.equal({ kind: "unfunded" });
    await fund(agent, id, CENT);
    expect(await ask(CENT + 1n)).to.deep.equal({ kind: "unfunded" });
    expect(await ask(CENT, nowSeconds() + 400)).to.deep.equal({ kind: "bad_times" });
    // The flag by which OpenZeppelin's token takes a time as a number of blocks.
    expect(await ask(CENT, 2 ** 47 + 10)).to.deep.equal({ kind: "bad_times" });
    expect(await ask(CENT, nowSeconds() - 1)).to.deep.equal({ kind: "bad_times" });
    expect(await pockets().authorizationsOf(id)).to.deep.equal([]);
  });

  it("does not take for its own an authorization that was written into the database", async () => {
    const agent = await scene.funded(1_000);
    const id = newId("txn");
    const authorization = await signedFor(agent, id, CENT);
    const stored = scene.db.collection<{ _id: string }>(COLLECTIONS.pocketAuthorizations);
    await stored.updateOne({ _id: `eip155:31337/${id}/1` }, { $set: { to: shop.address } });
    const read = await pockets()
      .authorizationsOf(id)
      .catch((error: unknown) => String(error));
    expect(read).to.include("is not as the service wrote it");
    expect(authorization.to).not.to.equal(shop.address);
  });

  it("its signature is the pocket's under the token's own domain", async () => {
    const agent = await scene.funded(1_000);
    const { from, nonce, signature, to, units, validAfter, validBefore } = await signedFor(
      agent,
      newId("txn"),
      7n,
    );
    const fields = ["address from", "address to", "uint256 value", "uint256 validAfter"];
    const types = [...fields, "uint256 validBefore", "bytes32 nonce"].map((field) => {
      const [type = "", name = ""] = field.split(" ");
      return { name, type };
    });
    const signer = await recoverTypedDataAddress({
      domain: {
        name: "Sandbox USD",
        version: "1",
        chainId: scene.config.chainId,
        verifyingContract: scene.config.token,
      },
      types: { TransferWithAuthorization: types },
      primaryType: "TransferWithAuthorization",
      message: {
        from,
        to,
        value: units,
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
        nonce,
      },
      signature,
    });
    expect(signer).to.equal(pocketOf(agent));
    expect(signature).to.have.length(2 + 65 * 2);
  });

  it("the wallet's owner takes its money without the service", async () => {
    const agent = await scene.funded(1_000);
    const bought = await signedFor(agent, newId("txn"), CENT);
    expect(await shop.settle(bought)).to.equal("settled");
    const owner = await openFacilitator(scene, anvil, OWNER_KEY);
    const held = await unitsAt(scene, pocketOf(agent));
    expect(await shop.pull(pocketOf(agent), held), "nobody else does").to.equal("reverted");
    expect(await owner.pull(pocketOf(agent), held)).to.equal("settled");
    expect((await unitsAt(scene, owner.address)) >= held).to.equal(true);
    expect(await unitsAt(scene, pocketOf(agent))).to.equal(0n);
    const events = await pocketEvents(scene.chain, [pocketOf(agent)], scene.config.token);
    expect(events.map(({ by, nonce, to, units }) => [nonce, to, units, by])).to.deep.equal([
      [bought.nonce, bought.to, CENT, pocketOf(agent)],
      [null, owner.address, held, owner.address],
    ]);
  });

  it("a top-up keeps to the wallet's limit on the chain, which is the policy and the float", async () => {
    const agent = await scene.funded(5_000, { ...POLICY, budgetCents: 1_000 });
    await signedFor(agent, newId("txn"), 900n * CENT);
    const read = { address: agent.wallet, abi: agentWalletAbi, functionName: "limitOf" } as const;
    const [cap] = await scene.chain.readContract({ ...read, args: [scene.config.token] });
    const { capCents } = mirroredLimit({ ...POLICY, budgetCents: 1_000 });
    expect(cap).to.equal(BigInt(capCents + 500) * CENT);
    const outcome = await fund(agent, newId("txn"), 700n * CENT);
    expect(outcome).to.include({ status: "failed", code: "RAIL_UNAVAILABLE" });
    expect(await centsAt(scene, agent.wallet)).to.equal(4_100);
    const raised = scene.open({ floatCents: 1_500 }).wallets.pockets;
    const again = await raised.fund(agent.profile, newId("txn"), 700n * CENT, FUND_MS);
    expect(again, "by a process with a larger float").to.deep.equal({ status: "funded" });
  });

  it("a wallet that has lost its limit gets it again before a top-up is refused for it", async () => {
    const agent = await scene.funded(5_000);
    await signedFor(agent, newId("txn"), 400n * CENT);
    const { token } = scene.config;
    const account = privateKeyToAccount(OWNER_KEY);
    const owner = createWalletClient({ account, transport: http(scene.config.rpcUrl) });
    const abi = agentWalletAbi;
    const calls = [
      encodeFunctionData({ abi, functionName: "setSpender", args: [account.address] }),
      encodeFunctionData({ abi, functionName: "setLimit", args: [token, 0n, 0n] }),
      encodeFunctionData({ abi, functionName: "setSpender", args: [scene.signer.address] }),
    ];
    for (const data of calls) {
      const hash = await owner.sendTransaction({ to: agent.wallet, data, chain: null });
      expect((await mined(scene.chain, hash)).status).to.equal("success");
    }
    expect(await fund(agent, newId("txn"), 300n * CENT)).to.deep.equal({ status: "funded" });
  });

  it("its money shows in the agent's balance, and goes back to the wallet when the agent ends", async () => {
    const agent = await scene.funded(1_000);
    const { profile } = agent;
    const out = await signedFor(agent, newId("txn"), 10n * CENT);
    const { rail } = instances[0].wallets;
    expect(await rail.balance(profile)).to.deep.equal({ kind: "cents", cents: 1_000, pocketCents: 500 });
    for (let at = 0; at < 10 && (await rail.detach(profile)) === "pending"; at += 1) continue;
    expect(await rail.detach(profile)).to.equal("detached");
    expect(await centsAt(scene, agent.wallet)).to.equal(1_000);
    expect(await unitsAt(scene, pocketOf(agent))).to.equal(0n);
    expect(await shop.settle(out), "what is out finds no money").to.equal("reverted");
    expect(await fund(agent, newId("txn"), CENT)).to.include({ status: "failed" });
    const late = await pockets().authorize(profile.agentId, out.transactionId, newTransfer(CENT), PERMIT);
    expect(late, "what was signed before is answered, nothing new").to.deep.equal({
      kind: "signed",
      authorization: out,
    });
  });

  it("a further transfer is signed only once a final block says that the first is dead", async () => {
    let clockMs = 0;
    const clock = (): Date => new Date(Date.now() + clockMs);
    const process = scene.open({ clock, confirmations: 3, floatCents: 500 }).wallets.pockets;
    const agent = await scene.funded(1_000);
    const { agentId } = agent.profile;
    const id = newId("txn");
    await fund(agent, id, CENT);
    const ask = async (): Promise<Authorized> => {
      const validBefore = Math.floor(clock().getTime() / 1_000) + 100;
      return process.authorize(agentId, id, newTransfer(CENT, { validBefore }), PERMIT);
    };
    const first = signed(await ask());
    clockMs = 200_000;
    expect(signed(await ask()), "the chain's time is what counts").to.deep.equal(first);
    await anvil.call("evm_increaseTime", [200]);
    await anvil.call("anvil_mine", ["0x1"]);
    expect(signed(await ask()), "that block is not final").to.deep.equal(first);
    await anvil.call("anvil_mine", ["0x2"]);
    expect(await process.stateOf(first)).to.deep.equal({ kind: "dead" });
    const second = signed(await ask());
    expect([second.number, second.nonce === first.nonce]).to.deep.equal([2, false]);
    expect(await shop.settle(first)).to.equal("reverted");
  });
});

const one = <T>(found: T | undefined): T => {
  if (found === undefined) throw new Error("there is none");
  return found;
};

function signed(answer: Authorized): Authorization {
  if (answer.kind !== "signed") throw new Error(`not signed: ${answer.kind}`);
  return answer.authorization;
}
