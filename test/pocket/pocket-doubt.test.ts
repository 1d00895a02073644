import { expect } from "chai";
import { MongoClient } from "mongodb";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { type MongoProxy, startMongoProxy } from "../chain/mongo-proxy.ts";
import { type Instance, newId, openScene, PERMIT, type Scene } from "../chain/support.ts";
import { CENT, centsAt, FUND_MS, newTransfer } from "./support.ts";

/** Asks again for as long as there is no answer, as a payment's sweep does. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  for (let call = 0; call < 20; call += 1) {
    const answer = await ask().catch(() => null);
    if (answer !== null) return answer;
  }
  throw new Error("never answered");
}

describe("a pocket whose database answers are lost", () => {
  let scene: Scene;
  let proxy: MongoProxy;
  let mongo: MongoClient;
  let doubtful: Instance;
  let sure: Instance;
  before(async () => {
    scene = await openScene();
    proxy = await startMongoProxy(process.env["TEST_MONGODB_URI"] ?? "", scene.db.databaseName);
    mongo = await new MongoClient(proxy.uri, { serverSelectionTimeoutMS: 2_000 }).connect();
    doubtful = scene.open({ db: mongo.db(scene.db.databaseName), floatCents: 500 });
    sure = scene.open({ floatCents: 500 });
  });
  after(async () => {
    await mongo.close();
    await proxy.close();
    await scene.close();
  });

  // The driver repeats a write once by itself; four breaks reach us.
  for (const name of [COLLECTIONS.pockets, COLLECTIONS.chainTransactions, COLLECTIONS.pocketAuthorizations]) {
    it(`at writes of ${name}: one top-up is made and one transfer signed`, async () => {
      const { pockets } = doubtful.wallets;
      const agent = await scene.funded(2_000);
      const { agentId } = agent.profile;
      const id = newId("txn");
      const before = proxy.broken();
      proxy.breakAt(name, 4);
      const fund = ({ wallets }: Instance) =>
        answered(() => wallets.pockets.fund(agent.profile, id, 20n * CENT, FUND_MS));
      const funded = await Promise.all([fund(doubtful), fund(sure)]);
      expect(funded.map(({ status }) => status)).to.deep.equal(["funded", "funded"]);
      const authorize = ({ wallets }: Instance) =>
        answered(() => wallets.pockets.authorize(agentId, id, newTransfer(20n * CENT), PERMIT));
      const [one, other] = await Promise.all([authorize(doubtful), authorize(sure)]);
      proxy.breakAt("", 0);
      expect(proxy.broken()).to.be.greaterThan(before);
      expect(one).to.have.property("kind", "signed");
      expect(other).to.deep.equal(one);
      expect(await pockets.authorizationsOf(id)).to.have.length(1);
      expect(await centsAt(scene, agent.wallet)).to.equal(1_500);
      expect(await centsAt(scene, pockets.addressOf(agentId))).to.equal(500);
    });
  }
});
