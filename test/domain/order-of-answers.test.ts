import { expect } from "chai";
import { NEW_LEVEL } from "../../src/domain/ledger/state.ts";
import { KEY, TestAccount } from "./support/account.ts";
import { HOUR, human, NOON, profile } from "./support/actor.ts";

const FORBIDDEN = { code: "RECIPIENT_NOT_ALLOWED", level: "project" } as const;

/** What speaks against a payment, in the order in which it is answered; all of it at once is answered by the first. */
const OBSTACLES: readonly (readonly [answer: string, put: (account: TestAccount) => unknown])[] = [
  ["replayed", (account) => account.payReply(account.request(1, { keyHash: "the key" }))],
  ["inactive_key", (account) => account.follow({ keyId: "akey_2" })],
  ["records_check_required", (account) => forgetKeys(account)],
  ["stale_rules", (account) => account.judge({ kind: "follow_rules", teamId: profile.teamId, version: 7 })],
  ["too_many_open", (account) => void Array.from({ length: 3 }, () => account.pay(0, NEWEST))],
  ["AGENT_PAUSED", (account) => account.do({ kind: "pause" })],
  // Judged by the server: it goes with the command.
  [FORBIDDEN.code, () => undefined],
  ["PER_TRANSACTION_LIMIT_EXCEEDED", (account) => account.change({ perTransactionLimitCents: 99 })],
  ["BUDGET_EXCEEDED", (account) => account.change({ budgetCents: 99 })],
  ["DAILY_SPEND_LIMIT_EXCEEDED", (account) => account.change({ dailySpendLimitCents: 99 })],
  ["HOURLY_VELOCITY_EXCEEDED", (account) => account.change({ hourlyVelocityLimit: 0 })],
  ["DAILY_VELOCITY_EXCEEDED", (account) => account.change({ dailyVelocityLimit: 0 })],
  ["TEAM_CAP_EXCEEDED", (account) => setCap(account, profile.teamId)],
  ["PROJECT_CAP_EXCEEDED", (account) => setCap(account, null)],
  ["held", (account) => account.change({ autoApprovalThresholdCents: 99 })],
];

const NEWEST = { rulesVersions: { project: null, team: 7, agent: null } };

function forgetKeys(account: TestAccount): void {
  for (let count = 0; count < 3; count += 1) account.settle(account.pay(0, NEWEST).request.transactionId);
}

function setCap(account: TestAccount, teamId: string | null): void {
  const { project, teams } = account.ledger;
  // Earlier obstacles have changed what the budget covers.
  const { version } = (teamId === null ? project : (teams.get(teamId) ?? NEW_LEVEL)).cap;
  const agents: never[] = [];
  const command =
    teamId === null
      ? ({ kind: "replace_project", version, capCents: 99, teams: [] } as const)
      : ({ kind: "replace_team", teamId, version, capCents: 99, agents } as const);
  account.as("replaced", account.judge(command));
}

const BOUNDS = { openOfAgent: 3, closedKeys: 2 };

/** What a payment of 100 is answered where all of these are in its way; put there from the last to the first. */
function answerWith(obstacles: typeof OBSTACLES): string {
  const account = new TestAccount({}, NOON, BOUNDS);
  const isFull = obstacles.some(([answer]) => answer === "too_many_open");
  // What makes payments comes before what would refuse them.
  const first = obstacles.filter(([answer]) =>
    ["replayed", "records_check_required", "too_many_open"].includes(answer),
  );
  const isKnown = first.some(([answer]) => answer === "replayed");
  for (const [answer, put] of first) {
    if (answer === "records_check_required") put(account);
  }
  if (isKnown) {
    const request = account.request(1, { ...NEWEST, keyHash: "the key" });
    account.payReply(request, account.state.closed);
  }
  const open = account.state.open.size;
  if (isFull) for (let more = open; more < BOUNDS.openOfAgent; more += 1) account.pay(0, NEWEST);
  for (const [answer, put] of obstacles) {
    if (!["replayed", "records_check_required", "too_many_open"].includes(answer)) put(account);
  }
  const keyHash = isKnown ? "the key" : "another key";
  const areRecordsChecked = !obstacles.some(([answer]) => answer === "records_check_required");
  const isStale = obstacles.some(([answer]) => answer === "stale_rules");
  const request = account.request(100, { keyHash, ...(isStale ? {} : NEWEST) });
  const reply = account.do({
    kind: "pay",
    keyId: KEY,
    request,
    approvalWindowSeconds: 60,
    recordsCheckedThrough: areRecordsChecked ? account.state.closed : 0,
    ...(obstacles.some(([answer]) => answer === FORBIDDEN.code) ? { forbidden: FORBIDDEN } : {}),
  });
  if (reply.kind !== "decided") return reply.kind;
  return reply.decision.denial?.code ?? (reply.decision.approval === null ? "sent" : "held");
}

describe("the order in which a payment is answered", () => {
  for (const [place, [answer]] of OBSTACLES.entries()) {
    it(`${answer} comes before all that follow it`, () => {
      expect(answerWith(OBSTACLES.slice(place))).to.equal(answer);
    });

    it(`${answer} is answered where nothing else is in its way`, () => {
      expect(answerWith(OBSTACLES.slice(place, place + 1))).to.equal(answer);
    });
  }

  it("where nothing is in its way it is sent", () => {
    expect(answerWith([])).to.equal("sent");
  });

  it("an approval comes too late before it is checked again, and then in the same order", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 0 });
    const { transactionId } = account.pay(100).request;
    for (const [answer, put] of OBSTACLES.slice(5, -1)) if (answer !== "AGENT_PAUSED") put(account);
    const approve = { kind: "approve", transactionId, by: human, proof: "" } as const;
    const codes: (string | undefined)[] = [];
    for (const patch of [
      null,
      {},
      { perTransactionLimitCents: null },
      { budgetCents: 1_000 },
      { dailySpendLimitCents: null },
      { hourlyVelocityLimit: null },
      { dailyVelocityLimit: null },
    ]) {
      account.change(patch ?? {});
      const twin = new TestAccount();
      Object.assign(twin.ledger, structuredClone(account.ledger));
      const { payment } = twin.as(
        "payment",
        twin.do(patch === null ? { ...approve, forbidden: FORBIDDEN } : approve),
      );
      codes.push(payment.denial?.code);
    }
    // The hour's count and the day's leave the payment itself out, and it is the only one.
    expect(codes).to.deep.equal([
      FORBIDDEN.code,
      "PER_TRANSACTION_LIMIT_EXCEEDED",
      "BUDGET_EXCEEDED",
      "DAILY_SPEND_LIMIT_EXCEEDED",
      "HOURLY_VELOCITY_EXCEEDED",
      "DAILY_VELOCITY_EXCEEDED",
      "TEAM_CAP_EXCEEDED",
    ]);
    account.now += 24 * HOUR;
    expect(account.as("payment", account.do(approve)).payment.status).to.equal("expired");
  });
});
