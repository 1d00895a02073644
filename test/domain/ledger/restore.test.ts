import * as fc from "fast-check";
import { expect } from "chai";
import { approvalDocument, paymentIn, transactionDocument } from "../../../src/store/payment-records.ts";
import {
  booked as withBooking,
  type Books,
  capturedInFull,
  NO_BOOKS,
} from "../../../src/domain/ledger/books.ts";
import { UTC_CALENDAR } from "../../../src/domain/ledger/calendar.ts";
import { recordedAmounts } from "../../../src/domain/ledger/recorded-amounts.ts";
import {
  type Payment,
  settle,
  withoutPublished,
  withoutTexts,
  withTexts,
} from "../../../src/domain/ledger/payment.ts";
import { amountsOf } from "../../../src/domain/ledger/amounts.ts";
import { packLedger, unpackLedger } from "../../../src/domain/ledger/pack.ts";
import {
  PaymentsOfRecords,
  type RecordedAccount,
  type RecordedProject,
  restoredLedger,
} from "../../../src/domain/ledger/restore.ts";
import { judge } from "../../../src/domain/ledger/judge.ts";
import { type Account, type Ledger, type Level, levelOf, NO_CAP } from "../../../src/domain/ledger/state.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { KEY, TestAccount } from "../support/account.ts";
import { SECOND } from "../support/actor.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { runs } from "./actions.ts";
import type { AccountModel } from "./book.ts";
import { LedgerRun } from "./run.ts";
import { BOUNDS, type LedgerWorld } from "./world.ts";

const SECONDS = shortOrSoak(1, 120);
const LAST_RUN_MS = 300_000;

/** As the command waits until nothing is under way. */
const QUIET_MS = 10 * SECOND;

/** What the records make of a payment; which must be all of it. */
function recordedPayment(whole: Payment, teamId: string, agentId: string): Payment {
  // Warnings are published, and in no record.
  const { warnings: _warnings, ...payment } = whole;
  const profile = { organizationId: "org-1", projectId: "project-1", teamId, agentId, name: "Agent" };
  const record = transactionDocument(profile, payment);
  expect(paymentIn(record, approvalDocument(profile, payment))).to.deep.equal(withoutPublished(payment));
  expect(recordedAmounts(record)).to.deep.equal(amountsOf(payment));
  // The book compares the order of fields, too.
  return payment;
}

function paymentsOf(world: LedgerWorld, { agentId, teamId }: AccountModel): PaymentsOfRecords {
  const payments = new PaymentsOfRecords();
  for (const booked of world.model.payments.filter((each) => each.agentId === agentId)) {
    const payment = recordedPayment(withTexts(booked.payment, booked.request), teamId, agentId);
    payments.add({ ...payment, wasHeld: payment.approval !== null });
    if (payment.phase !== "done") payments.open(payment);
  }
  return payments;
}

/** What the agent's actor and record say of it. */
function recordedAccount(agent: AccountModel, lost: Account, payments: PaymentsOfRecords): RecordedAccount {
  const { agentId, keyId, policy, policyVersion, status, teamId } = agent;
  return {
    agentId,
    teamId,
    name: lost.name,
    keyId,
    revokedKeyId: lost.revokedKeyId,
    status: status === "paused" ? "paused" : "active",
    isArchived: status === "closed",
    agentRevision: lost.followedRevision,
    policy,
    policyVersion,
    rulesVersion: lost.rulesVersion,
    isUnmirrored: false,
    recordedRevision: lost.confirmedRevision,
    knownRevision: lost.revision,
    updatedAt: lost.updatedAt,
    payments: payments.all,
  };
}

const levelIn = (ledger: Ledger, id: string): Level =>
  id === "project" ? ledger.project : levelOf(ledger, id);

function recordsOf(world: LedgerWorld): RecordedProject {
  const { model, ledger } = world;
  const accounts: RecordedAccount[] = [];
  const others: RecordedProject["others"][number][] = [];
  for (const agent of model.agents.values()) {
    const payments = paymentsOf(world, agent);
    const lost = ledger.accounts.get(agent.agentId);
    const isDropped = agent.status === "closed" && payments.all.open.length === 0;
    if (lost !== undefined && !isDropped) accounts.push(recordedAccount(agent, lost, payments));
    else others.push({ teamId: agent.teamId, ...payments.all });
  }
  // Of a budget's version the record may be behind.
  const recorded = (id: string) => ({
    cap: { ...model.capOf(id), version: levelIn(ledger, id).recordedCapVersion },
    rulesVersion: model.rules.get(id) ?? 0,
  });
  return {
    organizationId: "org-1",
    projectId: "project-1",
    revision: ledger.revision,
    project: recorded("project"),
    teams: new Map([...ledger.teams.keys()].map((id) => [id, recorded(id)])),
    accounts,
    others,
    calendar: ledger.calendar,
    droppedAccounts: model.agents.size - accounts.length,
  };
}

/** Puts the ledger that the records have in the place of the one that is lost, and tells the book what no record says. */
function lose(world: LedgerWorld): void {
  const { model, ledger: lost } = world;
  world.now += QUIET_MS;
  world.last = null;
  const restored = restoredLedger(recordsOf(world), world.now, BOUNDS);
  const packed: ReturnType<typeof packLedger> = JSON.parse(JSON.stringify(packLedger(restored, world.now)));
  world.ledger = unpackLedger(packed, BOUNDS);
  expectNewVersions(world);
  for (const agent of model.agents.values()) agent.events = [];
  for (const booked of model.payments) {
    const open = world.ledger.accounts.get(booked.agentId)?.open.get(booked.request.transactionId);
    booked.isWithdrawn = open?.isWithdrawn === true;
    booked.payment = withoutTexts(booked.payment);
  }
  for (const account of world.ledger.accounts.values()) {
    // A day on which money was only given back has left no record, and nothing counts on it.
    const date = lost.accounts.get(account.agentId)?.usage.day.date ?? "";
    if (date > account.usage.day.date) account.usage.day = { date, amountMc: 0, count: 0 };
    world.closedBefore.set(account.agentId, account.closed - account.sequence + account.open.size);
  }
}

/** A version that somebody may have read of the lost ledger never comes again. */
function expectNewVersions({ ledger, model }: LedgerWorld): void {
  for (const id of ["project", ...ledger.teams.keys()]) {
    const { cap } = levelIn(ledger, id);
    expect(cap.version, id).to.be.greaterThan(model.capOf(id).version);
    model.caps.set(id, cap);
  }
  for (const [id, agent] of model.agents) {
    const account = ledger.accounts.get(id);
    if (account === undefined) continue;
    expect(account.policyVersion, id).to.be.greaterThan(agent.policyVersion);
    agent.policyVersion = account.policyVersion;
  }
}

/** The ledger that the records have of a test's account. */
function restoredOf({ ledger, now, state }: TestAccount, payments: PaymentsOfRecords): Ledger {
  const { agentId, keyId, name, policy, policyVersion, revision, revokedKeyId, teamId, updatedAt } = state;
  const level = { cap: NO_CAP, rulesVersion: 0 };
  return restoredLedger(
    {
      organizationId: ledger.organizationId,
      projectId: ledger.projectId,
      revision: ledger.revision,
      project: level,
      teams: new Map([[teamId, level]]),
      accounts: [
        {
          agentId,
          teamId,
          name,
          keyId,
          revokedKeyId,
          status: state.status === "paused" ? "paused" : "active",
          isArchived: false,
          agentRevision: 1,
          policy,
          policyVersion,
          rulesVersion: 0,
          isUnmirrored: false,
          recordedRevision: revision,
          knownRevision: revision,
          updatedAt,
          payments: payments.all,
        },
      ],
      others: [],
      calendar: UTC_CALENDAR,
      droppedAccounts: 0,
    },
    now,
  );
}

/**
 * No record says on which day a payment was counted that a person has approved, where the clock had gone back over midnight before: it
 * counts on the earlier one then.
 */
const forward = runs.map((actions) => actions.filter((action) => action.kind !== "wait" || action.ms >= 0));

describe("a ledger that is restored from its records", function () {
  this.timeout(SECONDS * 1_000 + LAST_RUN_MS);

  it(`goes on as if it had never been lost: totals, limits, keys, caps (TEST_SEED=${seed})`, () => {
    let restorations = 0;
    const property = fc.property(forward, runs, (before, after) => {
      const run = new LedgerRun();
      run.play(before);
      lose(run.world);
      run.world.model.audit(run.world.ledger, run.world.now);
      run.play(after);
      restorations += 1;
    });
    const numRuns = Number.MAX_SAFE_INTEGER;
    fc.assert(property, { seed, numRuns, interruptAfterTimeLimit: SECONDS * 1_000 });
    expect(restorations).to.be.greaterThan(0);
    process.stdout.write(`      ${restorations} restorations\n`);
  });

  it("the record of a payment that is charged in full at once has the time of that, and no sums", () => {
    const account = new TestAccount();
    const { agentId } = account.state;
    const place = { organizationId: "org-1", projectId: "project-1", teamId: "team-1" };
    const profile = { ...place, agentId, name: "Agent" };
    const payment = settle(account.pay(200), { status: "settled" }, account.now);
    const record = transactionDocument(profile, payment);
    const at = payment.books?.bookings[0]?.at;
    expect(record.ledgerState.books).to.deep.equal({ inFullAt: at });
    expect(record).not.to.have.any.keys("amounts", "moved");
    expect(recordedAmounts(record).capturedCents).to.equal(200);
    const inFull = payment.books ?? NO_BOOKS;
    const [one = capturedInFull(0)] = inFull.authorizations;
    const others: readonly Books[] = [
      withBooking(
        { ...NO_BOOKS, authorizations: [{ ...one, capturedMc: mcOf(50) }] },
        account.now,
        "2026-01-01",
      ),
      withBooking({ ...NO_BOOKS, authorizations: [one] }, account.now, "2026-01-01"),
      withBooking(inFull, account.now + SECOND, "2026-01-01"),
      { ...inFull, authorizations: [{ ...one, authorization: "auth_1" }] },
      {
        ...inFull,
        answers: [{ authorization: "auth_1", position: 0, refusal: null, mc: 1, merchant: "", at: 1 }],
      },
      { ...inFull, authorizations: [{ ...one, creditedMc: mcOf(10) }] },
    ];
    for (const books of others)
      expect(paymentIn(transactionDocument(profile, { ...payment, books }), null).books).to.deep.equal(books);
  });

  it("a record that was read for the lost ledger is not taken for new", () => {
    const account = new TestAccount();
    const { transactionId } = account.paid(100).request;
    const read = account.network(transactionId, { creditedMc: mcOf(10) });
    const recordsCheckedThrough = account.state.closed;
    const recorded = account.network(transactionId, { creditedMc: mcOf(30) });
    const { now } = account;
    const { agentId } = account.state;
    const payments = new PaymentsOfRecords();
    payments.add({ ...recorded, wasHeld: false });
    const restored = restoredOf(account, payments);
    const books = recorded.books?.authorizations ?? [];
    const late = {
      kind: "book",
      agentId,
      transactionId,
      books,
      closed: read,
      recordsCheckedThrough,
    } as const;
    expect(judge(restored, late, now).kind).to.equal("records_check_required");
    expect(restored.accounts.get(agentId)?.usage.spentMc).to.equal(mcOf(70));
  });

  it("a stop that revoked a key holds after a resume, though the agent's actor still has the key", () => {
    const account = new TestAccount();
    const payment = account.pay(100);
    account.judge({ kind: "stop_accounts", teamId: null, revokeKeys: true });
    const payments = new PaymentsOfRecords();
    payments.add({ ...payment, wasHeld: false });
    payments.open(payment);
    const restored = restoredOf(account, payments);
    const { agentId } = account.state;
    const follow = {
      kind: "follow_agent",
      agentId,
      revision: 2,
      name: "Renamed",
      isArchived: false,
    } as const;
    judge(restored, { ...follow, keyId: KEY }, account.now);
    expect(restored.accounts.get(agentId)).to.include({ name: "Renamed", keyId: null, revokedKeyId: KEY });
    judge(restored, { kind: "resume", agentId }, account.now);
    const { transactionId } = payment.request;
    const asked = judge(restored, { kind: "request_permission", agentId, transactionId }, account.now);
    expect(asked).to.deep.equal({ kind: "permission", permission: { kind: "withdraw" } });
  });

  it("a refund is given back once, though the payment's record is from before it", () => {
    const account = new TestAccount();
    const { transactionId } = account.paid(100).request;
    const old = account.network(transactionId, { creditedMc: mcOf(10) });
    account.network(transactionId, { creditedMc: mcOf(30) });
    const books = [{ ...capturedInFull(mcOf(100)), creditedMc: mcOf(30) }];
    const recordsCheckedThrough = account.state.closed;
    const again = { kind: "book", transactionId, books, closed: old, recordsCheckedThrough } as const;
    expect(account.do(again).kind).to.equal("records_check_required");
    expect(account.state.usage.spentMc).to.equal(mcOf(70));
  });
});
