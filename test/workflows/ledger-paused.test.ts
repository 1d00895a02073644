import { expect } from "chai";
import { layFences } from "../../src/rails/fences.ts";
import { LEDGER_SETTINGS } from "../../src/messages/ledger.ts";
import { gate, SETTLED } from "./support/doubles.ts";
import { activitiesOf, afterActivities, eventsOf, silentTasksOf } from "./support/history.ts";
import { type StagedAccount, withAccount } from "./support/ledger.ts";
import { type TimedStage, useTimedStage } from "./support/timed.ts";

const play = useTimedStage();

const SWEEP_MS = LEDGER_SETTINGS.sweepAfterSeconds * 1_000;
const HOUR_MS = 3_600_000;
const HELD_CENTS = 6_000;

type Stop = "pause" | "revoke" | "archive";

/** Stops an agent, as its servers tell the ledger; each in an update of its own. */
async function stop(account: StagedAccount, ...stops: readonly Stop[]): Promise<void> {
  const { agentId, ledger } = account;
  for (const each of stops) {
    await (each === "pause"
      ? ledger.ask("account_status", { kind: "pause", agentId })
      : ledger.ask("followed", account.following(each === "revoke" ? "revoked" : "archived")));
  }
}

async function pauseAndFence({ agentId, ledger }: StagedAccount): Promise<void> {
  const { fence } = await ledger.ask("account_status", { kind: "pause", agentId });
  if (fence === null) throw new Error("a payment is on its way");
  const { rail } = ledger.stage;
  await layFences({ card: rail, wallet: rail }, [fence]);
}

const resume = ({ agentId, ledger }: StagedAccount) =>
  ledger.ask("account_status", { kind: "resume", agentId });

/** How often the ledger has looked after its payments. */
const looks = async ({ ledger }: StagedAccount): Promise<number> =>
  activitiesOf(await eventsOf(ledger.handle)).filter((name) => name === "executePayments").length;

async function untilSettledOnce(
  stage: TimedStage,
  account: StagedAccount,
  ids: readonly string[],
): Promise<void> {
  while ((await account.totals()).open > 0) await stage.skip(100);
  expect([...stage.rail.taken.keys()].toSorted()).to.deep.equal(ids.toSorted());
  expect(silentTasksOf(await eventsOf(account.ledger.handle))).to.deep.equal([]);
}

describe("workflow ledger: while an agent is paused", () => {
  it("sends nothing that was decided before, however long; once resumed it goes on at once", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const { request } = await account.pay(100);
      await stop(account, "pause");
      await stage.skip(24 * HOUR_MS);
      expect(stage.rail.sent, "while paused").to.deep.equal([]);
      expect(stage.projections.status(request.transactionId)).to.equal("pending");
      expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 100, open: 1 });
      expect(await looks(account), "at a slowing pace").to.be.within(5, 40);
      await resume(account);
      await stage.skip(1_000);
      await untilSettledOnce(stage, account, [request.transactionId]);
      expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
    }));

  it("keeps out a process that decided before the pause, however late it comes", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await account.pay(100);
      await pauseAndFence(account);
      const late = await account.execute(payment);
      expect([late.revision, late.outcome, stage.rail.sent]).to.deep.equal([0, null, []]);
      await resume(account);
      await untilSettledOnce(stage, account, [payment.request.transactionId]);
    }));

  it("fences by its sweep where the server that paused the agent died before", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await account.pay(100);
      await stop(account, "pause");
      await stage.skip(2 * SWEEP_MS);
      await afterActivities(account.ledger.handle, 1);
      const late = await account.execute(payment);
      expect([late.revision, late.outcome, stage.rail.sent]).to.deep.equal([0, null, []]);
    }));

  it("sends nothing that a person approved before, neither by the server nor by itself", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const held = await account.pay(HELD_CENTS);
      await account.finish(held);
      const { payment } = await account.resolve("approve", held);
      await pauseAndFence(account);
      await account.finish(payment);
      await stage.skip(HOUR_MS);
      expect(stage.rail.sent, "while paused").to.deep.equal([]);
      await resume(account);
      await stage.skip(1_000);
      await untilSettledOnce(stage, account, [held.request.transactionId]);
    }));

  it("finds what a process sent and did not live to tell, and follows it to its end", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage);
      const payment = await account.pay(100);
      await stage.rail.send(account.profile, payment, 1);
      await stop(account, "pause", "revoke");
      await untilSettledOnce(stage, account, [payment.request.transactionId]);
      expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
    }));

  for (const [title, stops] of [
    ["its key is revoked", ["pause", "revoke"]],
    ["its key was revoked before", ["revoke", "pause"]],
    ["it is archived", ["pause", "archive"]],
  ] as const) {
    it(`releases what was decided when ${title}; who comes late sends nothing`, () =>
      play(async (stage) => {
        const { account } = await withAccount(stage);
        const payment = await account.pay(100);
        const { transactionId } = payment.request;
        await stop(account, ...stops);
        await afterActivities(account.ledger.handle, 1);
        while ((await account.totals()).open > 0) await stage.skip(100);
        expect(await account.totals()).to.deep.equal({ spent: 0, reserved: 0, open: 0 });
        expect(stage.projections.payments.get(transactionId)?.denial?.code).to.equal("AGENT_PAUSED");
        const late = await account.execute(payment);
        expect([late.payment.status, [...stage.rail.taken]]).to.deep.equal(["denied", []]);
      }));
  }

  it("lets a call that began before go on, and hears its end, though it was stopped meanwhile", () => {
    const hanging = gate();
    return play(
      async (stage) => {
        const { account } = await withAccount(stage);
        const { request } = await account.pay(100);
        const called = stage.rail.nextCall();
        await stage.skip(SWEEP_MS + 500);
        await called;
        await stop(account, "pause", "revoke");
        hanging.open();
        await untilSettledOnce(stage, account, [request.transactionId]);
        expect(await account.totals()).to.deep.equal({ spent: 100, reserved: 0, open: 0 });
      },
      { rail: () => hanging.opened.then(() => SETTLED) },
    );
  });
});
