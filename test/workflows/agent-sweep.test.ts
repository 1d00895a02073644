import { expect } from "chai";
import { AGENT_SETTINGS } from "../../src/messages/agent.ts";
import { confirmation, payCommand, StagedAgent } from "./support/agent.ts";
import { gate, SETTLED } from "./support/doubles.ts";
import { activitiesOf, afterActivities, eventsOf, timeOf } from "./support/history.ts";
import { useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const SWEEP_MS = AGENT_SETTINGS.sweepAfterSeconds * 1_000;
const MINUTE_MS = 60_000;

describe("workflow agent: what nobody confirms, the actor carries out itself", () => {
  it("a payment whose server is gone is sent by the actor after 10 s, once, even if one is late", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await agent.pay(100);
      const { transactionId } = payment.request;
      await stage.skip(SWEEP_MS - 2_000);
      expect(stage.rail.sent, "before the bound").to.deep.equal([]);
      await stage.skip(2_500);
      const events = await afterActivities(agent.handle, 2);
      const sweep = events.find((event) => event.activityTaskScheduledEventAttributes);
      if (sweep === undefined) throw new Error("nothing was swept");
      expect(timeOf(sweep) - payment.createdAt).to.be.within(SWEEP_MS, SWEEP_MS + 1_000);
      expect(activitiesOf(events).toSorted()).to.deep.equal(["carryOutPayment", "writeAgentSummary"]);
      expect(stage.rail.sent).to.deep.equal([transactionId]);
      expect(stage.projections.status(transactionId)).to.equal("approved");
      expect(await agent.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
      const late = confirmation(await agent.carryOut(payment));
      await agent.submit(late, late);
      expect([...stage.rail.taken]).to.deep.equal([[transactionId, 100]]);
      expect(await agent.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
    }));

  it("what is confirmed in time is never swept: no timer is left, and no activity runs", () =>
    play(async (stage) => {
      const agent = await StagedAgent.start(stage);
      const payment = await agent.pay(100);
      await agent.submit(confirmation(await agent.carryOut(payment)));
      const { revision } = await agent.state();
      await agent.submit({ kind: "confirm_summary", revision });
      await stage.skip(MINUTE_MS);
      const events = await eventsOf(agent.handle);
      expect(activitiesOf(events)).to.deep.equal([]);
      const count = (kind: "timerStartedEventAttributes" | "timerFiredEventAttributes") =>
        events.filter((event) => event[kind]).length;
      expect([count("timerStartedEventAttributes"), count("timerFiredEventAttributes")]).to.deep.equal([
        1, 1,
      ]);
      expect(stage.rail.sent).to.have.length(1);
    }));

  it("while a rail call hangs, a pause and another payment are answered; then it ends as spent", () => {
    const hanging = gate();
    return play(
      async (stage) => {
        const agent = await StagedAgent.start(stage);
        const payment = await agent.pay(100);
        const called = stage.rail.nextCall();
        await stage.skip(SWEEP_MS + 500);
        await called;
        const [paused, second] = await agent.submit({ kind: "pause" }, payCommand(agent.request(100)));
        expect(paused).to.include({ kind: "lifecycle", lifecycle: "paused", changed: true });
        expect(second).to.nested.include({ kind: "decided", "decision.denial.code": "AGENT_PAUSED" });
        expect((await agent.state()).open[payment.request.transactionId]?.payment.phase).to.equal("sending");
        hanging.open();
        await afterActivities(agent.handle, 2);
        expect(await agent.totals()).to.include({ spent: 100, reserved: 0 });
        expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      },
      { rail: () => hanging.opened.then(() => SETTLED) },
    );
  });

  it("a rail that hangs for 30 payments costs at most 20 sweeps at a time, and no history", () => {
    const hanging = gate();
    return play(
      async (stage) => {
        const agent = await StagedAgent.start(stage);
        const requests = Array.from({ length: 30 }, () => agent.request(1));
        await agent.submit(...requests.map((request) => payCommand(request)));
        const called = stage.rail.nextCall();
        await stage.skip(SWEEP_MS + 500);
        await called;
        await agent.submit({ kind: "rename", name: "Another" });
        const scheduled = activitiesOf(await eventsOf(agent.handle));
        expect(scheduled.filter((name) => name === "carryOutPayment")).to.have.length(20);
        const before = (await agent.handle.describe()).historyLength;
        await stage.skip(500);
        expect((await agent.handle.describe()).historyLength - before).to.be.at.most(10);
        hanging.open();
        await afterActivities(agent.handle, 31);
        expect(stage.rail.sent.toSorted()).to.deep.equal(requests.map((request) => request.transactionId));
        expect(await agent.totals()).to.deep.equal({ spent: 30, reserved: 0, open: 0 });
      },
      { rail: () => hanging.opened.then(() => SETTLED) },
    );
  });
});
