import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { LedgerCommand } from "../../src/domain/ledger/commands.ts";
import { LEDGER_SETTINGS } from "../../src/messages/ledger.ts";
import { times, until } from "../support/world.ts";
import { gate, SETTLED } from "./support/doubles.ts";
import {
  actionsOf,
  activitiesOf,
  afterActivities,
  atOnceMax,
  completedOf,
  eventsOf,
  eventsUntil,
  inputsOf,
  silentTasksOf,
  timeOf,
} from "./support/history.ts";
import { containers, StagedLedger, type StagedAccount, withAccount } from "./support/ledger.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";
import { useStage } from "./support/untimed.ts";

const play = useTimedStage();

const SWEEP_MS = LEDGER_SETTINGS.sweepAfterSeconds * 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Time that is skipped runs on while something is done, for as long as a busy machine takes for it. */
const LATE_MS = 30_000;
/** For so long nothing is to happen. */
const QUIET_MS = 500;

const sweeps = async (ledger: StagedLedger, name: string): Promise<number> =>
  activitiesOf(await eventsOf(ledger.handle)).filter((each) => each === name).length;

/** So many payments of each account, decided in one update by a server that is gone after it. */
async function paidInOne(
  ledger: StagedLedger,
  accounts: readonly StagedAccount[],
  count: number,
  ...more: readonly LedgerCommand[]
): Promise<readonly string[]> {
  const payments = accounts.flatMap((account) =>
    times(count, () => ({ account, request: account.request(1) })),
  );
  const replies = await ledger.submit(
    ...payments.map(({ account, request }) => account.paying(request)),
    ...more,
  );
  expect(replies.filter(({ kind }) => kind === "decided")).to.have.length(payments.length);
  return payments.map(({ request }) => request.transactionId);
}

async function sweptAfter(stage: TimedStage, ledger: StagedLedger, activities: number): Promise<void> {
  await stage.skip(SWEEP_MS + 500);
  await afterActivities(ledger.handle, activities);
}

describe("workflow ledger: what is unconfirmed, the ledger carries out itself", () => {
  it("a payment whose server is gone is sent by the ledger after 10 s, once, even if one is late", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const payment = await account.pay(100);
      const { transactionId } = payment.request;
      await stage.skip(SWEEP_MS + 500);
      const events = await afterActivities(ledger.handle, 2);
      const sweep = events.find((event) => event.activityTaskScheduledEventAttributes);
      if (sweep === undefined) throw new Error("nothing was swept");
      expect(timeOf(sweep) - payment.createdAt).to.be.within(SWEEP_MS, SWEEP_MS + LATE_MS);
      expect(activitiesOf(events).toSorted()).to.deep.equal(["executePayments", "writeAccounts"]);
      expect(stage.rail.sent).to.deep.equal([transactionId]);
      expect(stage.projections.status(transactionId)).to.equal("approved");
      expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
      const late = account.confirmation(await account.execute(payment));
      await ledger.submit(late, late);
      expect([...stage.rail.taken]).to.deep.equal([[transactionId, 100]]);
      expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
    }));

  it("a payment that no other follows costs two updates and a timer, and no sweep", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const opened = (await eventsOf(ledger.handle)).length;
      const done = await account.execute(await account.pay(100));
      const { agentId, revision } = (await account.booked()) ?? { agentId: "", revision: 0 };
      const records = [{ agentId, revision: revision + 1 }];
      await ledger.submit(account.confirmation(done), { kind: "confirm_records", records });
      await stage.skip(MINUTE_MS);
      const events = await eventsOf(ledger.handle);
      expect(actionsOf(events.slice(opened))).to.deep.equal({
        updates: 2,
        timers: 1,
        searchAttributes: 0,
        activities: 0,
      });
      expect(stage.rail.sent).to.have.length(1);
      expect(silentTasksOf(events)).to.deep.equal([]);
    }));

  it("45 payments of three agents are swept by three activities, of 20, 20 and 5", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage);
      const accounts = await ledger.open(3);
      const payments = await paidInOne(ledger, accounts, 15);
      await stage.skip(SWEEP_MS + 500);
      // The records follow what was paid.
      const events = await afterActivities(ledger.handle, 4);
      const sizes = inputsOf(events, "executePayments").map(
        (input) => Object(input).payments.length as number,
      );
      expect(sizes.slice(0, 3)).to.deep.equal([20, 20, 5]);
      // What a busy machine did not get through within its 15 s is swept again.
      for (const account of accounts) while ((await account.totals()).open > 0) await stage.skip(SWEEP_MS);
      expect([...stage.rail.taken.keys()].toSorted()).to.deep.equal(payments.toSorted());
      expect(stage.rail.sent.length).to.be.within(payments.length, payments.length + stage.notSwept.length);
      for (const account of accounts)
        expect(await account.totals()).to.deep.equal({ spent: 15, reserved: 0, open: 0 });
      expect(silentTasksOf(await eventsOf(ledger.handle))).to.deep.equal([]);
    }));

  it("a payment whose rail fails holds up none beside it, and is tried less often until it works", () => {
    let isDown = true;
    return play(
      async (stage) => {
        const { account, ledger } = await withAccount(stage);
        const [failing] = await paidInOne(ledger, [account], 3);
        await sweptAfter(stage, ledger, 2);
        expect(await account.totals()).to.deep.equal({ spent: 2, reserved: 1, open: 1 });
        await stage.skip(HOUR_MS);
        const before = stage.notSwept.length;
        await stage.skip(HOUR_MS);
        expect(stage.notSwept.length - before, "in the second hour; at the first pace 360").to.be.within(
          8,
          24,
        );
        expect(new Set(stage.notSwept)).to.deep.equal(new Set([failing]));
        isDown = false;
        await account.payThrough(1);
        await stage.skip(SWEEP_MS + 500);
        while ((await account.totals()).open > 0) await stage.skip(100);
        expect(await account.totals()).to.deep.equal({ spent: 4, reserved: 0, open: 0 });
        expect(silentTasksOf(await eventsOf(ledger.handle))).to.deep.equal([]);
      },
      {
        rail: ({ sequence }) =>
          isDown && sequence === 1 ? Promise.reject(new Error("no answer")) : Promise.resolve(SETTLED),
      },
    );
  });

  it("while a rail call hangs, a pause and another payment are answered; then it ends as spent", () => {
    const hanging = gate();
    return play(
      async (stage) => {
        const { account, ledger } = await withAccount(stage);
        const payment = await account.pay(100);
        const called = stage.rail.nextCall();
        await stage.skip(SWEEP_MS + 500);
        await called;
        const { agentId } = account;
        const [paused, second] = await ledger.submit(
          { kind: "pause", agentId },
          account.paying(account.request(100)),
        );
        expect(paused).to.include({ kind: "account_status", status: "paused", changed: true });
        expect(second).to.nested.include({ kind: "decided", "decision.denial.code": "AGENT_PAUSED" });
        const open = (await account.booked())?.open ?? [];
        expect(open[0]?.payment).to.include({ phase: "sending", revision: payment.revision });
        hanging.open();
        await eventsUntil(ledger.handle, (events) =>
          events.some((event) => event.activityTaskCompletedEventAttributes),
        );
        while ((await account.totals()).spent === 0) await stage.skip(100);
        expect(stage.rail.sent).to.deep.equal([payment.request.transactionId]);
      },
      { rail: () => hanging.opened.then(() => SETTLED) },
    );
  });
});

describe("workflow ledger: unwritten records, caps and limits", () => {
  it("a record that can't be written holds up no other, and is tried at a slowing pace", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage);
      const [broken, whole] = await ledger.open(2);
      if (broken === undefined || whole === undefined) throw new Error("there are two");
      stage.projections.broken.add(broken.agentId);
      for (const { agentId } of [broken, whole]) await ledger.submit({ kind: "pause", agentId });
      await sweptAfter(stage, ledger, 1);
      expect(stage.projections.accounts.get(whole.agentId)).to.include({ status: "paused" });
      const [ofBroken, ofWhole] = [await broken.booked(), await whole.booked()];
      expect([ofBroken?.events.length, ofWhole?.events.length], "left to tell").to.deep.equal([1, 0]);
      await stage.skip(HOUR_MS);
      const before = stage.notSwept.length;
      await stage.skip(HOUR_MS);
      // Each time the engine repeats it for two minutes, some eight times; without slowing down that were 240.
      expect(stage.notSwept.length - before, "in the second hour").to.be.within(5, 80);
      stage.projections.broken.clear();
      while (stage.projections.accounts.get(broken.agentId) === undefined) await stage.skip(MINUTE_MS);
      await eventsUntil(ledger.handle, (events) => silentTasksOf(events).length === 0);
      expect((await broken.booked())?.events).to.deep.equal([]);
      expect(await sweeps(ledger, "writeAccounts"), "the other one's is written once").to.be.above(3);
    }));

  it("caps that are not in their records are written after 10 s, project and team at once", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage);
      const { teamId } = containers;
      await ledger.submit(
        { kind: "replace_project", version: 1, capCents: 1_000, teams: [] },
        { kind: "replace_team", teamId, version: 1, capCents: 500, agents: [] },
      );
      expect((await account.pay(501)).denial?.code).to.equal("TEAM_CAP_EXCEEDED");
      await stage.skip(SWEEP_MS - 2_000);
      expect(stage.projections.caps.size, "before the bound").to.equal(0);
      await stage.skip(2_500);
      const events = await eventsUntil(ledger.handle, (all) => activitiesOf(all).includes("writeCaps"));
      expect(inputsOf(events, "writeCaps").map((input) => Object(input).caps.length as number)).to.deep.equal(
        [2],
      );
      await afterActivities(ledger.handle, 1);
      expect([...stage.projections.caps]).to.deep.equal([
        ["", { capCents: 1_000, version: 3 }],
        [teamId, { capCents: 500, version: 2 }],
      ]);
      await stage.skip(HOUR_MS);
      expect(await sweeps(ledger, "writeCaps"), "never again").to.equal(1);
    }));

  it("a cap that a server has written down in time is not written again", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage);
      const { caps } = await ledger.cap(null, 1, 1_000);
      await ledger.submit({
        kind: "confirm_caps",
        caps: caps.map(({ cap: { version }, teamId }) => ({ teamId, version })),
      });
      await stage.skip(HOUR_MS);
      expect(activitiesOf(await eventsOf(ledger.handle))).to.deep.equal([]);
    }));

  it("a changed policy is mirrored at once; one wallet that fails holds up no other's limits", () => {
    const tried: string[] = [];
    let isDown = true;
    return play(
      async (stage) => {
        const ledger = await StagedLedger.start(stage);
        const accounts = await ledger.open(2);
        const [failing, other] = accounts.map(({ agentId }) => agentId);
        const changes = accounts.map(
          ({ agentId }) =>
            ({ kind: "change_policy", agentId, patch: { budgetCents: 9_000 }, version: 1 }) as const,
        );
        await ledger.submit(...changes);
        await afterActivities(ledger.handle, 1);
        expect(tried).to.deep.equal([failing, other]);
        await stage.skip(HOUR_MS);
        expect(tried.filter((agentId) => agentId === other)).to.have.length(1);
        let before = tried.length;
        await stage.skip(HOUR_MS);
        expect(tried.length - before, "in the second hour").to.be.within(5, 80);
        isDown = false;
        before = tried.length;
        await stage.skip(HOUR_MS);
        expect(tried.slice(before), "until it succeeds, and never after").to.deep.equal([failing]);
      },
      {
        limits: {
          mirror(agentId) {
            tried.push(agentId);
            const fails = isDown && agentId === tried[0];
            return fails ? Promise.reject(new Error("no chain")) : Promise.resolve();
          },
        },
      },
    );
  });
});

/** On an engine whose time is real: the time-skipping server stands still at times while so many calls hang. */
describe("workflow ledger: a rail that hangs", () => {
  const playNow = useStage();

  it("a rail that hangs for 240 payments takes no room from records, caps and limits", () => {
    const hanging = gate();
    const mirrored: string[] = [];
    return playNow(
      async (stage) => {
        const ledger = await StagedLedger.start(stage, { sweepAfterSeconds: 1 });
        const [first, second] = await ledger.open(2);
        if (first === undefined || second === undefined) throw new Error("there are two");
        const cap = { kind: "replace_project", version: 1, capCents: 50_000, teams: [] } as const;
        const payments = await paidInOne(ledger, [first, second], 120, cap);
        const called = stage.rail.nextCall();
        await called;
        await ledger.ask("policy", {
          kind: "change_policy",
          agentId: first.agentId,
          patch: { budgetCents: 9_000 },
          version: 1,
        });
        // None of the payments has ended, but all of these have.
        await eventsUntil(ledger.handle, (events) => {
          const completed = completedOf(events);
          return ["writeAccounts", "writeCaps", "mirrorLimits"].every((name) => completed.includes(name));
        });
        expect(stage.projections.caps.get("")).to.include({ capCents: 50_000 });
        await until("the second account's record", () =>
          Promise.resolve(stage.projections.accounts.get(second.agentId)?.reservedCents === 120 || null),
        );
        expect(mirrored).to.deep.equal([first.agentId]);
        expect(atOnceMax(await eventsOf(ledger.handle), "executePayments")).to.equal(6);
        // A call that hangs is given up after 15 s, and tried again: the history is at rest between two such moments.
        await until("nothing happens for a while", async () => {
          const before = (await ledger.handle.describe()).historyLength;
          await sleep(QUIET_MS);
          return (await ledger.handle.describe()).historyLength - before <= 10 || null;
        });
        hanging.open();
        for (const account of [first, second])
          await until("payments that hung end", async () => (await account.totals()).open === 0 || null);
        expect(stage.rail.taken.size).to.equal(payments.length);
      },
      {
        rail: () => hanging.opened.then(() => SETTLED),
        limits: {
          mirror(agentId) {
            mirrored.push(agentId);
            return Promise.resolve();
          },
        },
      },
    );
  });
});
