import { expect } from "chai";
import type { BudgetPolicyPatch, DenialDetails } from "../../src/domain/ledger/policy.ts";
import { TestAccount } from "./support/account.ts";
import { HOUR, MINUTE, NOON } from "./support/actor.ts";

interface Row {
  readonly guarantee: string;
  readonly policy: BudgetPolicyPatch;
  /** Amounts paid and settled before, one every ten minutes up to one minute before noon. */
  readonly before?: readonly number[];
  readonly paused?: boolean;
  /** Of the project and its team, set at noon. */
  readonly caps?: readonly [projectCents: number | null, teamCents: number | null];
  readonly amount: number;
  readonly denied: string | null;
  readonly details?: DenialDetails | null;
}

const MIDNIGHT = NOON + 12 * HOUR;
const BEFORE_MS = 10 * MINUTE;

/** The account at noon, with what the row says was before. */
function accountOf({ policy, before = [], caps, paused = false }: Row): TestAccount {
  const account = new TestAccount({}, NOON - MINUTE - BEFORE_MS * Math.max(0, before.length - 1));
  for (const amount of before) {
    account.paid(amount);
    account.now += BEFORE_MS;
  }
  account.now = NOON;
  account.change(policy);
  if (caps !== undefined) account.cap(...caps);
  if (paused) account.do({ kind: "pause" });
  return account;
}

function runRows(rows: readonly Row[]): void {
  for (const row of rows) {
    it(row.guarantee, () => {
      const account = accountOf(row);
      const before = account.totals();
      const { denial, status } = account.pay(row.amount);
      expect(denial?.code ?? null).to.equal(row.denied);
      expect(status).to.equal(row.denied === null ? "pending" : "denied");
      if (row.details === null) expect(denial?.details ?? null).to.equal(null);
      else if (row.details !== undefined) {
        const { resetsAt = null, ...details } = denial?.details ?? {};
        // An hour ends with its last bucket: up to 1/32 later, never sooner.
        const laterMs = row.denied === "HOURLY_VELOCITY_EXCEEDED" ? HOUR / 32 : 0;
        const { resetsAt: soonest, ...expected } = row.details;
        expect(details).to.deep.equal(expected);
        if (soonest === null) expect(resetsAt).to.equal(null);
        else expect(resetsAt).to.be.within(soonest, soonest + laterMs);
      }
      const { amount } = row;
      const { spent, reserved, today, count } = before;
      const after =
        row.denied === null
          ? { spent, reserved: reserved + amount, today: today + amount, count: count + 1 }
          : before;
      expect(account.totals(), "a denial reserves and counts nothing").to.deep.equal(after);
    });
  }
}

/** Every limit at once, each of which a payment of 600 after 600, 600 breaks. */
const all = {
  perTransactionLimitCents: 500,
  budgetCents: 1_700,
  dailySpendLimitCents: 1_600,
  hourlyVelocityLimit: 2,
  dailyVelocityLimit: 2,
} as const;

describe("limits: when several fail, the first in the order of checks names the denial", () => {
  const before = [600, 600];
  const amount = 600;
  /** Both broken, too. */
  const capsFull = [1_700, 1_700] as const;
  const row = (
    guarantee: string,
    policy: BudgetPolicyPatch,
    denied: string,
    more: Partial<Row> = {},
  ): Row => ({
    guarantee,
    policy,
    before,
    amount,
    denied,
    caps: capsFull,
    ...more,
  });
  const { perTransactionLimitCents: _1, ...fromBudget } = all;
  const { budgetCents: _2, ...fromDailySpend } = fromBudget;
  const { dailySpendLimitCents: _3, ...fromHourly } = fromDailySpend;
  const { hourlyVelocityLimit: _4, ...fromDailyVelocity } = fromHourly;
  runRows([
    row("a pause comes before every limit", all, "AGENT_PAUSED", { paused: true }),
    row("the limit per transaction comes before the budget", all, "PER_TRANSACTION_LIMIT_EXCEEDED"),
    row("the budget comes before the day's spend", fromBudget, "BUDGET_EXCEEDED"),
    row("the day's spend comes before the hour's count", fromDailySpend, "DAILY_SPEND_LIMIT_EXCEEDED"),
    row("the hour's count comes before the day's count", fromHourly, "HOURLY_VELOCITY_EXCEEDED"),
    row("the day's count comes before the caps", fromDailyVelocity, "DAILY_VELOCITY_EXCEEDED"),
    row("the team's cap comes before the project's", {}, "TEAM_CAP_EXCEEDED"),
    row("the project's cap comes last", {}, "PROJECT_CAP_EXCEEDED", { caps: [1_700, null] }),
    row(
      "a limit of the middle does not hide one before it",
      { perTransactionLimitCents: 500, dailyVelocityLimit: 2 },
      "PER_TRANSACTION_LIMIT_EXCEEDED",
    ),
    row(
      "a denial beats a threshold that would hold the payment",
      { ...all, autoApprovalThresholdCents: 0 },
      "PER_TRANSACTION_LIMIT_EXCEEDED",
    ),
    row(
      "a cap beats a threshold that would hold the payment",
      { autoApprovalThresholdCents: 0 },
      "PROJECT_CAP_EXCEEDED",
      { caps: [1_799, null] },
    ),
  ]);
});

describe("limits: amounts at, one cent below and one cent above each limit", () => {
  runRows([
    ...[499, 500].map((amount) => ({
      guarantee: `${amount} passes a limit of 500 per transaction`,
      policy: { perTransactionLimitCents: 500 },
      amount,
      denied: null,
    })),
    {
      guarantee: "501 breaks a limit of 500 per transaction, which is also what remains of it",
      policy: { perTransactionLimitCents: 500 },
      amount: 501,
      denied: "PER_TRANSACTION_LIMIT_EXCEEDED",
      details: { limit: 500, remaining: 500, resetsAt: null },
    },
    {
      guarantee: "a limit of 0 per transaction lets nothing through",
      policy: { perTransactionLimitCents: 0 },
      amount: 1,
      denied: "PER_TRANSACTION_LIMIT_EXCEEDED",
      details: { limit: 0, remaining: 0, resetsAt: null },
    },
    ...[399, 400].map((amount) => ({
      guarantee: `${amount} passes a budget with 400 left`,
      policy: { budgetCents: 1_000 },
      before: [600],
      amount,
      denied: null,
    })),
    {
      guarantee: "401 breaks a budget with 400 left, and is told so",
      policy: { budgetCents: 1_000 },
      before: [600],
      amount: 401,
      denied: "BUDGET_EXCEEDED",
      details: { limit: 1_000, remaining: 400, resetsAt: null },
    },
    {
      guarantee: "a budget of 0 lets nothing through",
      policy: { budgetCents: 0 },
      amount: 1,
      denied: "BUDGET_EXCEEDED",
      details: { limit: 0, remaining: 0, resetsAt: null },
    },
    {
      guarantee: "a budget lowered under what is spent has 0 left, never less",
      policy: { budgetCents: 500 },
      before: [600],
      amount: 1,
      denied: "BUDGET_EXCEEDED",
      details: { limit: 500, remaining: 0, resetsAt: null },
    },
    ...[399, 400].map((amount) => ({
      guarantee: `${amount} passes a daily limit with 400 left`,
      policy: { dailySpendLimitCents: 1_000 },
      before: [600],
      amount,
      denied: null,
    })),
    {
      guarantee: "401 breaks a daily limit with 400 left, until midnight UTC",
      policy: { dailySpendLimitCents: 1_000 },
      before: [600],
      amount: 401,
      denied: "DAILY_SPEND_LIMIT_EXCEEDED",
      details: { limit: 1_000, remaining: 400, resetsAt: MIDNIGHT },
    },
    {
      guarantee: "a daily limit lowered under what was spent today has 0 left, never less",
      policy: { dailySpendLimitCents: 500 },
      before: [600],
      amount: 1,
      denied: "DAILY_SPEND_LIMIT_EXCEEDED",
      details: { limit: 500, remaining: 0, resetsAt: MIDNIGHT },
    },
  ]);
});

describe("limits: the last allowed payment passes and the next does not", () => {
  runRows([
    {
      guarantee: "the third of three in an hour passes",
      policy: { hourlyVelocityLimit: 3 },
      before: [1, 1],
      amount: 1,
      denied: null,
    },
    {
      guarantee: "the fourth of three in an hour is denied until the oldest has left the hour",
      policy: { hourlyVelocityLimit: 3 },
      before: [1, 1, 1],
      amount: 1,
      denied: "HOURLY_VELOCITY_EXCEEDED",
      details: { limit: 3, remaining: 0, resetsAt: NOON - MINUTE - 2 * BEFORE_MS + HOUR },
    },
    {
      guarantee: "an hourly limit lowered under its count is denied until enough have left the hour",
      policy: { hourlyVelocityLimit: 1 },
      before: [1, 1, 1],
      amount: 1,
      denied: "HOURLY_VELOCITY_EXCEEDED",
      details: { limit: 1, remaining: 0, resetsAt: NOON - MINUTE + HOUR },
    },
    {
      guarantee: "an hourly limit of 0 denies, and nothing resets it",
      policy: { hourlyVelocityLimit: 0 },
      amount: 1,
      denied: "HOURLY_VELOCITY_EXCEEDED",
      details: { limit: 0, remaining: 0, resetsAt: null },
    },
    {
      guarantee: "the third of three in a day passes",
      policy: { dailyVelocityLimit: 3 },
      before: [1, 1],
      amount: 1,
      denied: null,
    },
    {
      guarantee: "the fourth of three in a day is denied until midnight UTC",
      policy: { dailyVelocityLimit: 3 },
      before: [1, 1, 1],
      amount: 1,
      denied: "DAILY_VELOCITY_EXCEEDED",
      details: { limit: 3, remaining: 0, resetsAt: MIDNIGHT },
    },
  ]);

  it("a pause is no limit: its denial carries no details", () => {
    const account = new TestAccount();
    account.do({ kind: "pause" });
    expect(account.pay(1).denial).to.deep.include({ code: "AGENT_PAUSED", details: null });
  });
});

describe("threshold: which payments wait for a person", () => {
  const rows = [
    { threshold: null, amount: 100_000, held: false, why: "without one nothing within the budget waits" },
    { threshold: 0, amount: 1, held: true, why: "0 means that even one cent waits" },
    { threshold: 0, amount: 0, held: true, why: "0 means that every payment waits" },
    { threshold: 500, amount: 499, held: false, why: "below it nothing waits" },
    { threshold: 500, amount: 500, held: false, why: "the exact amount does not wait" },
    { threshold: 500, amount: 501, held: true, why: "one cent above it waits" },
  ];
  for (const { threshold, amount, held, why } of rows) {
    it(`${String(threshold)} against ${amount}: ${why}`, () => {
      const account = new TestAccount({ autoApprovalThresholdCents: threshold });
      const payment = account.pay(amount);
      expect([payment.status, payment.phase]).to.deep.equal(["pending", held ? "held" : "sending"]);
      expect(payment.approval?.flaggedByRuleTypes ?? []).to.deep.equal(held ? ["agent_threshold"] : []);
      expect(account.totals().reserved, "holding reserves as sending does").to.equal(amount);
    });
  }
});
