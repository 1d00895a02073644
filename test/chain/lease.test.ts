import { expect } from "chai";
import { LeaseExpired } from "../../src/payments/sending.ts";
import type { RequestLease } from "../../src/payments/ports.ts";
import { attemptsPrefix } from "../../src/rails/wallet/attempts.ts";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import {
  ended,
  type Instance,
  newPayment,
  openScene,
  POLICY,
  type Scene,
  type TestAgent,
} from "./support.ts";

class NoLedger extends Error {
  override readonly name = "NoLedger";
}

const LET_GO: RequestLease = () => Promise.resolve("send");

/** What a ledger says to an agent that is stopped while its payment waits for the chain. */
const STOPPED: readonly [string, RequestLease, new (...words: never[]) => Error][] = [
  ["that is paused", () => Promise.resolve("wait"), LeaseExpired],
  ["that is paused and has no key", () => Promise.resolve("withdraw"), LeaseExpired],
  ["whose ledger does not answer", () => Promise.reject(new NoLedger()), NoLedger],
];

/** A slow chain takes seconds to say what a payment needs to know; a lease to send is good for one. */
describe("a lease to send a payment, once the chain has said what it was asked", () => {
  let scene: Scene;
  let process: Instance;
  before(async () => {
    scene = await openScene();
    process = scene.open();
  });
  after(() => scene.close());

  const send = ({ profile }: TestAgent, payment: Payment, lease: RequestLease) =>
    process.wallets.rail.send(profile, payment, lease).catch((error: unknown) => error);
  const signedFor = async ({ request }: Payment) =>
    (await process.outbox.under(attemptsPrefix(request.transactionId))).map(({ kind }) => kind);

  for (const [stopped, lease, expected] of STOPPED) {
    it(`an agent ${stopped}: nothing is signed, others pay, and it does later`, async () => {
      const [agent, other] = [await scene.funded(1_000), await scene.funded(1_000)];
      const [payment, beside, behind] = [newPayment(400), newPayment(300), newPayment(200)];
      const [said, paid] = await Promise.all([send(agent, payment, lease), send(other, beside, LET_GO)]);
      expect(said).to.be.instanceOf(expected);
      expect(paid).to.include({ status: "settled" });
      // Recorded behind whatever was recorded of the others.
      expect(await send(other, behind, LET_GO)).to.include({ status: "settled" });
      expect(await signedFor(payment)).to.deep.equal([]);
      expect(await send(agent, payment, LET_GO)).to.include({ status: "settled" });
      const { spent } = await scene.audit([agent, other], [payment, beside, behind]);
      expect([...spent.values()].map(({ length }) => length)).to.deep.equal([1, 1, 1]);
    });
  }

  it("what its limit has undone is not signed again, nor the limit raised, without a lease", async () => {
    const agent = await scene.agent({ ...POLICY, budgetCents: 100 });
    await scene.fund(agent, 1_000);
    const payment = newPayment(400);
    // For the first attempt, and before the chain is asked why it was undone; then the agent is paused.
    let asked = 0;
    const lease: RequestLease = () => Promise.resolve((asked += 1) <= 2 ? "send" : "wait");
    expect(await send(agent, payment, lease)).to.include({ status: "pending" });
    expect(asked).to.equal(3);
    expect(await signedFor(payment)).to.deep.equal(["transaction"]);
    expect(await process.outbox.under(`limit/${agent.wallet}/`)).to.have.length(1);
    expect(await ended(process, agent, payment)).to.include({ status: "settled" });
  });
});
