import { expect } from "chai";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import type { BudgetPolicyPatch } from "../../src/domain/ledger/policy.ts";
import { TestAccount } from "./support/account.ts";
import { APPROVAL_WINDOW_SECONDS, DAY, HOUR, human, MINUTE, NOON, SECOND } from "./support/actor.ts";

const WINDOW = APPROVAL_WINDOW_SECONDS * SECOND;
const HELD = 600;

/** An account that holds every payment above 100, with one of 600 on hold. */
function holding(policy: BudgetPolicyPatch = {}): { account: TestAccount; held: Payment; id: string } {
  const account = new TestAccount({ budgetCents: 1_000, autoApprovalThresholdCents: 100, ...policy });
  const held = account.pay(HELD);
  return { account, held, id: held.request.transactionId };
}

describe("on hold: money is reserved from acceptance on", () => {
  it("a held payment takes its amount from the budget, the day's spend and the counts at once", () => {
    const { account } = holding();
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: HELD, today: HELD, count: 1 });
    expect(account.pay(401).denial?.code).to.equal("BUDGET_EXCEEDED");
  });

  it("held payments cannot pass a cap together that they could not pass one after another", () => {
    const { account } = holding();
    const more = Array.from({ length: 10 }, () => account.pay(200));
    expect(more.filter((payment) => payment.denial === null)).to.have.length(2);
    expect(account.totals().reserved).to.equal(1_000);
  });

  it("the approval carries its window's end and the budget with its own reservation counted", () => {
    const { held } = holding();
    expect(held.approval).to.deep.equal({
      id: held.request.approvalId,
      flaggedByRuleTypes: ["agent_threshold"],
      budgetContext: { budgetCents: 1_000, spentCents: 0, reservedCents: 600, remainingCents: 400 },
      expiresAt: NOON + WINDOW,
      resolution: null,
      resolvedAt: null,
      resolvedBy: null,
      feedback: null,
    });
  });
});

describe("on hold: each way out releases exactly once", () => {
  const rows = [
    { way: "deny", at: HOUR, status: "denied", code: "APPROVAL_DENIED", resolution: "denied", by: human },
    { way: "cancel", at: HOUR, status: "denied", code: "CANCELLED_BY_AGENT", resolution: "denied", by: null },
    {
      way: "expire",
      at: WINDOW,
      status: "expired",
      code: "APPROVAL_EXPIRED",
      resolution: "expired",
      by: null,
    },
  ] as const;
  for (const { way, at, status, code, resolution, by } of rows) {
    it(`${way} ends it as ${status} with ${code}, and nothing that comes after changes it`, () => {
      const { account, id } = holding();
      account.now += at;
      const { payment } = account.resolve(way, id);
      expect(payment).to.include({ status, phase: "done", deniedAt: account.now });
      expect(payment.denial).to.include({ code, details: null });
      expect(payment.approval).to.deep.include({ resolution, resolvedBy: by, resolvedAt: account.now });
      expect(payment.approval?.feedback).to.equal(way === "deny" ? "Too dear." : null);
      const released = account.totals();
      expect([released.spent, released.reserved]).to.deep.equal([0, 0]);
      for (const again of [way, "approve", "deny", "cancel", "expire"] as const) {
        const second = account.resolve(again, id);
        expect([second.changed, second.payment]).to.deep.equal([false, payment]);
      }
      account.settle(id, { status: "settled", final: true });
      expect(account.totals()).to.deep.equal(released);
    });
  }

  it("ten approvals of one held payment are one: it is sent once and debited once", () => {
    const { account, id } = holding();
    const approvals = Array.from({ length: 10 }, () => account.resolve("approve", id));
    expect(approvals.map((reply) => reply.changed)).to.deep.equal([true, ...Array<boolean>(9).fill(false)]);
    account.settle(id);
    expect(account.totals()).to.include({ spent: HELD, reserved: 0 });
  });

  it("counts stay after a denial by a person, although the day's spend is given back", () => {
    const { account, id } = holding({ hourlyVelocityLimit: 1 });
    account.resolve("deny", id);
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
    expect(account.pay(1).denial?.code).to.equal("HOURLY_VELOCITY_EXCEEDED");
  });

  it("a payment that is not on hold can be neither approved, denied, cancelled nor expired", () => {
    const account = new TestAccount();
    const sent = account.pay(50);
    for (const way of ["approve", "deny", "cancel", "expire"] as const) {
      const reply = account.resolve(way, sent.request.transactionId);
      expect([reply.changed, reply.payment]).to.deep.equal([false, sent]);
    }
    const unknown = account.do({ kind: "cancel", transactionId: "txn_unknown" });
    expect(unknown).to.deep.equal({ kind: "not_open" });
  });
});

describe("approve: the hard limits are checked again, without the payment's own reservation", () => {
  it("an approved payment keeps its reservation, and is spent when its rail settles", () => {
    const { account, id } = holding();
    account.now += HOUR;
    const { payment } = account.resolve("approve", id);
    expect(payment).to.include({ status: "pending", phase: "sending", denial: null });
    expect(payment.approval).to.deep.include({
      resolution: "executing",
      resolvedBy: human,
      resolvedAt: account.now,
    });
    expect(account.totals()).to.include({ spent: 0, reserved: HELD });
    account.settle(id);
    expect(account.totals()).to.include({ spent: HELD, reserved: 0 });
  });

  it("the reply that approves it permits sending it under the account's revision, no other does", () => {
    const { account, id } = holding();
    const { permit } = account.resolve("approve", id);
    expect(permit).to.equal(account.state.revision);
    for (const way of ["approve", "deny", "cancel"] as const)
      expect(account.resolve(way, id), way).not.to.have.property("permit");
    const { account: denying, id: denied } = holding();
    expect(denying.resolve("deny", denied)).not.to.have.property("permit");
  });

  it("its rail's refusal fails it, the approval with it, and releases", () => {
    const { account, id } = holding();
    account.resolve("approve", id);
    const revision = account.payment(id).revision;
    const result = { status: "failed", code: "CARD_DECLINED", reason: "Declined." } as const;
    // Confirmed only up to the revision before, so that the payment is still there to be looked at.
    account.do({ kind: "confirm", transactionId: id, revision, outcome: { result, at: account.now } });
    expect(account.payment(id)).to.include({ status: "failed", phase: "done" });
    expect(account.payment(id).denial?.code).to.equal("CARD_DECLINED");
    expect(account.payment(id).approval?.resolution).to.equal("failed");
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
  });

  for (const level of ["team", "project"] as const) {
    const cap = (account: TestAccount, cents: number) =>
      level === "team" ? account.cap(null, cents) : account.cap(cents);

    it(`${level}: a payment that itself fills the cap can be approved`, () => {
      const { account, id } = holding();
      cap(account, HELD);
      expect(account.resolve("approve", id).payment.phase).to.equal("sending");
    });

    it(`${level}: a cap that was lowered fails the approval, and releases at every level`, () => {
      const { account, id } = holding();
      account.paid(50);
      cap(account, HELD + 49);
      const { payment } = account.resolve("approve", id);
      const code = level === "team" ? "TEAM_CAP_EXCEEDED" : "PROJECT_CAP_EXCEEDED";
      expect([payment.status, payment.denial?.code]).to.deep.equal(["failed", code]);
      expect(payment.denial?.details).to.deep.equal({
        limit: HELD + 49,
        remaining: HELD - 1,
        resetsAt: null,
      });
      const { project, teams } = account.ledger;
      for (const { totals } of [project, ...teams.values()]) {
        expect(totals).to.deep.equal({ spentCents: 50, reservedCents: 0 });
      }
    });
  }

  const full: readonly [string, BudgetPolicyPatch][] = [
    ["per transaction", { perTransactionLimitCents: HELD }],
    ["budget", { budgetCents: HELD }],
    ["day's spend", { dailySpendLimitCents: HELD }],
    ["hour's count", { hourlyVelocityLimit: 1 }],
    ["day's count", { dailyVelocityLimit: 1 }],
  ];
  for (const [limit, policy] of full) {
    it(`${limit}: a payment that itself fills the limit can be approved`, () => {
      const { account, id } = holding(policy);
      expect(account.resolve("approve", id).payment.phase).to.equal("sending");
    });
  }

  it("counted while the clock had gone back: approved later, its own count is not against it", () => {
    const account = new TestAccount({
      budgetCents: 1_000,
      autoApprovalThresholdCents: 100,
      hourlyVelocityLimit: 2,
    });
    account.paid(50);
    account.now -= MINUTE;
    const held = account.pay(HELD);
    expect([held.createdAt, held.countedAt]).to.deep.equal([NOON - MINUTE, NOON]);
    // The instant it was created at has left the hour, the one it was counted at has not.
    account.now = NOON + HOUR - SECOND;
    expect(account.resolve("approve", held.request.transactionId).payment.phase).to.equal("sending");
  });

  it("approved after more than 31 days, it is no longer counted, and others of the last hour are", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 100, hourlyVelocityLimit: 1 });
    account.approvalWindowSeconds = (60 * DAY) / SECOND;
    const { request } = account.pay(HELD);
    account.now += 40 * DAY;
    account.paid(50);
    const { denial } = account.resolve("approve", request.transactionId).payment;
    expect(denial?.code).to.equal("HOURLY_VELOCITY_EXCEEDED");
  });

  const lowered: readonly [string, BudgetPolicyPatch, number, number][] = [
    ["PER_TRANSACTION_LIMIT_EXCEEDED", { perTransactionLimitCents: HELD - 1 }, HELD - 1, HELD - 1],
    ["BUDGET_EXCEEDED", { budgetCents: HELD + 49 }, HELD + 49, HELD - 1],
    ["DAILY_SPEND_LIMIT_EXCEEDED", { dailySpendLimitCents: HELD + 49 }, HELD + 49, HELD - 1],
    ["HOURLY_VELOCITY_EXCEEDED", { hourlyVelocityLimit: 1 }, 1, 0],
    ["DAILY_VELOCITY_EXCEEDED", { dailyVelocityLimit: 1 }, 1, 0],
  ];
  for (const [code, patch, limit, remaining] of lowered) {
    it(`${code}: a lowered limit fails the approval and releases, once`, () => {
      const { account, id } = holding();
      account.now += MINUTE;
      account.paid(50);
      account.change(patch);
      const { changed, payment } = account.resolve("approve", id);
      expect(changed).to.equal(true);
      expect(payment).to.include({ status: "failed", phase: "done", deniedAt: account.now });
      expect(payment.denial?.code).to.equal(code);
      expect(payment.denial?.details).to.deep.include({ limit, remaining });
      expect(payment.approval).to.deep.include({ resolution: "failed", resolvedBy: human });
      expect(account.totals()).to.deep.equal({ spent: 50, reserved: 0, today: 50, count: 2 });
    });
  }

  it("one that would fit exactly after the limit was lowered is approved", () => {
    const { account, id } = holding();
    account.paid(50);
    account.change({ budgetCents: HELD + 50, dailySpendLimitCents: HELD + 50, hourlyVelocityLimit: 2 });
    expect(account.resolve("approve", id).payment.phase).to.equal("sending");
  });

  it("of several broken limits the first in the order of checks names the failure", () => {
    const { account, id } = holding();
    account.change({
      dailyVelocityLimit: 0,
      hourlyVelocityLimit: 0,
      dailySpendLimitCents: 0,
      budgetCents: 0,
    });
    expect(account.resolve("approve", id).payment.denial?.code).to.equal("BUDGET_EXCEEDED");
  });

  it("while the agent is paused it fails with AGENT_PAUSED; denying and cancelling work", () => {
    const { account, id } = holding();
    const [second, third] = [account.pay(150), account.pay(150)].map(
      (payment) => payment.request.transactionId,
    );
    account.do({ kind: "pause" });
    const { payment } = account.resolve("approve", id);
    expect(payment).to.include({ status: "failed" });
    expect(payment.denial).to.include({ code: "AGENT_PAUSED", details: null });
    expect(payment.approval).to.deep.include({ resolution: "failed", resolvedBy: human });
    expect(account.resolve("deny", second ?? "").payment.status).to.equal("denied");
    expect(account.resolve("cancel", third ?? "").payment.status).to.equal("denied");
    expect(account.totals().reserved).to.equal(0);
  });
});

describe("expiry is compared, not only stored", () => {
  for (const way of ["approve", "deny", "cancel"] as const) {
    it(`${way} one millisecond before the window ends still wins`, () => {
      const { account, id } = holding();
      account.now = NOON + WINDOW - 1;
      const { changed, payment } = account.resolve(way, id);
      expect([changed, payment.status]).to.deep.equal([true, way === "approve" ? "pending" : "denied"]);
    });

    for (const late of [0, 1, DAY]) {
      it(`${way} ${late} ms after the window's end finds it expired and releases it`, () => {
        const { account, id } = holding();
        account.now = NOON + WINDOW + late;
        const { changed, payment } = account.resolve(way, id);
        expect([changed, payment.status]).to.deep.equal([false, "expired"]);
        expect(payment.approval).to.deep.include({ resolution: "expired", resolvedBy: null, feedback: null });
        expect(account.totals()).to.include({ spent: 0, reserved: 0 });
      });
    }
  }
});

describe("approve: the day that counts is the day of the approval", () => {
  it("a payment approved on the next UTC day counts on that day", () => {
    const { account, id } = holding({ dailySpendLimitCents: 900 });
    account.now = NOON + 20 * HOUR;
    expect(account.resolve("approve", id).payment.day).to.equal("2026-05-14");
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: HELD, today: HELD, count: 0 });
    expect(account.pay(301).denial?.details).to.deep.include({ limit: 900, remaining: 300 });
    account.settle(id);
    expect(account.totals()).to.deep.equal({ spent: HELD, reserved: 0, today: HELD, count: 0 });
  });

  it("on the next UTC day it must fit in that day's limit, beside what was spent there", () => {
    const { account, id } = holding({ dailySpendLimitCents: 650 });
    account.now = NOON + 20 * HOUR;
    account.paid(51);
    const { payment } = account.resolve("approve", id);
    expect(payment.denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
    expect(payment.denial?.details).to.deep.include({ limit: 650, remaining: 599 });
    expect(account.totals()).to.deep.equal({ spent: 51, reserved: 0, today: 51, count: 1 });
  });

  it("a denial on the next UTC day takes nothing from that day's spend", () => {
    const { account, id } = holding();
    account.now = NOON + 20 * HOUR;
    account.paid(51);
    account.resolve("deny", id);
    expect(account.totals()).to.deep.equal({ spent: 51, reserved: 0, today: 51, count: 1 });
  });
});
