import { expect } from "chai";
import { warningEvents } from "../../src/domain/events.ts";
import { mcOf } from "../../src/domain/money.ts";
import { shortfalls } from "../../src/domain/ledger/raises.ts";
import type { SpendLimit } from "../../src/domain/ledger/windows.ts";
import { TestAccount } from "./support/account.ts";
import { DAY, NOON, profile } from "./support/actor.ts";

const monthly = (limitCents: number): readonly SpendLimit[] => [{ period: "month", limitCents }];
const MIDNIGHT = Date.UTC(2026, 4, 13);
const MAY = Date.UTC(2026, 4, 1);

/** The limits that a payment brings to a threshold, and the thresholds. */
const reached = (account: TestAccount, cents: number): string[] =>
  (account.pay(cents).warnings ?? []).map(({ level, limit, percent }) => `${level} ${limit} ${percent}`);

describe("warnings before a limit is used up", () => {
  it("a payment that crosses 80 or 100 % of a limit tells so, at each level, and no other does", () => {
    const account = new TestAccount({
      budgetCents: 1_000,
      dailySpendLimitCents: 500,
      spendLimits: monthly(700),
    });
    account.cap(1_000, 600);
    expect(reached(account, 399)).to.deep.equal([]);
    expect(reached(account, 1)).to.deep.equal(["agent daily_spend 80"]);
    expect(reached(account, 100)).to.deep.equal(["agent daily_spend 100", "team cap 80"]);
    account.now += DAY;
    expect(reached(account, 100)).to.deep.equal(["agent month 80", "team cap 100"]);
    // A denied payment uses nothing.
    expect(reached(account, 500)).to.deep.equal([]);
  });

  it("one payment may cross both thresholds, and the amounts are those after it", () => {
    const account = new TestAccount({ spendLimits: monthly(200) });
    const { warnings = [] } = account.pay(200);
    const shown = { at: NOON, level: "agent", limit: "month", limitCents: 200, usedCents: 200 };
    const window = { startedAt: MAY, resetsAt: Date.UTC(2026, 5, 1) };
    expect(warnings).to.deep.equal([
      { ...shown, ...window, percent: 80 },
      { ...shown, ...window, percent: 100 },
    ]);
  });

  it("the event's id is the limit's, the window's and the threshold's: once in a window", () => {
    const account = new TestAccount({ budgetCents: 100, spendLimits: [{ period: "day", limitCents: 50 }] });
    const payment = account.pay(40);
    expect(warningEvents(profile, payment).map(({ id }) => id)).to.deep.equal([
      `evt_agent-1_day_${MIDNIGHT}_50_80`,
    ]);
    const failed = { status: "failed", code: "CARD_DECLINED", reason: "no" } as const;
    account.settle(payment.request.transactionId, failed);
    const again = account.pay(40);
    expect(warningEvents(profile, again).map(({ id }) => id)).to.deep.equal([
      `evt_agent-1_day_${MIDNIGHT}_50_80`,
    ]);
    account.now += DAY;
    expect(warningEvents(profile, account.pay(40)).map(({ id }) => id)).to.deep.equal([
      "evt_agent-1_budget_once_100_80",
      `evt_agent-1_day_${MIDNIGHT + DAY}_50_80`,
    ]);
  });

  it("a network that charges more than was decided crosses thresholds, too", () => {
    const account = new TestAccount({ spendLimits: monthly(1_000) });
    const { request } = account.pay(700);
    account.settle(request.transactionId);
    const payment = account.network(request.transactionId, { capturedMc: mcOf(1_100) });
    expect((payment.warnings ?? []).map(({ limit, percent }) => `${limit} ${percent}`)).to.deep.equal([
      "month 80",
      "month 100",
    ]);
    expect(payment.books?.breaches).to.deep.equal([{ level: "agent", limit: "month", overMc: mcOf(100) }]);
  });
});

describe("a raise", () => {
  const grant = { kind: "grant_raise", raiseId: "raise-1" } as const;

  it("submitted late, once it is recorded and its room is used up, raises nothing more", () => {
    const account = new TestAccount({ budgetCents: 100 });
    const late = { ...grant, ...account.basis(), amountMc: mcOf(300) };
    account.as("raised", account.do(late));
    account.do({ kind: "confirm_raise", raiseId: grant.raiseId });
    account.paid(300);
    account.do(late);
    expect(account.state.policy.budgetCents).to.equal(300);
  });

  it("decided before a later raise or a set limit, and submitted late, raises nothing", () => {
    const account = new TestAccount({ budgetCents: 100 });
    const decided = { ...grant, ...account.basis(), amountMc: mcOf(300) };
    const later = { kind: "grant_raise", raiseId: "raise-2", amountMc: mcOf(200) } as const;
    account.as("raised", account.do({ ...later, ...account.basis() }));
    expect(account.do(decided).kind).to.equal("raise_stale");

    const unneeded = { ...grant, ...account.basis(), amountMc: mcOf(200) };
    expect(account.do(unneeded).kind).to.equal("raise_not_needed");
    account.paid(200);
    expect(account.do(unneeded).kind).to.equal("raise_not_needed");

    for (const set of [
      () => account.change({ budgetCents: 200 }),
      () => account.cap(1_000, 1_000),
      () => account.cap(1_000, 2_000),
    ]) {
      const before = { ...grant, ...account.basis(), amountMc: mcOf(300) };
      set();
      expect(account.do(before).kind).to.equal("raise_stale");
    }
    expect(account.state.policy.budgetCents).to.equal(200);
  });

  it("raises all that an amount lacks at all levels in one decision, lifetime limits for good", () => {
    const account = new TestAccount({
      budgetCents: 1_000,
      perTransactionLimitCents: 300,
      dailySpendLimitCents: 500,
      spendLimits: monthly(700),
    });
    account.cap(900, 800);
    account.paid(250);
    account.paid(200);
    const amountMc = mcOf(1_200);
    const lacking = shortfalls(account.ledger, account.state, amountMc, account.now);
    expect(lacking.map(({ level, limit, missingCents }) => [level, limit, missingCents])).to.deep.equal([
      ["agent", "per_transaction", 900],
      ["agent", "budget", 650],
      ["agent", "daily_spend", 1_150],
      ["agent", "month", 950],
      ["team", "cap", 850],
      ["project", "cap", 750],
    ]);
    const before = account.ledger.project.cap.version;
    const raised = account.as("raised", account.do({ ...grant, ...account.basis(), amountMc }));
    const midnight = MIDNIGHT + DAY;
    expect(raised.grant.raised.map(({ endsAt }) => endsAt)).to.deep.equal([
      null,
      null,
      midnight,
      Date.UTC(2026, 5, 1),
      null,
      null,
    ]);
    expect(raised.caps.map(({ cap, teamId }) => [teamId, cap.capCents])).to.deep.equal([
      [profile.teamId, 1_650],
      [null, 1_650],
    ]);
    expect(account.ledger.project.cap.version).to.equal(before + 1);
    expect(account.pay(1_201).denial?.code).to.equal("PER_TRANSACTION_LIMIT_EXCEEDED");
    expect(reached(account, 1_200)).to.have.length(10);
    account.now = midnight;
    expect(account.state.policy).to.include({ budgetCents: 1_650, dailySpendLimitCents: 500 });
    account.change({ budgetCents: 10_000 });
    account.cap(null);
    expect(account.pay(501).denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
  });

  it("is refused of an archived agent, where nothing lacks, and of an instant that has passed", () => {
    const account = new TestAccount({ dailySpendLimitCents: 10 });
    const ask = (cents: number, endsAt: number) =>
      account.do({ ...grant, ...account.basis(), amountMc: mcOf(cents), endsAt }).kind;
    account.paid(1);
    expect(ask(9, NOON + 1)).to.equal("raise_not_needed");
    expect(ask(11, NOON)).to.equal("raise_impossible");
    expect(ask(1e12, NOON + 1)).to.equal("raise_impossible");
    account.archive();
    expect(ask(11, NOON + 1)).to.equal("no_account");
  });

  it("ends with the next setting of its limit, and not with one of another limit", () => {
    const account = new TestAccount({ dailySpendLimitCents: 10, spendLimits: monthly(10) });
    account.as("raised", account.do({ ...grant, ...account.basis(), amountMc: mcOf(30) }));
    account.change({ dailySpendLimitCents: 10, spendLimits: monthly(20) });
    expect(account.pay(25).denial?.details).to.include({ period: "month", limit: 20 });
    account.change({ spendLimits: [] });
    expect(account.pay(31).denial?.details).to.include({ limit: 30 });
    expect(account.pay(30).denial).to.equal(null);
  });
});

describe("spend limits among the other limits", () => {
  it("name a denial after the daily limit and the caps of their level, the longest period first", () => {
    const account = new TestAccount({
      dailySpendLimitCents: 100,
      spendLimits: [
        { period: "day", limitCents: 90 },
        { period: "month", limitCents: 80 },
        { period: "week", limitCents: 70 },
      ],
    });
    const denied = (cents: number) => {
      const { denial } = account.pay(cents);
      return [denial?.code, denial?.details?.period];
    };
    expect(denied(101)).to.deep.equal(["DAILY_SPEND_LIMIT_EXCEEDED", undefined]);
    expect(denied(95)).to.deep.equal(["SPEND_LIMIT_EXCEEDED", "month"]);
    expect(denied(75)).to.deep.equal(["SPEND_LIMIT_EXCEEDED", "week"]);
    account.cap(50, 60);
    const { version } = account.ledger.project.cap;
    account.judge({
      kind: "replace_project",
      version,
      capCents: 50,
      teams: [{ teamId: profile.teamId, capCents: 60 }],
      spendLimits: [{ period: "year", limitCents: 40 }],
    });
    expect(denied(65)).to.deep.equal(["TEAM_CAP_EXCEEDED", undefined]);
    expect(denied(55)).to.deep.equal(["PROJECT_CAP_EXCEEDED", undefined]);
    expect(denied(45)).to.deep.equal(["PROJECT_SPEND_LIMIT_EXCEEDED", "year"]);
  });
});
