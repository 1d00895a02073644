import { expect } from "chai";
import { warningEvents } from "../../src/domain/events.ts";
import { mcOf } from "../../src/domain/money.ts";
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
