import { expect } from "chai";
import type { Document } from "mongodb";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import { walletReconciliation } from "../../src/rails/wallet/reconcile.ts";
import { AccessProofs } from "../../src/secrets/access-proofs.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { type OwnAnvil, startOwnAnvil } from "../support/own-anvil.ts";
import { ended, type Instance, newPayment, openScene, type Scene, type TestAgent } from "./support.ts";

const REFUSED = {
  nonce: null,
  hash: null,
  raw: null,
  raised: [],
  amountCents: 0,
  refusal: { code: "INSUFFICIENT_FUNDS", reason: "The wallet does not hold enough for this payment." },
};

const idOf = ({ request }: Payment): string => `eip155:31337/spend/${request.transactionId}/1`;

/** Changes by an intruder who can write to MongoDB and has no key of the service. */
describe("a wallet's record that something else than the service has changed", () => {
  let anvil: OwnAnvil;
  let scene: Scene;
  let instance: Instance;
  let agent: TestAgent;
  before(async () => {
    anvil = await startOwnAnvil();
    scene = await openScene(anvil.url);
    instance = scene.open();
    agent = await scene.funded(100_000);
  });
  after(async () => {
    await scene.close();
    await anvil.kill();
  });

  const attempt = async (payment: Payment): Promise<Document> =>
    Object(await scene.transactions.findOne({ _id: idOf(payment) }));
  const query = (payment: Payment) => scene.open().wallets.rail.query(payment);
  const withhold = (payment: Payment) => scene.open().wallets.rail.withhold(agent.profile, payment);
  const forget = async (payment: Payment): Promise<void> => {
    expect((await scene.transactions.deleteOne({ _id: idOf(payment) })).deletedCount).to.equal(1);
  };

  async function paid(): Promise<Payment> {
    const payment = newPayment(100);
    await instance.wallets.rail.send(agent.profile, payment);
    expect(await ended(instance, agent, payment)).to.include({ status: "settled" });
    return payment;
  }

  /** A payment that its wallet does not cover, so that the service has recorded a refusal. */
  async function refused(): Promise<Payment> {
    const payment = newPayment(100_000_000);
    expect(await instance.wallets.rail.send(agent.profile, payment)).to.include({ status: "failed" });
    return payment;
  }

  /** Nobody knows any longer what became of the payment, and nothing more is signed for it. */
  async function expectUnknown(payment: Payment): Promise<void> {
    const before = await scene.transactions.countDocuments();
    const { rail } = scene.open().wallets;
    const { profile } = agent;
    expect(await rail.query(payment)).to.include({ status: "pending" });
    expect(await rail.send(profile, payment)).to.include({ status: "pending" });
    expect(await rail.settle(profile, payment, 0)).to.include({ status: "pending" });
    expect(await rail.withhold(profile, payment)).to.include({ status: "pending" });
    expect(await scene.transactions.countDocuments()).to.equal(before);
  }

  const changes: Readonly<Record<string, (payment: Payment) => Promise<Document>>> = {
    "a refusal": () => Promise.resolve(REFUSED),
    "another transaction's hash": async () => ({ hash: Object(await attempt(await paid()))["hash"] }),
    "a replacement": () =>
      Promise.resolve({ replacedBy: { hash: `0x${"1".repeat(64)}`, blockNumber: 1, at: new Date() } }),
    "another wallet": async () => ({ wallet: (await scene.agent()).wallet }),
    "another payment's genuine refusal": async () => {
      const { _id, ...refusal } = await attempt(await refused());
      return refusal;
    },
    "another payment's genuine transaction": async () => {
      const other = await paid();
      const { _id, ...transaction } = await attempt(other);
      await forget(other);
      return transaction;
    },
    "a refusal of another service": async () => {
      const proofs = new AccessProofs(
        MasterKey.parse("another-master-key-of-somebody-else", "a test").macs("access-proofs"),
      );
      return { ...REFUSED, proof: proofs.make("chainTransaction", { _id: "", ...REFUSED }) };
    },
  };
  for (const [what, change] of Object.entries(changes))
    it(`${what} in a paid record ends no payment, and is named`, async () => {
      const payment = await paid();
      const $set = await change(payment);
      await scene.transactions.updateOne({ _id: idOf(payment) }, { $set });
      await expectUnknown(payment);
      const found = await walletReconciliation.findings({
        accessProofs: TEST_ACCESS_PROOFS,
        cardConnections: null,
        chainRpcUrl: anvil.url,
        collections: collectionsOf(scene.db),
        db: scene.db,
        env: { EVM_TOKEN_ADDRESS: scene.config.token },
        organizationId: agent.profile.organizationId,
        paymentIds: null,
        payments: [],
        pocketKeys: null,
      });
      expect(found).to.deep.include({
        id: payment.request.transactionId,
        what: `the record ${idOf(payment)}`,
        expected: "as the service wrote it",
        found: "changed since",
        mayBeInFlight: false,
      });
    });

  it("a payment that the wallet has made is not withdrawn, though its record was removed", async () => {
    const payment = await paid();
    await forget(payment);
    expect(await withhold(payment)).to.deep.equal({ status: "pending" });
    expect(await query(payment)).to.deep.equal({ status: "pending" });
  });

  it("a payment on its way is not withdrawn, though its record was removed", async () => {
    await anvil.call("evm_setAutomine", [false]);
    const payment = newPayment(100);
    expect(await instance.wallets.rail.send(agent.profile, payment)).to.include({ status: "pending" });
    await forget(payment);
    expect(await withhold(payment)).to.deep.equal({ status: "pending" });
    await anvil.call("evm_setAutomine", [true]);
    await anvil.call("evm_mine");
    expect(await query(payment)).to.deep.equal({ status: "pending" });
  });

  it("a payment whose transaction the ledger knows is not withdrawn without its record", async () => {
    const payment = { ...newPayment(100), onChainTxHash: `0x${"2".repeat(64)}` };
    expect(await withhold(payment)).to.deep.equal({ status: "pending" });
  });

  it("a payment that was never signed is withdrawn, also from a wallet that is not deployed", async () => {
    expect(await withhold(newPayment(100))).to.deep.equal({ status: "withheld" });
    const other = await scene.agent();
    const { rail } = scene.open().wallets;
    expect(await rail.withhold(other.profile, newPayment(100))).to.deep.equal({ status: "withheld" });
  });

  it("a changed record does not stop the payments of others, nor the transactions after it", async () => {
    await anvil.call("evm_setAutomine", [false]);
    const [changed, other] = [newPayment(100), newPayment(100)];
    for (const payment of [changed, other]) await instance.wallets.rail.send(agent.profile, payment);
    await scene.transactions.updateOne({ _id: idOf(changed) }, { $set: { amountCents: 1 } });
    await anvil.call("anvil_dropAllTransactions");
    await anvil.call("evm_setAutomine", [true]);
    const keeper = scene.open({ clock: () => new Date(Date.now() + 60_000) });
    await keeper.wallets.start();
    expect(await ended(instance, agent, other)).to.include({ status: "settled" });
    await keeper.wallets.stop();
    await expectUnknown(changed);
  });

  it("an agent's record with another wallet pays nothing and ends no payment", async () => {
    const payment = await paid();
    const { wallets } = scene.open({ isAgentGenuine: () => false });
    const { length } = await scene.nonces();
    for (const call of [
      () => wallets.rail.send(agent.profile, newPayment(100)),
      () => wallets.rail.withhold(agent.profile, payment),
    ])
      expect(await call().then(String, String)).to.include("not as the service wrote it");
    expect(await scene.nonces()).to.have.length(length);
  });
});
