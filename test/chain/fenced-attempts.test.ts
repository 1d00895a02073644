import { expect } from "chai";
import type { RequestPermission } from "../../src/payments/ports.ts";
import { attemptPurpose, attemptsPrefix } from "../../src/rails/wallet/attempts.ts";
import { ended, type Instance, newPayment, openScene, POLICY, type Scene } from "./support.ts";

const permitted =
  (permit: number): RequestPermission =>
  () =>
    Promise.resolve({ kind: "send", permit });

describe("a payment that its wallet's limit undoes, of an agent that is stopped meanwhile", () => {
  let scene: Scene;
  let instance: Instance;
  before(async () => {
    scene = await openScene();
    instance = scene.open();
  });
  after(() => scene.close());

  it("is not signed again, nor is the limit raised, under an earlier permit; resumed it is paid", async () => {
    const agent = await scene.agent({ ...POLICY, budgetCents: 100 });
    await scene.fund(agent, 1_000);
    const payment = newPayment(400);
    const { transactionId } = payment.request;
    const { outbox, rail } = instance;
    const settle = (permit: number) => rail.settle(agent.profile, payment, 30_000, permitted(permit));
    const expectOneAttempt = async () => {
      const attempts = await outbox.under(attemptsPrefix(transactionId));
      expect(attempts.map(({ kind }) => kind)).to.deep.equal(["transaction"]);
      expect(await outbox.under(`limit/${agent.wallet}/`), "limits").to.have.length(1);
    };
    // The stop comes once the first attempt is recorded.
    await outbox.fence([{ purpose: attemptPurpose({ transactionId, number: 2 }), fence: 6 }]);
    expect(await rail.send(agent.profile, payment, 5)).to.include({ status: "pending" });
    await expectOneAttempt();
    // Stopped again: the fence is laid behind the attempt that is there.
    await rail.fence([{ transactionId, fence: 8 }]);
    expect(await settle(7)).to.include({ status: "pending" });
    await expectOneAttempt();
    expect(await settle(8)).to.include({ status: "settled" });
    expect(await ended(instance, agent, payment)).to.include({ status: "settled" });
    expect(await scene.balanceCents(agent.wallet)).to.equal(600);
  });
});
