import { expect } from "chai";
import type { Payment } from "../../src/domain/agent/payment.ts";
import { AGENT_SETTINGS } from "../../src/messages/agent.ts";
import { confirmation, StagedAgent } from "./support/agent.ts";
import { gate, SETTLED } from "./support/doubles.ts";
import { activitiesOf, afterActivities, eventsOf } from "./support/history.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";
import type { Stage } from "./support/stage.ts";

const play = useTimedStage();

const SWEEP_MS = AGENT_SETTINGS.sweepAfterSeconds * 1_000;
const HOUR_MS = 3_600_000;
const HELD_CENTS = 6_000;

const KEY = { keyId: "akey_1", lineageId: null, deliverableUntil: 0 };
const start = (stage: Stage) => StagedAgent.start(stage, {}, {}, KEY);
const revoke = { kind: "revoke_key", recordedKeyId: null } as const;
const archive = { kind: "archive", by: { type: "user" } } as const;

/** How often the actor has looked after its payments. */
const looks = async (agent: StagedAgent): Promise<number> =>
  activitiesOf(await eventsOf(agent.handle)).filter((name) => name === "carryOutPayment").length;

async function untilSettledOnce(
  stage: TimedStage,
  agent: StagedAgent,
  ids: readonly string[],
): Promise<void> {
  while ((await agent.totals()).open > 0) await stage.skip(100);
  expect([...stage.rail.taken.keys()].toSorted()).to.deep.equal(ids.toSorted());
}

describe("workflow agent: while it is paused", () => {
  it("sends nothing that was decided before, however long; once resumed it goes on at once", () =>
    play(async (stage) => {
      const agent = await start(stage);
      const { request } = await agent.pay(100);
      await agent.submit({ kind: "pause" });
      await stage.skip(24 * HOUR_MS);
      expect(stage.rail.sent, "while paused").to.deep.equal([]);
      expect(stage.projections.status(request.transactionId)).to.equal("pending");
      expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 100, open: 1 });
      expect(await looks(agent), "at a slowing pace").to.be.within(5, 40);
      await agent.submit({ kind: "resume" });
      await stage.skip(1_000);
      await untilSettledOnce(stage, agent, [request.transactionId]);
      expect(await agent.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
    }));

  it("hears of a decision for a second: who comes later asks, and sends nothing", () =>
    play(async (stage) => {
      const agent = await start(stage);
      const [early, late] = [await agent.pay(100), await agent.pay(100)];
      await agent.submit({ kind: "pause" });
      const carryOut = (payment: Payment, agoMs: number) =>
        stage.effects.carryOut(agent.profile, payment, "server", null, {
          decidedSinceMs: performance.now() - agoMs,
        });
      const waiting = await carryOut(late, 1_000);
      expect([waiting.revision, waiting.outcome, stage.rail.sent]).to.deep.equal([0, null, []]);
      // For that long whoever paused it is not answered.
      expect((await carryOut(early, 0)).payment.status).to.equal("approved");
    }));

  it("sends nothing that a person approved before, neither by the approval nor by itself", () =>
    play(async (stage) => {
      const agent = await start(stage);
      const held = await agent.pay(HELD_CENTS);
      await agent.submit(confirmation(await agent.carryOut(held)));
      const { payment } = await agent.resolve("approve", held);
      await agent.submit({ kind: "pause" });
      await agent.submit(confirmation(await agent.carryOut(payment)));
      await stage.skip(HOUR_MS);
      expect(stage.rail.sent, "while paused").to.deep.equal([]);
      await agent.submit({ kind: "resume" });
      await stage.skip(1_000);
      await untilSettledOnce(stage, agent, [held.request.transactionId]);
    }));

  it("finds what a process sent and did not live to tell, and follows it to its end", () =>
    play(async (stage) => {
      const agent = await start(stage);
      const payment = await agent.pay(100);
      await stage.rail.send(agent.profile, payment);
      await agent.submit({ kind: "pause" }, revoke);
      await untilSettledOnce(stage, agent, [payment.request.transactionId]);
      expect(await agent.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
    }));

  for (const [title, commands] of [
    ["its key is revoked", [{ kind: "pause" }, revoke]],
    ["its key was revoked before", [revoke, { kind: "pause" }]],
    ["it is archived", [{ kind: "pause" }, archive]],
  ] as const) {
    it(`releases what was decided when ${title}; who comes late sends nothing`, () =>
      play(async (stage) => {
        const agent = await start(stage);
        const payment = await agent.pay(100);
        const { transactionId } = payment.request;
        for (const command of commands) await agent.submit(command);
        await afterActivities(agent.handle, 1);
        while ((await agent.totals()).open > 0) await stage.skip(100);
        expect(await agent.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
        expect(stage.projections.payments.get(transactionId)?.denial?.code).to.equal("AGENT_PAUSED");
        const late = await agent.carryOut(payment);
        expect([late.payment.status, [...stage.rail.taken]]).to.deep.equal(["denied", []]);
      }));
  }

  it("lets a call that began before go on, and hears its end, though it was stopped meanwhile", () => {
    const hanging = gate();
    return play(
      async (stage) => {
        const agent = await start(stage);
        const { request } = await agent.pay(100);
        const called = stage.rail.nextCall();
        await stage.skip(SWEEP_MS + 500);
        await called;
        await agent.submit({ kind: "pause" }, revoke);
        hanging.open();
        await untilSettledOnce(stage, agent, [request.transactionId]);
        expect(await agent.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
      },
      { rail: () => hanging.opened.then(() => SETTLED) },
    );
  });
});
