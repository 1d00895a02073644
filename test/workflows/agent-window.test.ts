import { expect } from "chai";
import type { Activities } from "../../activities/types.ts";
import {
  begin,
  byPerson,
  detailsOf,
  LINEAGE,
  machineArchive,
  replayOfCreate,
  rollOver,
  WINDOW_MS,
  ended,
} from "./support/life.ts";
import { FIRST_KEY, type StagedAgent } from "./support/agent.ts";
import { eventsOf, eventsUntil, type HistoryEvent, timeOf, timersOf } from "./support/history.ts";
import type { StageOptions } from "./support/stage.ts";
import { withAccount } from "./support/ledger.ts";
import { useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const SECOND_MS = 1_000;
/** Time that is skipped runs on while something is done. */
const LATE_MS = 60 * SECOND_MS;
/** What is left of a window that is waited for in real time. */
const LEFT_MS = 5 * SECOND_MS;
const HOUR_MS = 3_600_000;
const CLOSE = "closeDeliveryWindow";

const bundledOf = async (agent: StagedAgent) => (await agent.state()).access.bundled;

const refused = (code: string) => ({ kind: "archive_refused", code });
const inWindow = { kind: "non_delivery", windowOver: false, proven: false };
const proven = { kind: "non_delivery", windowOver: true, proven: true };

/** A stage on which the window's end is counted, and goes as a test says at each call, from 1. */
function closing(end: (call: number) => ReturnType<Activities["closeDeliveryWindow"]>) {
  const closed: string[] = [];
  const options: StageOptions = {
    activities: {
      closeDeliveryWindow({ agentId }) {
        closed.push(agentId);
        return end(closed.length);
      },
    },
  };
  return { closed, options };
}

const committed = () => closing(() => Promise.resolve("committed"));

const isAsked = ({ activityTaskScheduledEventAttributes: asked }: HistoryEvent): boolean =>
  asked?.activityType?.name === CLOSE;

/** Waits until the actor has taken in so many ends of windows; the times at which they were asked for. */
async function closings(agent: StagedAgent, count: number): Promise<readonly number[]> {
  const isTaken = (events: readonly HistoryEvent[]): boolean => {
    const asked = new Set(events.filter(isAsked).map(({ eventId }) => String(eventId)));
    const done = events.filter(({ activityTaskCompletedEventAttributes: completed }) =>
      asked.has(String(completed?.scheduledEventId)),
    );
    const last = done[count - 1];
    if (last === undefined) return false;
    return events.slice(events.indexOf(last)).some((event) => event.workflowTaskCompletedEventAttributes);
  };
  return (await eventsUntil(agent.handle, isTaken)).filter(isAsked).map(timeOf);
}

describe("workflow agent: the window of its first key", () => {
  it("at 28:00 the key is deliverable: nothing is erased or proven, a machine is told to replay", () => {
    const { closed, options } = committed();
    return play(async (stage) => {
      const { agent, until } = await begin(stage);
      await stage.skipTo(until - 2 * LATE_MS);
      expect(await agent.submit(replayOfCreate, machineArchive)).to.deep.equal([
        inWindow,
        refused("KEY_STILL_DELIVERABLE"),
      ]);
      expect(await bundledOf(agent)).to.deep.equal({
        keyId: FIRST_KEY,
        lineageId: LINEAGE,
        deliverableUntil: until,
        erased: false,
        provenAt: null,
      });
      expect(await detailsOf(agent.handle)).to.include("a timer erases its sealed form then");
      expect(closed).to.deep.equal([]);
    }, options);
  });

  it("at 30:00 it is erased by one call and one timer; a replay proves it, a machine archives", () => {
    const { closed, options } = committed();
    return play(async (stage) => {
      const { agent, until } = await begin(stage);
      await stage.skipTo(until);
      const [askedAt] = await closings(agent, 1);
      expect(askedAt).to.be.within(until, until + LATE_MS);
      expect(closed).to.deep.equal([agent.profile.agentId]);
      const timers = timersOf(await eventsOf(agent.handle));
      expect(timers, "all that the window costs").to.have.length(1);
      expect(timers[0]).to.be.within(WINDOW_MS - LATE_MS, WINDOW_MS);
      expect(await bundledOf(agent)).to.include({ erased: true, provenAt: null });
      expect(await agent.submit(machineArchive, replayOfCreate, machineArchive)).to.deep.equal([
        refused("KEY_DELIVERY_UNPROVEN"),
        proven,
        { kind: "archive", changed: true },
      ]);
      expect((await bundledOf(agent)).provenAt).to.be.within(until, await stage.now());
      await stage.skip(24 * HOUR_MS);
      expect(closed).to.have.length(1);
    }, options);
  });

  it("a create never committed is given up: its account is closed, and then the actor ends", () => {
    const { closed, options } = closing(() => Promise.resolve("discarded"));
    return play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const { agent, until } = await begin(stage);
      await stage.skipTo(until);
      await ended(stage, agent);
      const { closeTime, status } = await agent.handle.describe();
      expect(status.name).to.equal("COMPLETED");
      expect(closeTime?.getTime()).to.be.within(until, until + 10 * SECOND_MS + LATE_MS);
      expect(closed).to.deep.equal([agent.profile.agentId]);
      expect((await ledger.state()).accounts).to.deep.equal({ active: 0, paused: 0, closed: 1 });
      expect((await ledger.submit(account.paying(account.request(1))))[0]).to.deep.equal({
        kind: "no_account",
      });
      // The agent was never disclosed: neither a record nor a wallet is looked after.
      expect([...stage.projections.agents.keys()]).to.deep.equal([]);
    }, options);
  });

  it("a create given up whose ledger fails for long stays so in later runs, and then ends", () => {
    const FAILS = 12;
    const { closed, options } = closing(() => Promise.resolve("discarded"));
    let [followed, failed] = [0, 0];
    const activities = {
      ...options.activities,
      followInLedger: () => {
        followed += 1;
        if (followed > FAILS) return Promise.resolve();
        failed += 1;
        return Promise.reject(new Error("no ledger answers"));
      },
    };
    return play(
      async (stage) => {
        const { agent, until } = await begin(stage, { rollOverAfterEvents: 20 });
        const { runId } = await agent.handle.describe();
        await stage.skipTo(until);
        await ended(stage, agent);
        const last = await agent.handle.describe();
        expect(last.status.name).to.equal("COMPLETED");
        expect(last.runId, "rolled over meanwhile").not.to.equal(runId);
        expect([closed, failed]).to.deep.equal([[agent.profile.agentId], FAILS]);
        expect([...stage.projections.agents.keys()], "records written").to.deep.equal([]);
      },
      { ...options, activities },
    );
  });

  it("an agent that is archived in its window is not over before the window's end", () => {
    const { closed, options } = committed();
    return play(async (stage) => {
      await withAccount(stage);
      const { agent, until } = await begin(stage);
      await agent.submit(byPerson);
      await stage.skipTo(until - 60 * SECOND_MS);
      expect((await agent.handle.describe()).status.name).to.equal("RUNNING");
      await ended(stage, agent);
      expect((await agent.handle.describe()).closeTime?.getTime()).to.be.within(until, until + LATE_MS);
      expect(closed).to.have.length(1);
    }, options);
  });

  it("a failing end of the window is repeated; the actor answers meanwhile, and only time counts", () => {
    const FAILS = 10;
    const { closed, options } = closing((call) =>
      call <= FAILS ? Promise.reject(new Error("the folder is full")) : Promise.resolve("committed"),
    );
    return play(async (stage) => {
      const { agent, until } = await begin(stage);
      await stage.skipTo(until + 20 * SECOND_MS);
      expect(closed.length).to.be.within(2, FAILS);
      expect(await bundledOf(agent)).to.include({ erased: false });
      const [renamed, replayed] = await agent.submit({ kind: "rename", name: "Another" }, replayOfCreate);
      expect(renamed).to.deep.equal({ kind: "renamed" });
      expect(replayed).to.deep.equal(proven);
      await stage.skip(HOUR_MS);
      // Each is tried for two minutes, unless the test server, where it is busy, overlooks the end of the first one.
      expect((await closings(agent, 1)).length).to.be.within(1, 2);
      expect(closed).to.have.length(FAILS + 1);
      expect(await bundledOf(agent)).to.include({ erased: true });
    }, options);
  });

  it("no worker at the window's end: what is sealed is erased once one is back, no proof before", () => {
    const { closed, options } = committed();
    return play(
      async (stage) => {
        const { agent, until } = await begin(stage);
        // Time is not skipped while a task waits for a worker, so what is left of the window is waited for.
        await stage.skipTo(until - LEFT_MS);
        let backAt = 0;
        await stage.withoutWorker(async () => {
          await eventsUntil(agent.handle, (events) =>
            events.some((event) => event.timerFiredEventAttributes),
          );
          expect(closed).to.deep.equal([]);
          backAt = await stage.now();
        });
        const [askedAt] = await closings(agent, 1);
        expect(backAt).to.be.at.least(until);
        expect(askedAt).to.be.at.least(backAt);
        expect(closed).to.deep.equal([agent.profile.agentId]);
        expect(await bundledOf(agent)).to.include({ erased: true, provenAt: null });
        expect(await agent.submit(replayOfCreate, machineArchive)).to.deep.equal([
          proven,
          { kind: "archive", changed: true },
        ]);
      },
      { ...options, isForgetful: true },
    );
  });

  it("runs that follow one another in the window keep its timer, and later ones its proof", () => {
    const { closed, options } = committed();
    return play(async (stage) => {
      const { agent, until } = await begin(stage, { rollOverAfterEvents: 40 });
      await rollOver(agent);
      await rollOver(agent);
      expect(await bundledOf(agent)).to.include({ deliverableUntil: until, erased: false, provenAt: null });
      await stage.skipTo(until - 2 * LATE_MS);
      expect(await agent.submit(replayOfCreate)).to.deep.equal([inWindow]);
      expect(closed).to.deep.equal([]);
      await stage.skipTo(until);
      expect((await closings(agent, 1))[0]).to.be.within(until, until + LATE_MS);
      await agent.submit(replayOfCreate);
      const { provenAt } = await bundledOf(agent);
      await rollOver(agent);
      expect(await bundledOf(agent)).to.include({ erased: true, provenAt });
      expect(await agent.submit(machineArchive)).to.deep.equal([{ kind: "archive", changed: true }]);
      await stage.skip(HOUR_MS);
      expect(closed).to.have.length(1);
    }, options);
  });
});
