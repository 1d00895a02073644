import { expect } from "chai";
import type { Document } from "mongodb";
import { challengeRailOf, type ChallengeRail } from "../../src/rails/challenge/rail.ts";
import { Orders } from "../../src/rails/challenge/orders.ts";
import { Shops } from "../../src/rails/challenge/shops.ts";
import type { Authorization } from "../../src/rails/pocket/pocket.ts";
import { nonceFor } from "../../src/rails/pocket/signing.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import {
  type Instance,
  newPayment,
  openScene,
  PERMIT,
  type Scene,
  type TestAgent,
} from "../chain/support.ts";
import { CENT, FUND_MS, newTransfer, nowSeconds, openFacilitator } from "./support.ts";

const clock = (): Date => new Date();
const idOf = (transactionId: string): string => `eip155:31337/${transactionId}/1`;

async function expectUnknown(work: Promise<unknown>): Promise<void> {
  expect(await work.then(JSON.stringify, String)).to.include("is not as the service wrote it");
}

/** Changes by an intruder who can write to MongoDB and has no key of the service. */
describe("a purchase's record that something else than the service has changed", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let instance: Instance;
  let shop: Awaited<ReturnType<typeof openFacilitator>>;
  let agent: TestAgent;
  let orders: Orders;
  let rail: ChallengeRail;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    instance = scene.open({ floatCents: 500 });
    shop = await openFacilitator(scene, anvil);
    agent = await scene.funded(10_000);
    const sealer = new Sealer(MasterKey.parse("a-master-key-for-tests-long-enough-to-be-one", "a test"));
    orders = new Orders(scene.db, sealer, clock, TEST_ACCESS_PROOFS);
    rail = challengeRailOf(instance.wallets, { orders, shops: new Shops({ allowCidrs: [] }), clock });
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const authorizations = () => scene.db.collection<{ _id: string }>(COLLECTIONS.pocketAuthorizations);
  const purchases = () => scene.db.collection<{ _id: string }>(COLLECTIONS.purchases);

  async function signed(transactionId: string, seconds = 120): Promise<Authorization> {
    const { pockets } = instance.wallets;
    const { agentId } = agent.profile;
    await pockets.fund(agent.profile, transactionId, CENT, FUND_MS);
    const nonce = nonceFor(`${transactionId}/1`);
    const transfer = newTransfer(CENT, { nonce, validBefore: nowSeconds() + seconds });
    const authorized = await pockets.authorize(agentId, transactionId, transfer, PERMIT);
    if (authorized.kind !== "signed") throw new Error(`it is ${authorized.kind}`);
    return authorized.authorization;
  }

  it("another purchase's dead authorization does not end a purchase that was signed", async () => {
    const [taken, open] = [newPayment(1), newPayment(1)];
    await signed(taken.request.transactionId, 3);
    await signed(open.request.transactionId);
    const _id = idOf(taken.request.transactionId);
    const { _id: _other, ...authorization } = Object(await authorizations().findOne({ _id })) as Document;
    await anvil.call("evm_increaseTime", [10]);
    await anvil.call("evm_mine");
    expect(await rail.query(taken)).to.include({ status: "failed", code: "NOT_CHARGED" });
    await authorizations().deleteOne({ _id });
    await authorizations().replaceOne({ _id: idOf(open.request.transactionId) }, authorization);
    await expectUnknown(rail.query(open));
    await expectUnknown(rail.withhold(agent.profile, open));
  });

  it("an authorization said to be signed in another block, or by another agent, is not believed", async () => {
    for (const $set of [{ signedAtBlock: 1_000_000 }, { agentId: (await scene.agent()).profile.agentId }]) {
      const payment = newPayment(1);
      await signed(payment.request.transactionId);
      await authorizations().updateOne({ _id: idOf(payment.request.transactionId) }, { $set });
      await expectUnknown(rail.query(payment));
    }
  });

  it("a refusal that was written into a purchase is none", async () => {
    const [payment, other] = [newPayment(1), newPayment(1)];
    await rail.withhold(agent.profile, other);
    const genuine = Object(await purchases().findOne({ _id: other.request.transactionId }));
    const { agentId } = agent.profile;
    for (const { refusal, refusalProof } of [genuine, { refusal: { code: "WITHHELD" } }]) {
      const $set = { agentId, refusal, ...(refusalProof === undefined ? {} : { refusalProof }) };
      await purchases().updateOne({ _id: payment.request.transactionId }, { $set }, { upsert: true });
      expect(await rail.query(payment)).to.equal(null);
    }
    expect(await rail.query(other)).to.deep.equal({ status: "withheld" });
  });

  it("a purchase that its pocket has paid is not withdrawn, though its records were removed", async () => {
    const payment = newPayment(1);
    const { transactionId } = payment.request;
    expect(await shop.settle(await signed(transactionId))).to.equal("settled");
    await authorizations().deleteOne({ _id: idOf(transactionId) });
    expect(await rail.withhold(agent.profile, payment)).to.deep.equal({ status: "pending" });
    expect(await rail.query(payment)).to.equal(null);
  });

  it("a shop that requires a nonce of an earlier purchase holds no money with it", async () => {
    const [earlier, later] = [newPayment(1), newPayment(1)];
    const authorization = await signed(earlier.request.transactionId);
    expect(await shop.settle(authorization)).to.equal("settled");
    const request = { url: "https://shop.example/", method: "GET", headers: {}, body: null };
    const offer = { frame: Object(), nonce: authorization.nonce, timeoutSeconds: 60, units: "10000" };
    await orders.insert(agent.profile.agentId, later.request.transactionId, { request, offer }, clock());
    expect(await rail.withhold(agent.profile, later)).to.deep.equal({ status: "withheld" });
  });
});
