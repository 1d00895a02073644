import { expect } from "chai";
import type { Payment } from "../../src/domain/agent/payment.ts";
import { STATE_QUERY } from "../../src/messages/agent.ts";
import type { ApprovalResult } from "../../src/messages/approval.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import { confirmation, StagedAgent } from "./support/agent.ts";
import { SETTLED } from "./support/doubles.ts";
import type { HistoryEvent } from "./support/history.ts";
import { activitiesOf, afterActivities, eventsOf, eventsUntil, timeOf, timersOf } from "./support/history.ts";
import type { Stage } from "./support/stage.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";
import { useStage } from "./support/untimed.ts";

const play = useTimedStage();

const DAY_MS = 86_400_000;
const HELD = 6_000;

/** A payment on hold, with its approval workflow, as a server leaves it. */
async function held(agent: StagedAgent): Promise<Payment> {
  const payment = await agent.pay(HELD);
  const done = await agent.carryOut(payment);
  await agent.submit(confirmation(done));
  return payment;
}

function approvalOf(stage: Stage, { request }: Payment) {
  type Approval = () => Promise<ApprovalResult | null>;
  return stage.client.workflow.getHandle<Approval>(approvalWorkflowId(request.approvalId));
}

/** When the workflow's first task began: its own time until it first waits. */
function beganAt(events: readonly HistoryEvent[]): number {
  const started = events.find((event) => event.workflowTaskStartedEventAttributes);
  if (started === undefined) throw new Error("no workflow task was started");
  return timeOf(started);
}

describe("workflow approval: the timer of a payment on hold", () => {
  it("24 h without a decision take well under a second, and it expires at the exact time", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      const approval = approvalOf(stage, payment);
      const began = performance.now();
      const result = await approval.result();
      const tookMs = performance.now() - began;
      expect(result).to.include({ status: "expired", phase: "done" });
      expect(tookMs, "real milliseconds").to.be.below(1_000);
      const events = await eventsOf(approval);
      const expiresAt = payment.createdAt + DAY_MS;
      expect(await approval.query(STATE_QUERY)).to.deep.equal({
        state: "expired",
        expiresAt: new Date(expiresAt).toISOString(),
        transactionId: payment.request.transactionId,
      });
      expect(timersOf(events)).to.deep.equal([expiresAt - beganAt(events)]);
      expect(result?.deniedAt ?? 0, "the actor's own time").to.be.within(expiresAt, expiresAt + 1_000);
      expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
      expect(stage.projections.status(payment.request.transactionId)).to.equal("expired");
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("an approval just before the window ends wins: one rail call, and the actor has spent it", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      await stage.skip(DAY_MS - 2_000);
      const { changed, payment: approved } = await agent.resolve("approve", payment);
      expect([changed, approved.phase]).to.deep.equal([true, "sending"]);
      await agent.carryOut(approved);
      const result = await approvalOf(stage, payment).result();
      expect(result).to.include({ status: "approved", phase: "done" });
      expect(result?.approval?.resolution).to.equal("approved");
      expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      expect(stage.projections.status(payment.request.transactionId)).to.equal("approved");
      expect(await agent.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
    }));

  it("server gone after the decision to hold: the actor starts the workflow, and it expires", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await agent.pay(HELD);
      await stage.skip(11_000);
      await afterActivities(agent.handle, 1);
      expect(await approvalOf(stage, payment).result()).to.include({ status: "expired" });
      expect(await agent.totals()).to.include({ spent: 0, reserved: 0 });
    }));

  it("server gone after the approval: the actor tells the workflow, and the rail is called once", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      await agent.resolve("approve", payment);
      await stage.skip(11_000);
      expect(await approvalOf(stage, payment).result()).to.include({ status: "approved" });
      expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      expect(await agent.totals()).to.include({ spent: HELD, reserved: 0 });
    }));
});

/** By its agent's actor, which nobody else has told to. */
async function expectPaidOnce(stage: TimedStage, agent: StagedAgent, { request }: Payment): Promise<void> {
  await stage.skip(60_000);
  await afterActivities(agent.handle, 1);
  expect(stage.rail.sent).to.deep.equal([request.transactionId]);
  expect(stage.projections.status(request.transactionId)).to.equal("approved");
  expect(await agent.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
}

describe("workflow approval: ended by hand", () => {
  it("while it waits: the payment expires all the same, is released, and nothing is paid", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      await approvalOf(stage, payment).terminate("by hand");
      await stage.skip(DAY_MS - 60_000);
      expect(await agent.totals(), "a person may still decide").to.include({ reserved: HELD, open: 1 });
      await stage.skip(120_000);
      await afterActivities(agent.handle, 1);
      expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
      expect(stage.projections.status(payment.request.transactionId)).to.equal("expired");
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("while it waits: what a person approves after that is paid once", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      await approvalOf(stage, payment).terminate("by hand");
      const { payment: approved } = await agent.resolve("approve", payment);
      await agent.submit(confirmation(await agent.carryOut(approved)));
      expect(stage.rail.sent, "nobody is there to send it").to.deep.equal([]);
      await expectPaidOnce(stage, agent, payment);
    }));

  it("between the approval and the rail: it is paid once", () =>
    play(
      async (stage) => {
        const agent = await StagedAgent.start(stage);
        const payment = await held(agent);
        const approval = approvalOf(stage, payment);
        const { payment: approved } = await agent.resolve("approve", payment);
        await agent.submit(confirmation(await agent.carryOut(approved)));
        await eventsUntil(approval, (events) => activitiesOf(events).includes("executeApproved"));
        await approval.terminate("by hand");
        await expectPaidOnce(stage, agent, payment);
      },
      { activities: { executeApproved: () => Promise.reject(new Error("the worker dies")) } },
    ));

  it("after the rail has it, before its agent hears so: the rail is asked again, and pays once", () => {
    let isEnded = false;
    return play(
      async (stage) => {
        const agent = await StagedAgent.start(stage);
        const payment = await held(agent);
        const approval = approvalOf(stage, payment);
        const { payment: approved } = await agent.resolve("approve", payment);
        await agent.submit(confirmation(await agent.carryOut(approved)));
        while (stage.rail.sent.length === 0) await stage.rail.nextCall();
        await approval.terminate("by hand");
        isEnded = true;
        await stage.skip(60_000);
        await afterActivities(agent.handle, 1);
        expect([...stage.rail.taken]).to.deep.equal([[payment.request.transactionId, HELD]]);
        expect(await agent.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
      },
      { rail: () => (isEnded ? SETTLED : Promise.reject(new Error("no answer"))) },
    );
  });
});

describe("workflow approval: a person's decision", () => {
  const playNow = useStage();

  it("ten approvals of one payment at once, each carried out and told, debit and send it once", () =>
    playNow(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      const replies = await Promise.all(Array.from({ length: 10 }, () => agent.resolve("approve", payment)));
      expect(replies.filter((reply) => reply.changed)).to.have.length(1);
      await Promise.all(replies.map((reply) => agent.carryOut(reply.payment)));
      await approvalOf(stage, payment).result();
      expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      expect(await agent.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
    }));

  for (const kind of ["deny", "cancel"] as const) {
    it(`after ${kind} its workflow ends at once as denied, and no rail is called`, () =>
      playNow(async (stage) => {
        const agent = await StagedAgent.start(stage);
        const payment = await held(agent);
        const reply = await agent.resolve(kind, payment);
        await agent.submit(confirmation(await agent.carryOut(reply.payment)));
        const approval = approvalOf(stage, payment);
        expect(await approval.result()).to.deep.equal(reply.payment);
        expect(activitiesOf(await eventsOf(approval))).to.deep.equal([]);
        expect(stage.projections.status(payment.request.transactionId)).to.equal("denied");
        expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
        expect(stage.rail.sent).to.deep.equal([]);
      }));
  }

  it("approved while the agent is paused it fails with AGENT_PAUSED, and no rail is called", () =>
    playNow(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await held(agent);
      await agent.submit({ kind: "pause" });
      const reply = await agent.resolve("approve", payment);
      await agent.carryOut(reply.payment);
      const result = await approvalOf(stage, payment).result();
      expect(result).to.include({ status: "failed" });
      expect([result?.denial?.code, result?.approval?.resolution]).to.deep.equal(["AGENT_PAUSED", "failed"]);
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("a rail that gives no answer twice is called again until it does, and takes the money once", () =>
    playNow(
      async (stage) => {
        const agent = await StagedAgent.start(stage);
        const payment = await held(agent);
        const { payment: approved } = await agent.resolve("approve", payment);
        await agent.carryOut(approved);
        expect(await approvalOf(stage, payment).result()).to.include({ status: "approved" });
        expect([...stage.rail.taken]).to.deep.equal([[payment.request.transactionId, HELD]]);
        expect(await agent.totals()).to.deep.equal({ spent: HELD, reserved: 0, open: 0 });
      },
      { rail: (_payment, call) => (call <= 3 ? Promise.reject(new Error("no answer")) : SETTLED) },
    ));
});
