import { expect } from "chai";
import { StaleLedger, StaleRecords } from "../../src/actors/actor-unavailable.ts";
import type { KnownRevisions } from "../../src/messages/ledger.ts";
import type { Payment, PaymentRequest } from "../../src/domain/ledger/payment.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import { judge } from "../../src/domain/ledger/judge.ts";
import { packLedger } from "../../src/domain/ledger/pack.ts";
import { decidedPayment } from "../../src/domain/ledger/pay.ts";
import { newLedger } from "../../src/domain/ledger/state.ts";
import { times } from "../support/world.ts";
import { eventsOf, runsOf, silentTasksOf } from "./support/history.ts";
import { StagedAccount, StagedLedger, withAccount } from "./support/ledger.ts";
import { useStage } from "./support/untimed.ts";

const again = (request: PaymentRequest): PaymentRequest => ({
  ...request,
  transactionId: `${request.transactionId}-again`,
});

const refusalOf = (submitted: Promise<unknown>): Promise<unknown> =>
  submitted.then(
    () => null,
    (error: unknown) => error,
  );

/** Nothing is swept while a test looks. */
const UNSWEPT_SECONDS = 3_600;

function decided(reply: LedgerReply | undefined) {
  if (reply?.kind !== "decided") throw new Error(`got ${JSON.stringify(reply)}`);
  return reply.decision;
}

describe("workflow ledger: roll-over by continue-as-new", () => {
  const play = useStage();

  it("four callers at once over many runs: each command is answered once, in its caller's order", () =>
    play(async (stage) => {
      const CALLERS = 4;
      const EACH = 20;
      const { account, ledger } = await withAccount(
        stage,
        { budgetCents: 60, autoApprovalThresholdCents: null },
        { rollOverAfterEvents: 60, sweepAfterSeconds: UNSWEPT_SECONDS },
      );
      const call = async (): Promise<readonly number[]> => {
        const sequences: number[] = [];
        for (let number = 0; number < EACH; number += 1) {
          const [paid, read] = await ledger.submit(account.paying(account.request(1)), {
            kind: "read_payment",
            agentId: account.agentId,
            transactionId: "txn_of_nobody",
          });
          sequences.push(decided(paid).sequence);
          expect(read).to.deep.equal({ kind: "not_open" });
        }
        return sequences;
      };
      const answered = await Promise.all(times(CALLERS, call));
      for (const sequences of answered)
        expect(sequences).to.deep.equal(sequences.toSorted((one, other) => one - other));
      expect(answered.flat().toSorted((one, other) => one - other)).to.deep.equal(
        times(CALLERS * EACH, (index) => index + 1),
      );
      const { open, reserved, spent } = await account.totals();
      expect([reserved + spent, open], "what is denied stays open until it is told").to.deep.equal([60, 80]);
      const runs = await runsOf(stage.client, ledger.handle.workflowId);
      expect(runs.length).to.be.at.least(4);
      const taken = runs.flat().filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes);
      expect(taken, "and the one that opened the account").to.have.length(CALLERS * EACH + 1);
      expect(runs.flatMap(silentTasksOf)).to.deep.equal([]);
    }));

  it("payments, holds, caps, keys and a pause come through: all is there in a later run", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage, { rollOverAfterEvents: 80 });
      const [account, paused] = await ledger.open(2);
      if (account === undefined || paused === undefined) throw new Error("there are two");
      await ledger.cap(null, 1, 9_000);
      await ledger.submit({ kind: "pause", agentId: paused.agentId });
      const held = await account.pay(6_000);
      await account.finish(held);
      const paid: Payment[] = [];
      for (let number = 0; number < 20; number += 1) paid.push(await account.payThrough(10));
      expect((await runsOf(stage.client, ledger.handle.workflowId)).length).to.be.at.least(2);
      expect(stage.rail.sent).to.deep.equal(paid.map(({ request }) => request.transactionId));
      const replays = await ledger.submit(...paid.map(({ request }) => account.paying(again(request))));
      expect(replays).to.deep.equal(paid.map(() => ({ kind: "recorded" })));
      expect((await account.pay(2_801)).denial?.code).to.equal("PROJECT_CAP_EXCEEDED");
      expect((await paused.pay(1)).denial?.code).to.equal("AGENT_PAUSED");
      const { payment } = await account.resolve("approve", held);
      await account.finish(payment);
      const approval = stage.client.workflow.getHandle(`approval/${held.request.approvalId}`);
      expect(await approval.result()).to.equal("approved");
      expect(await account.totals()).to.deep.include({ spent: 6_200, reserved: 0 });
      expect((await ledger.state()).project).to.deep.equal({
        cap: { capCents: 9_000, version: 2 },
        totals: { spentMc: 6_200_000, reservedMc: 0 },
        spendLimits: [],
      });
    }));

  it("what a person asked for is answered as before where the engine brings it again later", () =>
    play(async (stage) => {
      const { account, ledger } = await withAccount(stage, {}, { rollOverAfterEvents: 60 });
      const { agentId } = account;
      const change = {
        kind: "change_policy",
        agentId,
        patch: { budgetCents: 9_000 },
        version: 1,
        requestId: "req_1",
      } as const;
      const [first] = await ledger.submit(change);
      expect(first).to.include({ kind: "policy", policyVersion: 2 });
      const runs = async () => (await runsOf(stage.client, ledger.handle.workflowId)).length;
      while ((await runs()) < 2) await ledger.submit({ kind: "follow_rules", teamId: null, version: 0 });
      expect(await ledger.submit(change)).to.deep.equal([first]);
    }));
});

describe("workflow ledger: a batch", () => {
  const play = useStage();

  it("in which one command throws answers `failed` for that one alone, and changes nothing by it", () =>
    play(async (stage) => {
      // Books as no ledger makes them: an account that holds less than what is open of it.
      const books = newLedger("organization", "project");
      const unstarted = { stage, place: { organizationId: "organization", projectId: "project" } };
      const [broken, sound] = [1, 2].map((number) => new StagedAccount(Object(unstarted), number));
      if (broken === undefined || sound === undefined) throw new Error("there are two");
      for (const account of [broken, sound]) judge(books, account.opening(), 1);
      const request = broken.request(100);
      const payment = decidedPayment(request, decided(judge(books, broken.paying(request), Date.now())));
      const account = books.accounts.get(broken.agentId);
      if (account === undefined) throw new Error("it was opened");
      account.usage.reservedMc = 0;
      const settings = { sweepAfterSeconds: UNSWEPT_SECONDS };
      const ledger = await StagedLedger.start(stage, settings, packLedger(books, Date.now()));
      const at = Date.now();
      const { transactionId } = payment.request;
      const failing = broken.confirmation({
        transactionId,
        revision: payment.revision,
        payment,
        outcome: { result: { status: "settled" }, at },
      });
      const pay = () => sound.paying(sound.request(10));
      const replies = await ledger.submit(pay(), failing, pay(), failing);
      expect(replies.map(({ kind }) => kind)).to.deep.equal(["decided", "failed", "decided", "failed"]);
      const booked = await ledger.books();
      expect(booked.map(({ open, reservedCents }) => [open.length, reservedCents])).to.deep.equal([
        [1, 0],
        [2, 20],
      ]);
      // It goes on, and no task of it has failed.
      expect((await ledger.submit(pay())).map(({ kind }) => kind)).to.deep.equal(["decided"]);
      const events = await eventsOf(ledger.handle);
      expect(events.filter((event) => event.workflowTaskFailedEventAttributes)).to.deep.equal([]);
    }));

  it("is refused, and not in the history, where ledger or records are from a backup", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage);
      const [account] = await ledger.open(1);
      if (account === undefined) throw new Error("no account was opened");
      const command = account.paying(account.request(1));
      const pay = (known: KnownRevisions) => stage.actors.submitToLedger(ledger.place, [command], known);
      const { revision } = await ledger.state();
      const known = { ledger: revision, recorded: revision, isRead: true };
      const before = (await ledger.handle.describe()).historyLength;
      expect(await refusalOf(pay({ ...known, ledger: revision + 1 }))).to.be.instanceOf(StaleLedger);
      expect(await refusalOf(pay({ ...known, recorded: revision + 1 }))).to.be.instanceOf(StaleLedger);
      expect((await ledger.handle.describe()).historyLength).to.equal(before);
      expect((await pay(known)).revision).to.equal(revision + 1);
      expect(await refusalOf(pay({ ...known, recorded: revision - 1 }))).to.be.instanceOf(StaleRecords);
      // A server that has not read them just now may know older ones.
      const { replies } = await pay({ ...known, recorded: revision - 1, isRead: false });
      expect(replies.map(({ kind }) => kind)).to.deep.equal(["replayed"]);
    }));

  it("answers with the accounts that have changed, and with what they have forgotten", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage);
      const [first, second] = await ledger.open(2);
      if (first === undefined || second === undefined) throw new Error("there are two");
      const { accounts, closed } = await ledger.update(
        first.paying(first.request(10)),
        second.paying(second.request(10_001)),
      );
      expect(accounts.map(({ agentId, reservedCents }) => [agentId, reservedCents])).to.deep.equal([
        [first.agentId, 10],
      ]);
      expect(closed).to.deep.equal({});
    }));
});

describe("workflow ledger: what callers and operators see", () => {
  const play = useStage();

  it("its account query says what a payment would get, by the caller's time, and changes nothing", () =>
    play(async (stage) => {
      const { account } = await withAccount(stage, { dailySpendLimitCents: 150 });
      const { createdAt } = await account.payThrough(100);
      const asked = { rail: "card", recipient: "shop", amountMc: 51_000, fingerprint: "like" } as const;
      const today = await account.view(createdAt, asked);
      expect(today).to.include({ spentCents: 100, reservedCents: 0, todayCents: 100, todayCount: 1 });
      expect(today?.assessment?.denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
      const tomorrow = await account.view(createdAt + 86_400_000, asked);
      expect(tomorrow).to.include({ todayCents: 0, todayCount: 0, lastHourCount: 0, remainingCents: 9_900 });
      expect(tomorrow?.assessment).to.deep.equal({
        denial: null,
        flaggedByRuleTypes: [],
        wouldHaveFlagged: [],
      });
      expect((await account.view(createdAt))?.assessment).to.equal(null);
      expect((await account.booked())?.sequence).to.equal(1);
    }));

  it("its state query counts accounts by their status, what is open, and what is remembered", () =>
    play(async (stage) => {
      const ledger = await StagedLedger.start(stage);
      const [paying, paused, closed] = await ledger.open(3);
      if (paying === undefined || paused === undefined || closed === undefined)
        throw new Error("there are three");
      await paying.payThrough(100);
      await paying.pay(50);
      await ledger.submit({ kind: "pause", agentId: paused.agentId });
      const held = await closed.pay(6_000);
      await ledger.submit(closed.following("archived"));
      expect(await ledger.state()).to.deep.include({
        accounts: { active: 1, paused: 1, closed: 1 },
        droppedAccounts: 0,
        openPayments: 2,
        closedKeys: 1,
        project: {
          cap: { capCents: null, version: 1 },
          totals: { spentMc: 100_000, reservedMc: 50_000 },
          spendLimits: [],
        },
      });
      const { denial } = (await closed.booked())?.open[0]?.payment ?? held;
      expect(denial?.code).to.equal("AGENT_ARCHIVED");
    }));
});
