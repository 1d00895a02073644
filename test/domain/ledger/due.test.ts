import { expect } from "chai";
import { accountDueAt, dueNow, paymentDueAt, postpone } from "../../../src/domain/ledger/due.ts";
import { KEY, TestAccount } from "../support/account.ts";
import { DAY, HOUR, NOON, profile, SECOND } from "../support/actor.ts";

const SWEEP_MS = 10 * SECOND;
const settings = { sweepAfterMs: SWEEP_MS };
const { agentId } = profile;

/** A ledger in which nothing is left to do but what a test begins. */
function quiet(policy = {}): TestAccount {
  const account = new TestAccount(policy);
  recordAll(account);
  return account;
}

function recordAll(account: TestAccount): void {
  const { revision } = account.state;
  account.judge({ kind: "confirm_records", records: [{ agentId, revision }] });
}

const dueAt = (account: TestAccount, transactionId: string): number => {
  const open = account.state.open.get(transactionId);
  if (open === undefined) throw new Error("it is not open");
  return paymentDueAt(account.state, open, settings) - account.now;
};

/** What is due at so much after now. */
const kindsDue = (account: TestAccount, ms: number): string[] =>
  dueNow(account.ledger, settings, account.now + ms).due.map(({ kind }) => kind);

const sent = (account: TestAccount): string => account.pay(10).request.transactionId;

function confirm(account: TestAccount, transactionId: string): void {
  const { revision } = account.payment(transactionId);
  account.do({ kind: "confirm", transactionId, revision, outcome: null });
}

describe("what a ledger sees to itself", () => {
  it("nothing where all is done and published, for ever", () => {
    const account = quiet();
    expect(dueNow(account.ledger, settings, NOON + 365 * DAY)).to.deep.equal({ due: [], nextAt: Infinity });
    expect(accountDueAt(account.state, settings)).to.equal(Infinity);
  });

  it("a payment whose effects are unconfirmed, after the usual time, not a moment before", () => {
    const account = quiet();
    const id = sent(account);
    recordAll(account);
    expect(dueAt(account, id)).to.equal(SWEEP_MS);
    expect([kindsDue(account, SWEEP_MS - 1), kindsDue(account, SWEEP_MS)]).to.deep.equal([[], ["payment"]]);
    expect(dueNow(account.ledger, settings, account.now).nextAt).to.equal(account.now + SWEEP_MS);
  });

  it("a denied payment until its record is confirmed", () => {
    const account = quiet({ budgetCents: 0 });
    const id = sent(account);
    expect(dueAt(account, id)).to.equal(SWEEP_MS);
    confirm(account, id);
    expect(dueNow(account.ledger, settings, NOON + DAY)).to.deep.equal({ due: [], nextAt: Infinity });
  });

  it("a payment that waits on its rail is its settlement's, once that is known to follow it", () => {
    const account = quiet();
    const id = sent(account);
    const outcome = { result: { status: "pending" }, at: account.now } as const;
    account.do({ kind: "confirm", transactionId: id, revision: 2, outcome });
    expect(dueAt(account, id)).to.equal(Infinity);
    account.do({ kind: "confirm", transactionId: id, revision: 2, outcome });
    expect(dueAt(account, id)).to.equal(Infinity);
  });

  it("a payment on hold only once its approval's workflow has let twice the usual time pass", () => {
    const account = quiet({ autoApprovalThresholdCents: 0 });
    const id = sent(account);
    expect(dueAt(account, id), "not published yet").to.equal(SWEEP_MS);
    confirm(account, id);
    expect(dueAt(account, id)).to.equal(DAY + 2 * SWEEP_MS);
  });

  it("what was approved after the usual time, as any payment", () => {
    const account = quiet({ autoApprovalThresholdCents: 0 });
    const id = sent(account);
    confirm(account, id);
    account.now += HOUR;
    account.resolve("approve", id);
    expect(dueAt(account, id)).to.equal(SWEEP_MS);
  });

  it("a paused agent's payments at a slowing pace, at least once an hour", () => {
    const account = quiet();
    const id = sent(account);
    account.do({ kind: "pause" });
    expect(dueAt(account, id)).to.equal(SWEEP_MS);
    const paces: number[] = [];
    for (const waited of [SWEEP_MS, 3 * SWEEP_MS, HOUR, 5 * HOUR]) {
      account.now += waited;
      postpone(account.state, id, account.now, "waits");
      paces.push(dueAt(account, id));
    }
    expect(paces).to.deep.equal([SWEEP_MS, 4 * SWEEP_MS, HOUR, HOUR]);
  });

  it("what is withdrawn, or was waiting for a resume, at once", () => {
    const account = quiet();
    const id = sent(account);
    account.do({ kind: "pause" });
    account.now += HOUR;
    account.do({ kind: "resume" });
    expect(dueAt(account, id), "resumed").to.equal(0);
    account.do({ kind: "pause" });
    account.now += HOUR;
    account.follow({ keyId: null });
    expect(dueAt(account, id), "withdrawn").to.equal(0);
    postpone(account.state, id, account.now, "waits");
    expect(dueAt(account, id), "put off").to.equal(SWEEP_MS);
  });

  it("what was put off comes again after the usual time; what is not open is no matter", () => {
    const account = quiet();
    const id = sent(account);
    account.now += SWEEP_MS;
    postpone(account.state, id, account.now, "waits");
    postpone(account.state, "txn_none", account.now, "waits");
    expect(dueAt(account, id)).to.equal(SWEEP_MS);
  });

  it("a record that does not show the account as it is", () => {
    const account = quiet();
    account.change({ dailyVelocityLimit: 5 });
    expect([kindsDue(account, SWEEP_MS - 1), kindsDue(account, SWEEP_MS)]).to.deep.equal([[], ["record"]]);
    recordAll(account);
    expect(kindsDue(account, DAY)).to.deep.equal([]);
  });

  it("a team's record that does not show the version that an agent's budget has raised", () => {
    const account = quiet();
    account.change({ budgetCents: 5 });
    recordAll(account);
    expect([kindsDue(account, SWEEP_MS - 1), kindsDue(account, SWEEP_MS)]).to.deep.equal([[], ["cap"]]);
  });

  it("caps that their records do not show, of the project and of teams", () => {
    const account = quiet();
    account.cap(100, 50);
    const { due } = dueNow(account.ledger, settings, account.now + SWEEP_MS);
    expect(due).to.deep.equal([
      { kind: "cap", teamId: null },
      { kind: "cap", teamId: profile.teamId },
    ]);
    account.judge({
      kind: "confirm_caps",
      caps: due.map((each) => ({ teamId: "teamId" in each ? each.teamId : "", version: 2 })),
    });
    expect(kindsDue(account, DAY)).to.deep.equal([]);
  });

  it("a closed account's payments to their end, and then its record; then it is gone", () => {
    const account = quiet();
    const id = sent(account);
    account.archive();
    expect(kindsDue(account, SWEEP_MS)).to.have.members(["payment", "record"]);
    account.settle(id);
    expect(kindsDue(account, SWEEP_MS)).to.deep.equal(["record"]);
    recordAll(account);
    expect(dueNow(account.ledger, settings, NOON + DAY)).to.deep.equal({ due: [], nextAt: Infinity });
  });

  it("what is next is the soonest of all accounts, and what one account says is no later", () => {
    const account = quiet();
    account.open("agent-2", "team-2");
    const request = account.request(5);
    account.now += 3 * SECOND;
    const pay = { kind: "pay", agentId: "agent-2", keyId: KEY, approvalWindowSeconds: 60 } as const;
    account.judge({ ...pay, request, recordsCheckedThrough: 0 });
    account.now += SECOND;
    sent(account);
    const next = Math.min(
      ...[...account.ledger.accounts.values()].map((each) => accountDueAt(each, settings)),
    );
    expect(dueNow(account.ledger, settings, account.now).nextAt).to.equal(next);
    expect(next).to.equal(NOON + 3 * SECOND + SWEEP_MS);
  });
});
