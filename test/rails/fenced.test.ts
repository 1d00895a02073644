import { expect } from "chai";
import { RAILS, type Payment } from "../../src/domain/ledger/payment.ts";
import type { SendOutcome } from "../../src/payments/ports.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";
import { RAIL_SCENES, type RailScene } from "./scenes.ts";
import { Steps } from "./steps.ts";

const [BEFORE, FENCE, AFTER] = [5, 6, 7];
/** A process takes fewer steps than this to send a payment. */
const STEPS_MAX = 200;

for (const name of [...RAILS, "purchases"] as const) {
  /** What every rail has to pass. */
  describe(`the ${name} rail, of an agent that is stopped`, function () {
    this.timeout(300_000);
    let scene: RailScene;
    before(async () => {
      scene = await RAIL_SCENES[name]();
    });
    after(() => scene.close());

    const fence = ({ request: { transactionId } }: Payment, at = FENCE) =>
      scene.rail.fence([{ transactionId, fence: at }]);
    const send = (payment: Payment, permit: number) => scene.rail.send(scene.profile, payment, permit);
    const withhold = (payment: Payment) => scene.rail.withhold(scene.profile, payment);

    /** A payment of a process that is stopped before its n-th step while `stop` goes on; null: it has fewer steps. */
    async function stoppedAt(
      step: number,
      stop: (payment: Payment) => Promise<unknown>,
    ): Promise<{
      readonly payment: Payment;
      readonly isMade: boolean;
      readonly outcome: SendOutcome;
    } | null> {
      const steps = new Steps(step);
      const process = await scene.stepped(steps);
      const payment = scene.payment();
      const sending = process.rail.send(scene.profile, payment, BEFORE);
      const isStopped = await Promise.race([steps.stopped.then(() => true), sending.then(() => false)]);
      if (isStopped) await stop(payment);
      const isMade = (await scene.timesMade(payment)) > 0;
      steps.goOn();
      const outcome = await sending;
      await process.close();
      return isStopped ? { payment, isMade, outcome } : null;
    }

    /** Repeats it for each step; outside the soak for every fifth of the many steps on a chain. */
    async function stoppedAtEach(
      stop: (payment: Payment) => Promise<unknown>,
      check: (stopped: NonNullable<Awaited<ReturnType<typeof stoppedAt>>>, what: string) => Promise<void>,
    ): Promise<void> {
      const every = name === "card" ? 1 : shortOrSoak(5, 1);
      let [fenced, made] = [0, 0];
      for (let step = 1 + (seed % every); ; step += every) {
        expect(step).to.be.below(STEPS_MAX);
        const stopped = await stoppedAt(step, stop);
        if (stopped === null) break;
        await check(stopped, `stopped before step ${String(step)}`);
        if (stopped.isMade) made += 1;
        else fenced += 1;
      }
      expect([fenced > 0, made > 0], "it was stopped before and after its payment was made").to.deep.equal([
        true,
        true,
      ]);
    }

    it("a process stopped between any two steps makes no payment after the stop's answer", () =>
      stoppedAtEach(fence, async ({ isMade, outcome, payment }, what) => {
        expect(await scene.timesMade(payment), what).to.equal(isMade ? 1 : 0);
        expect(outcome.status === "fenced", what).to.equal(!isMade);
        expect((await scene.rail.query(payment)) === null, what).to.equal(!isMade);
        // Resumed: once, whichever process sends it.
        const sent = await Promise.all([send(payment, AFTER), send(payment, AFTER)]);
        expect(
          sent.map(({ status }) => status),
          what,
        ).to.deep.equal(["settled", "settled"]);
        expect(await scene.timesMade(payment), what).to.equal(1);
      }));

    it("a payment that is withdrawn after its fence is never made, by whatever permit", () =>
      stoppedAtEach(
        async (payment) => {
          await fence(payment);
          await withhold(payment);
        },
        async ({ isMade, payment }, what) => {
          const status = isMade ? "settled" : "withheld";
          expect((await send(payment, AFTER)).status, what).to.equal(status);
          await fence(payment, AFTER + 1);
          expect((await withhold(payment)).status, what).to.equal(status);
          expect(await scene.timesMade(payment), what).to.equal(isMade ? 1 : 0);
        },
      ));

    it("a fence that comes late, or again, is never lowered and undoes nothing", async () => {
      const payment = scene.payment();
      await Promise.all([fence(payment, 9), fence(payment, 3), fence(payment, 9), fence(payment, 1)]);
      expect((await send(payment, 8)).status).to.equal("fenced");
      expect(await scene.rail.query(payment)).to.equal(null);
      expect((await send(payment, 9)).status).to.equal("settled");
      await fence(payment, 10);
      expect((await scene.rail.query(payment))?.status).to.equal("settled");
      expect(await scene.timesMade(payment)).to.equal(1);
    });

    it("many payments are fenced in one call, and beside them others are made", async () => {
      const half = shortOrSoak(5, 20);
      const payments = Array.from({ length: 2 * half }, () => scene.payment());
      const [stopped, others] = [payments.slice(0, half), payments.slice(half)];
      await scene.rail.fence(
        stopped.map(({ request: { transactionId } }) => ({ transactionId, fence: FENCE })),
      );
      const sent = await Promise.all(payments.map((payment) => send(payment, BEFORE)));
      expect(sent.slice(0, half).every(({ status }) => status === "fenced")).to.equal(true);
      expect(sent.slice(half).every(({ status }) => status === "settled")).to.equal(true);
      const made = await Promise.all(others.map((payment) => scene.timesMade(payment)));
      expect(made.every((times) => times === 1)).to.equal(true);
    });
  });
}
