import { expect } from "chai";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import { STATE_QUERY } from "../../src/messages/agent.ts";
import { type ApprovalEnd, approvalWorkflowId } from "../../src/messages/approval.ts";
import { type StagedAccount, withAccount } from "./support/ledger.ts";
import type { HistoryEvent } from "./support/history.ts";
import { activitiesOf, afterActivities, eventsOf, timeOf, timersOf } from "./support/history.ts";
import { atRest, type Stage } from "./support/stage.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";
import { useStage } from "./support/untimed.ts";

const play = useTimedStage();

const DAY_MS = 86_400_000;
const HELD = 6_000;
/** Time that is skipped runs on while something is done, for as long as a busy machine takes for it. */
const LATE_MS = 60_000;
/** Far less than a day, and more than a busy machine takes for what is done at its end. */
const SKIPPED_MS = 30_000;

/** A payment on hold, with its approval workflow, as a server leaves it. */
async function held(account: StagedAccount): Promise<Payment> {
  const payment = await account.pay(HELD);
  await account.finish(payment);
  return payment;
}

function approvalOf(stage: Stage, { request }: Payment) {
  type Approval = () => Promise<ApprovalEnd | null>;
  return stage.client.workflow.getHandle<Approval>(approvalWorkflowId(request.approvalId));
}

/** When the workflow's first task began: its own time until it first waits. */
function beganAt(events: readonly HistoryEvent[]): number {
  const started = events.find((event) => event.workflowTaskStartedEventAttributes);
  if (started === undefined) throw new Error("no workflow task was started");
  return timeOf(started);
}

describe("workflow approval: the timer of a payment on hold", () => {
  it("24 h without a decision are skipped, not waited for, and it expires at the exact time", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      const approval = approvalOf(stage, payment);
      const began = performance.now();
      expect(await approval.result()).to.equal("expired");
      const tookMs = performance.now() - began;
      expect(tookMs, "real milliseconds").to.be.below(SKIPPED_MS);
      const events = await eventsOf(approval);
      const expiresAt = payment.createdAt + DAY_MS;
      expect(await approval.query(STATE_QUERY)).to.deep.equal({
        state: "expired",
        expiresAt: new Date(expiresAt).toISOString(),
        transactionId: payment.request.transactionId,
        texts: { recipient: "shop", purpose: "a test" },
      });
      expect(timersOf(events)).to.deep.equal([expiresAt - beganAt(events)]);
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
      const recorded = stage.projections.payments.get(payment.request.transactionId);
      expect(recorded).to.include({ status: "expired", phase: "done" });
      expect(recorded?.deniedAt ?? 0, "the ledger's own time").to.be.within(expiresAt, expiresAt + LATE_MS);
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("an approval just before the window ends wins: one rail call, and the ledger has spent it", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      await stage.skipTo(payment.createdAt + DAY_MS - 2 * LATE_MS);
      const { changed, payment: approved } = await account.resolve("approve", payment);
      expect([changed, approved.phase]).to.deep.equal([true, "sending"]);
      const paid = await account.finish(approved);
      expect(paid).to.include({ status: "approved", phase: "done" });
      expect(await approvalOf(stage, payment).result()).to.equal("approved");
      expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      expect(stage.projections.status(payment.request.transactionId)).to.equal("approved");
      expect(await account.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
    }));

  it("server gone after the decision to hold: the ledger starts the workflow, and it expires", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await account.pay(HELD);
      await stage.skip(11_000);
      await afterActivities(account.ledger.handle, 1);
      expect(await approvalOf(stage, payment).result()).to.equal("expired");
      expect(await account.totals()).to.include({ spent: 0, reserved: 0 });
    }));

  it("server gone after the approval: the ledger pays once and ends the workflow", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      await account.resolve("approve", payment);
      await stage.skip(11_000);
      expect(await approvalOf(stage, payment).result()).to.equal("approved");
      await afterActivities(account.ledger.handle, 1);
      expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      expect(await account.totals()).to.include({ spent: HELD, reserved: 0 });
    }));
});

/** Ended in the midst of a task or a call, it would hold the engine's time until that one's own time is up. */
async function endByHand(stage: TimedStage, payment: Payment): Promise<void> {
  const approval = approvalOf(stage, payment);
  await atRest(stage.client, approval.workflowId);
  await approval.terminate("by hand");
}

describe("workflow approval: ended by hand", () => {
  it("while it waits: the payment expires all the same, is released, and nothing is paid", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      await endByHand(stage, payment);
      await stage.skip(DAY_MS - 60_000);
      expect(await account.totals(), "a person may still decide").to.include({ reserved: HELD, open: 1 });
      await stage.skip(120_000);
      await afterActivities(account.ledger.handle, 1);
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
      expect(stage.projections.status(payment.request.transactionId)).to.equal("expired");
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("while it waits: what a person approves after that is paid once", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      await endByHand(stage, payment);
      const { payment: approved } = await account.resolve("approve", payment);
      await account.finish(approved);
      expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      expect(await account.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
    }));
});

describe("workflow approval: a person's decision", () => {
  const playNow = useStage();

  it("ten approvals of one payment at once, each executed, debit it once", () =>
    playNow(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => account.resolve("approve", payment)),
      );
      expect(replies.filter((reply) => reply.changed)).to.have.length(1);
      await Promise.all(replies.map((reply) => account.finish(reply.payment)));
      expect(await approvalOf(stage, payment).result()).to.equal("approved");
      expect([...stage.rail.taken]).to.deep.equal([[payment.request.transactionId, HELD]]);
      expect(await account.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
    }));

  for (const kind of ["deny", "cancel"] as const) {
    it(`after ${kind} its workflow ends at once as denied, and no rail is called`, () =>
      playNow(async (stage) => {
        const { account } = await withAccount(stage);
        const payment = await held(account);
        const reply = await account.resolve(kind, payment);
        await account.finish(reply.payment);
        const approval = approvalOf(stage, payment);
        expect(await approval.result()).to.equal("denied");
        const { searchAttributes } = await approval.describe();
        expect(searchAttributes["ApprovalState"]).to.deep.equal(["denied"]);
        expect(activitiesOf(await eventsOf(approval))).to.deep.equal([]);
        expect(stage.projections.status(payment.request.transactionId)).to.equal("denied");
        expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
        expect(stage.rail.sent).to.deep.equal([]);
      }));
  }

  it("approved while the agent is paused it fails with AGENT_PAUSED, and no rail is called", () =>
    playNow(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await held(account);
      await account.ledger.submit({ kind: "pause", agentId: account.agentId });
      const reply = await account.resolve("approve", payment);
      const ended = await account.finish(reply.payment);
      expect([ended.status, ended.denial?.code, ended.approval?.resolution]).to.deep.equal([
        "failed",
        "AGENT_PAUSED",
        "failed",
      ]);
      expect(await approvalOf(stage, payment).result()).to.equal("failed");
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("approved, while its rail is still at work: its workflow has ended as approved", () =>
    playNow(
      async (stage) => {
        const { account } = await withAccount(stage);
        const payment = await held(account);
        const { payment: approved } = await account.resolve("approve", payment);
        expect(await account.finish(approved)).to.include({ status: "pending", phase: "following" });
        expect(await approvalOf(stage, payment).result()).to.equal("approved");
      },
      { rail: () => ({ status: "pending" }) },
    ));
});
