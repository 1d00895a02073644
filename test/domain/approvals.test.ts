import { expect } from "chai";
import type { Payment } from "../../src/domain/agent/payment.ts";
import type { BudgetPolicyPatch } from "../../src/domain/agent/policy.ts";
import {
  APPROVAL_WINDOW_SECONDS,
  DAY,
  HOUR,
  human,
  MINUTE,
  NOON,
  SECOND,
  TestActor,
} from "./support/actor.ts";

const WINDOW = APPROVAL_WINDOW_SECONDS * SECOND;
const HELD = 600;

/** An actor that holds every payment above 100, with one of 600 on hold. */
function holding(policy: BudgetPolicyPatch = {}): { actor: TestActor; held: Payment; id: string } {
  const actor = new TestActor({ budgetCents: 1_000, autoApprovalThresholdCents: 100, ...policy });
  const held = actor.pay(HELD);
  return { actor, held, id: held.request.transactionId };
}

describe("on hold: money is reserved from acceptance on", () => {
  it("a held payment takes its amount from the budget, the day's spend and the counts at once", () => {
    const { actor } = holding();
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: HELD, today: HELD, count: 1 });
    expect(actor.pay(401).denial?.code).to.equal("BUDGET_EXCEEDED");
  });

  it("held payments cannot pass a cap together that they could not pass one after another", () => {
    const { actor } = holding();
    const more = Array.from({ length: 10 }, () => actor.pay(200));
    expect(more.filter((payment) => payment.denial === null)).to.have.length(2);
    expect(actor.totals().reserved).to.equal(1_000);
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
      const { actor, id } = holding();
      actor.now += at;
      const { payment } = actor.resolve(way, id);
      expect(payment).to.include({ status, phase: "done", deniedAt: actor.now });
      expect(payment.denial).to.include({ code, details: null });
      expect(payment.approval).to.deep.include({ resolution, resolvedBy: by, resolvedAt: actor.now });
      expect(payment.approval?.feedback).to.equal(way === "deny" ? "Too dear." : null);
      const released = actor.totals();
      expect([released.spent, released.reserved]).to.deep.equal([0, 0]);
      for (const again of [way, "approve", "deny", "cancel", "expire"] as const) {
        const second = actor.resolve(again, id);
        expect([second.changed, second.payment]).to.deep.equal([false, payment]);
      }
      actor.settle(id, { status: "settled", final: true });
      expect(actor.totals()).to.deep.equal(released);
    });
  }

  it("ten approvals of one held payment are one: it is sent once and debited once", () => {
    const { actor, id } = holding();
    const approvals = Array.from({ length: 10 }, () => actor.resolve("approve", id));
    expect(approvals.map((reply) => reply.changed)).to.deep.equal([true, ...Array<boolean>(9).fill(false)]);
    actor.settle(id);
    expect(actor.totals()).to.include({ spent: HELD, reserved: 0 });
  });

  it("counts stay after a denial by a person, although the day's spend is given back", () => {
    const { actor, id } = holding({ hourlyVelocityLimit: 1 });
    actor.resolve("deny", id);
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
    expect(actor.pay(1).denial?.code).to.equal("HOURLY_VELOCITY_EXCEEDED");
  });

  it("a payment that is not on hold can be neither approved, denied, cancelled nor expired", () => {
    const actor = new TestActor();
    const sent = actor.pay(50);
    for (const way of ["approve", "deny", "cancel", "expire"] as const) {
      const reply = actor.resolve(way, sent.request.transactionId);
      expect([reply.changed, reply.payment]).to.deep.equal([false, sent]);
    }
    const unknown = actor.do({ kind: "cancel", transactionId: "txn_unknown" });
    expect(unknown).to.deep.equal({ kind: "not_open" });
  });
});

describe("approve: the hard limits are checked again, without the payment's own reservation", () => {
  it("an approved payment keeps its reservation, and is spent when its rail settles", () => {
    const { actor, id } = holding();
    actor.now += HOUR;
    const { payment } = actor.resolve("approve", id);
    expect(payment).to.include({ status: "pending", phase: "sending", executor: "approval", denial: null });
    expect(payment.approval).to.deep.include({
      resolution: "executing",
      resolvedBy: human,
      resolvedAt: actor.now,
    });
    expect(actor.totals()).to.include({ spent: 0, reserved: HELD });
    actor.settle(id);
    expect(actor.totals()).to.include({ spent: HELD, reserved: 0 });
  });

  it("its rail's refusal fails it, the approval with it, and releases", () => {
    const { actor, id } = holding();
    actor.resolve("approve", id);
    const revision = actor.payment(id).revision;
    const result = { status: "failed", code: "CARD_DECLINED", reason: "Declined." } as const;
    // Confirmed only up to the revision before, so that the payment is still there to be looked at.
    actor.do({ kind: "confirm", transactionId: id, revision, outcome: { result, at: actor.now } });
    expect(actor.payment(id)).to.include({ status: "failed", phase: "done" });
    expect(actor.payment(id).denial?.code).to.equal("CARD_DECLINED");
    expect(actor.payment(id).approval?.resolution).to.equal("failed");
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
  });

  const full: readonly [string, BudgetPolicyPatch][] = [
    ["per transaction", { perTransactionLimitCents: HELD }],
    ["budget", { budgetCents: HELD }],
    ["day's spend", { dailySpendLimitCents: HELD }],
    ["hour's count", { hourlyVelocityLimit: 1 }],
    ["day's count", { dailyVelocityLimit: 1 }],
  ];
  for (const [limit, policy] of full) {
    it(`${limit}: a payment that itself fills the limit can be approved`, () => {
      const { actor, id } = holding(policy);
      expect(actor.resolve("approve", id).payment.phase).to.equal("sending");
    });
  }

  const lowered: readonly [string, BudgetPolicyPatch, number, number][] = [
    ["PER_TRANSACTION_LIMIT_EXCEEDED", { perTransactionLimitCents: HELD - 1 }, HELD - 1, HELD - 1],
    ["BUDGET_EXCEEDED", { budgetCents: HELD + 49 }, HELD + 49, HELD - 1],
    ["DAILY_SPEND_LIMIT_EXCEEDED", { dailySpendLimitCents: HELD + 49 }, HELD + 49, HELD - 1],
    ["HOURLY_VELOCITY_EXCEEDED", { hourlyVelocityLimit: 1 }, 1, 0],
    ["DAILY_VELOCITY_EXCEEDED", { dailyVelocityLimit: 1 }, 1, 0],
  ];
  for (const [code, patch, limit, remaining] of lowered) {
    it(`${code}: a lowered limit fails the approval and releases, once`, () => {
      const { actor, id } = holding();
      actor.now += MINUTE;
      actor.paid(50);
      actor.change(patch);
      const { changed, payment } = actor.resolve("approve", id);
      expect(changed).to.equal(true);
      expect(payment).to.include({ status: "failed", phase: "done", deniedAt: actor.now });
      expect(payment.denial?.code).to.equal(code);
      expect(payment.denial?.details).to.deep.include({ limit, remaining });
      expect(payment.approval).to.deep.include({ resolution: "failed", resolvedBy: human });
      expect(actor.totals()).to.deep.equal({ spent: 50, reserved: 0, today: 50, count: 2 });
    });
  }

  it("one that would fit exactly after the limit was lowered is approved", () => {
    const { actor, id } = holding();
    actor.paid(50);
    actor.change({ budgetCents: HELD + 50, dailySpendLimitCents: HELD + 50, hourlyVelocityLimit: 2 });
    expect(actor.resolve("approve", id).payment.phase).to.equal("sending");
  });

  it("of several broken limits the first in the order of checks names the failure", () => {
    const { actor, id } = holding();
    actor.change({ dailyVelocityLimit: 0, hourlyVelocityLimit: 0, dailySpendLimitCents: 0, budgetCents: 0 });
    expect(actor.resolve("approve", id).payment.denial?.code).to.equal("BUDGET_EXCEEDED");
  });

  it("while the agent is paused it fails with AGENT_PAUSED; denying and cancelling work", () => {
    const { actor, id } = holding();
    const [second, third] = [actor.pay(150), actor.pay(150)].map((payment) => payment.request.transactionId);
    actor.do({ kind: "pause" });
    const { payment } = actor.resolve("approve", id);
    expect(payment).to.include({ status: "failed" });
    expect(payment.denial).to.include({ code: "AGENT_PAUSED", details: null });
    expect(payment.approval).to.deep.include({ resolution: "failed", resolvedBy: human });
    expect(actor.resolve("deny", second ?? "").payment.status).to.equal("denied");
    expect(actor.resolve("cancel", third ?? "").payment.status).to.equal("denied");
    expect(actor.totals().reserved).to.equal(0);
  });
});

describe("expiry is compared, not only stored", () => {
  for (const way of ["approve", "deny", "cancel"] as const) {
    it(`${way} one millisecond before the window ends still wins`, () => {
      const { actor, id } = holding();
      actor.now = NOON + WINDOW - 1;
      const { changed, payment } = actor.resolve(way, id);
      expect([changed, payment.status]).to.deep.equal([true, way === "approve" ? "pending" : "denied"]);
    });

    for (const late of [0, 1, DAY]) {
      it(`${way} ${late} ms after the window's end finds it expired and releases it`, () => {
        const { actor, id } = holding();
        actor.now = NOON + WINDOW + late;
        const { changed, payment } = actor.resolve(way, id);
        expect([changed, payment.status]).to.deep.equal([false, "expired"]);
        expect(payment.approval).to.deep.include({ resolution: "expired", resolvedBy: null, feedback: null });
        expect(actor.totals()).to.include({ spent: 0, reserved: 0 });
      });
    }
  }
});

describe("approve: the day that counts is the day of the approval", () => {
  it("a payment approved on the next UTC day counts on that day", () => {
    const { actor, id } = holding({ dailySpendLimitCents: 900 });
    actor.now = NOON + 20 * HOUR;
    expect(actor.resolve("approve", id).payment.day).to.equal("2026-05-14");
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: HELD, today: HELD, count: 0 });
    expect(actor.pay(301).denial?.details).to.deep.include({ limit: 900, remaining: 300 });
    actor.settle(id);
    expect(actor.totals()).to.deep.equal({ spent: HELD, reserved: 0, today: HELD, count: 0 });
  });

  it("on the next UTC day it must fit in that day's limit, beside what was spent there", () => {
    const { actor, id } = holding({ dailySpendLimitCents: 650 });
    actor.now = NOON + 20 * HOUR;
    actor.paid(51);
    const { payment } = actor.resolve("approve", id);
    expect(payment.denial?.code).to.equal("DAILY_SPEND_LIMIT_EXCEEDED");
    expect(payment.denial?.details).to.deep.include({ limit: 650, remaining: 599 });
    expect(actor.totals()).to.deep.equal({ spent: 51, reserved: 0, today: 51, count: 1 });
  });

  it("a denial on the next UTC day takes nothing from that day's spend", () => {
    const { actor, id } = holding();
    actor.now = NOON + 20 * HOUR;
    actor.paid(51);
    actor.resolve("deny", id);
    expect(actor.totals()).to.deep.equal({ spent: 51, reserved: 0, today: 51, count: 1 });
  });
});
