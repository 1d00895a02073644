import { expect } from "chai";
import { AGENT_SETTINGS } from "../../src/messages/agent.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import { StagedAgent } from "./support/agent.ts";
import { StagedBudget } from "./support/budget.ts";
import { activitiesOf, afterActivities, eventsOf } from "./support/history.ts";
import type { Stage } from "./support/stage.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const SWEEP_MS = AGENT_SETTINGS.sweepAfterSeconds * 1_000;
const CAP = 10_000;
const HELD = 6_000;

const asking = (stage: Stage, number = 1): Promise<StagedAgent> =>
  StagedAgent.start(stage, {}, {}, undefined, { asksForCaps: true, number });

async function capped(stage: Stage): Promise<StagedBudget> {
  const budget = await StagedBudget.start(stage);
  await budget.enrol((await budget.capProject(1, CAP)).epoch, []);
  return budget;
}

async function swept(stage: TimedStage, agent: StagedAgent, activities: number): Promise<void> {
  await stage.skip(SWEEP_MS + 500);
  await afterActivities(agent.handle, activities);
}

describe("workflow agent under caps: what its server left, its actor does", () => {
  it("server gone after the decision: nothing sent; the actor asks, is granted and sends once", () =>
    play(async (stage) => {
      const budget = await capped(stage);
      const agent = await asking(stage);
      const payment = await agent.pay(100);
      expect(await budget.used(), "nobody has asked").to.include({ reserved: 0 });
      await swept(stage, agent, 2);
      expect([...stage.rail.taken]).to.deep.equal([[payment.request.transactionId, 100]]);
      expect(await agent.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
      expect(await budget.used()).to.deep.equal({ spent: 0, reserved: 100, members: 1 });
    }));

  it("server gone after the grant: the amount stays reserved, and the actor sends on that grant", () =>
    play(async (stage) => {
      const budget = await capped(stage);
      const [agent, other] = [await asking(stage), await asking(stage, 2)];
      await agent.pay(4_000);
      await budget.ask("reported", { kind: "report", report: await reportOf(agent) });
      expect((await budget.used()).reserved).to.equal(4_000);
      expect((await other.payThrough(5_000)).status).to.equal("approved");
      expect((await other.payThrough(1_001)).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
      await swept(stage, agent, 2);
      expect(await agent.totals()).to.deep.equal({ spent: 4_000, reserved: 0, open: 0 });
    }));

  it("refused when its actor asks: denied by the cap's code, never sent, uncounted, unreserved", () =>
    play(async (stage) => {
      await capped(stage);
      const [agent, other] = [await asking(stage), await asking(stage, 2)];
      const payment = await agent.pay(4_000);
      for (const cents of [4_000, 4_000]) await other.payThrough(cents);
      await swept(stage, agent, 2);
      const { transactionId } = payment.request;
      expect(stage.rail.sent).not.to.include(transactionId);
      const refused = stage.projections.payments.get(transactionId);
      expect(refused).to.include({ status: "denied", phase: "done", approval: null, revision: 2 });
      const details = { limit: CAP, remaining: 2_000, resetsAt: null };
      expect(refused?.denial).to.deep.include({ code: "PROJECT_CAP_EXCEEDED", details });
      expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
      expect((await agent.state()).usage).to.deep.include({ hour: [] });
      expect((await agent.state()).usage.day.count).to.equal(0);
    }));

  it("a hold that does not fit is denied, and no approval's workflow is started", () =>
    play(async (stage) => {
      await capped(stage);
      const [agent, other] = [await asking(stage), await asking(stage, 2)];
      for (const cents of [4_000, 4_000]) await other.payThrough(cents);
      const payment = await agent.pay(HELD);
      expect(payment.approval).not.to.equal(null);
      await swept(stage, agent, 2);
      expect(stage.projections.payments.get(payment.request.transactionId)).to.include({
        status: "denied",
        approval: null,
      });
      const { request } = payment;
      const approval = stage.client.workflow.getHandle(approvalWorkflowId(request.approvalId));
      const failure: unknown = await approval.describe().catch((error: unknown) => error);
      expect(String(failure)).to.match(/not found/i);
    }));

  it("what a denial gave back is told to the budget by the actor where its server did not, once", () =>
    play(async (stage) => {
      const budget = await capped(stage);
      const agent = await asking(stage);
      const held = await agent.payThrough(HELD);
      expect((await budget.used()).reserved).to.equal(HELD);
      await agent.resolve("deny", held);
      expect((await budget.used()).reserved, "nobody has told it").to.equal(HELD);
      await swept(stage, agent, 3);
      expect(await budget.used()).to.deep.equal({ spent: 0, reserved: 0, members: 1 });
      await stage.skip(60_000);
      const told = activitiesOf(await eventsOf(agent.handle)).filter((name) => name === "reportToBudget");
      expect(told).to.have.length(1);
    }));

  it("an expiry gives back under the cap by itself: the window, the actor's decision, its report", () =>
    play(async (stage) => {
      const budget = await capped(stage);
      const agent = await asking(stage);
      const held = await agent.payThrough(HELD);
      const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
      await approval.result();
      await stage.skip(SWEEP_MS + 500);
      await afterActivities(agent.handle, 1);
      expect(await budget.used()).to.deep.equal({ spent: 0, reserved: 0, members: 1 });
      expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
    }));

  it("archived while it asks, before anybody was told: a hold reserves nothing, here or there", () =>
    play(async (stage) => {
      const budget = await capped(stage);
      const agent = await asking(stage);
      await agent.pay(HELD);
      await budget.ask("reported", { kind: "report", report: await reportOf(agent) });
      await agent.submit({ kind: "archive", by: { type: "user" } });
      // Held by the caps' word, ended by the archive, and the budget told: each 10 s after the one before.
      await swept(stage, agent, 5);
      expect(await agent.totals()).to.include({ spent: 0, reserved: 0 });
      expect(await budget.used()).to.include({ spent: 0, reserved: 0 });
      expect(stage.rail.sent).to.deep.equal([]);
    }));

  it("approved after a cap was lowered: the approval's workflow asks again and fails by its code", () =>
    play(async (stage) => {
      const budget = await capped(stage);
      const agent = await asking(stage);
      const held = await agent.payThrough(HELD);
      await budget.enrol((await budget.capProject(2, HELD - 1)).epoch, []);
      await agent.carryOut((await agent.resolve("approve", held)).payment);
      const approval = stage.client.workflow.getHandle(approvalWorkflowId(held.request.approvalId));
      await approval.result();
      expect(stage.projections.payments.get(held.request.transactionId)).to.deep.include({
        status: "failed",
      });
      expect(stage.projections.payments.get(held.request.transactionId)?.denial?.code).to.equal(
        "PROJECT_CAP_EXCEEDED",
      );
      expect(stage.rail.sent).to.deep.equal([]);
      expect(await agent.totals()).to.include({ spent: 0, reserved: 0 });
    }));
});

async function reportOf(agent: StagedAgent) {
  const report = await agent.report();
  if (report === null) throw new Error("it has nothing to report");
  return report;
}
