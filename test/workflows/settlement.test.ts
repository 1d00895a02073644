import { expect } from "chai";
import type { Payment, RailOutcome } from "../../src/domain/ledger/payment.ts";
import { SETTLEMENT_POLL_SECONDS, settlementWorkflowId } from "../../src/messages/settlement.ts";
import type { SettlementInput } from "../../src/messages/settlement.ts";
import { SETTLED } from "./support/doubles.ts";
import { withAccount } from "./support/ledger.ts";
import { eventsOf, timersOf } from "./support/history.ts";
import { useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const PENDING: RailOutcome = { status: "pending" };
const seconds = (events: Parameters<typeof timersOf>[0]) => timersOf(events).map((ms) => ms / 1_000);

describe("workflow settlement: follows a payment on its rail until nothing more can become of it", () => {
  it("asks at the slowing pace, never sends again, and tells ledger and record of the end", () =>
    play(
      async (stage) => {
        const { account } = await withAccount(stage);
        const payment = await account.pay(100);
        const { transactionId } = payment.request;
        await account.finish(payment);
        expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 100, open: 1 });
        const settlement = stage.client.workflow.getHandle(settlementWorkflowId(transactionId));
        expect(await settlement.result()).to.include({ status: "approved", phase: "done" });
        const lastOneRepeats = [...SETTLEMENT_POLL_SECONDS, 900, 900];
        expect(seconds(await eventsOf(settlement))).to.deep.equal(lastOneRepeats);
        expect(stage.rail.sent).to.deep.equal([transactionId]);
        expect(stage.rail.queried).to.have.length(lastOneRepeats.length);
        expect(stage.projections.status(transactionId)).to.equal("approved");
        expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
      },
      // Sent once, then asked twelve times.
      { rail: (_payment, call) => (call <= 12 ? PENDING : SETTLED) },
    ));

  it("after 200 questions it goes on as new, at the pace it had come to", () => {
    let questions = 0;
    const followPayment = ({ payment }: { payment: Payment }): Promise<Payment> => {
      questions += 1;
      if (questions <= 200) return Promise.resolve(payment);
      return Promise.resolve({ ...payment, status: "approved", phase: "done", revision: 3 });
    };
    return play(
      async (stage) => {
        const { account } = await withAccount(stage);
        const payment = await account.pay(100);
        const { profile } = account;
        const followed = { ...payment, phase: "following", revision: 2 } as const;
        const input: SettlementInput = { profile, payment: followed, polls: 5 };
        const settlement = await stage.client.workflow.start("settlement", {
          taskQueue: stage.taskQueue,
          workflowId: settlementWorkflowId(payment.request.transactionId),
          args: [input],
        });
        expect(await settlement.result()).to.include({ status: "approved" });
        const first = stage.client.workflow.getHandle(settlement.workflowId, settlement.firstExecutionRunId);
        const [run, next] = [await eventsOf(first), await eventsOf(settlement)].map(seconds);
        expect(run?.slice(0, 6)).to.deep.equal([10, 30, 60, 300, 900, 900]);
        expect([run?.length, next]).to.deep.equal([200, [900]]);
      },
      { activities: { followPayment } },
    );
  });
});
