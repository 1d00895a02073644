import { expect } from "chai";
import type { BudgetPolicyPatch } from "../../src/domain/agent/policy.ts";
import { projectedThrough, summarize } from "../../src/domain/agent/state.ts";
import { openPolicy, SECOND, TestActor } from "./support/actor.ts";

describe("changing a policy", () => {
  it("the current version changes it and rises by one; any other is a conflict without effect", () => {
    const actor = new TestActor();
    for (const version of [0, 2]) {
      const reply = actor.do({ kind: "change_policy", patch: { budgetCents: 1 }, version });
      expect(reply).to.deep.equal({ kind: "version_conflict", policyVersion: 1 });
    }
    expect(actor.state.policy).to.deep.equal(openPolicy);
    const reply = actor.do({ kind: "change_policy", patch: { budgetCents: 1 }, version: 1 });
    expect(reply).to.deep.equal({
      kind: "policy",
      before: openPolicy,
      policy: { ...openPolicy, budgetCents: 1 },
      policyVersion: 2,
    });
  });

  it("of two changes made from the same version the second is refused", () => {
    const actor = new TestActor();
    const replies = [1, 2].map((budgetCents) =>
      actor.do({ kind: "change_policy", patch: { budgetCents }, version: 1 }),
    );
    expect(replies.map((reply) => reply.kind)).to.deep.equal(["policy", "version_conflict"]);
    expect(actor.state.policy.budgetCents).to.equal(1);
  });

  const patches: readonly [string, BudgetPolicyPatch, BudgetPolicyPatch][] = [
    ["a field left out stays", { budgetCents: 5 }, { budgetCents: 5, perTransactionLimitCents: 7 }],
    ["null clears a limit", { perTransactionLimitCents: null }, { perTransactionLimitCents: null }],
    ["0 is a limit, not its absence", { perTransactionLimitCents: 0 }, { perTransactionLimitCents: 0 }],
    ["an empty change is a change of version only", {}, { perTransactionLimitCents: 7 }],
  ];
  for (const [guarantee, patch, expected] of patches) {
    it(guarantee, () => {
      const actor = new TestActor({ perTransactionLimitCents: 7 });
      actor.change(patch);
      expect(actor.state.policy).to.include(expected);
      expect(actor.state.policyVersion).to.equal(2);
    });
  }

  it("lowering the budget under what is used takes nothing back, and accepts nothing more", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 500 });
    actor.paid(300);
    const held = actor.pay(600).request;
    actor.change({ budgetCents: 100 });
    expect(actor.totals()).to.include({ spent: 300, reserved: 600 });
    expect(actor.pay(0).denial?.details).to.deep.equal({ limit: 100, remaining: 0, resetsAt: null });
    expect(actor.resolve("approve", held.transactionId).payment.denial?.code).to.equal("BUDGET_EXCEEDED");
    expect(actor.totals()).to.include({ spent: 300, reserved: 0 });
    actor.change({ budgetCents: 400 });
    expect(actor.pay(101).denial?.code).to.equal("BUDGET_EXCEEDED");
    expect(actor.pay(100).denial).to.equal(null);
  });

  it("lowering a threshold holds later payments only: what was sent stays sent", () => {
    const actor = new TestActor();
    const sent = actor.pay(100);
    actor.change({ autoApprovalThresholdCents: 0 });
    expect(actor.payment(sent.request.transactionId).phase).to.equal("sending");
    expect(actor.pay(100).phase).to.equal("held");
  });
});

describe("pausing and resuming", () => {
  it("pausing a paused agent, or resuming an active one, changes nothing and says so", () => {
    const actor = new TestActor();
    const twice = (kind: "pause" | "resume") => [actor.do({ kind }), actor.do({ kind })];
    expect(actor.do({ kind: "resume" })).to.deep.equal({
      kind: "lifecycle",
      lifecycle: "active",
      changed: false,
    });
    expect(twice("pause").map((reply) => "changed" in reply && reply.changed)).to.deep.equal([true, false]);
    expect(twice("resume").map((reply) => "changed" in reply && reply.changed)).to.deep.equal([true, false]);
  });

  it("what is on hold or sent stays so over a pause, and settles", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 100 });
    const sent = actor.pay(100).request;
    const held = actor.pay(200).request;
    actor.do({ kind: "pause" });
    actor.settle(sent.transactionId);
    expect(actor.payment(held.transactionId).phase).to.equal("held");
    expect(actor.totals()).to.include({ spent: 100, reserved: 200 });
    actor.do({ kind: "resume" });
    expect(actor.resolve("approve", held.transactionId).payment.phase).to.equal("sending");
  });
});

describe("an archived agent", () => {
  it("pays nothing, approves nothing, and can be neither paused, resumed nor changed", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 100 });
    const held = actor.pay(200).request;
    actor.state.lifecycle = "archived";
    expect(actor.payReply(actor.request(1))).to.deep.equal({ kind: "archived" });
    const approved = actor.resolve("approve", held.transactionId).payment;
    expect([approved.status, approved.denial?.code]).to.deep.equal(["failed", "AGENT_ARCHIVED"]);
    const change = { kind: "change_policy", patch: { budgetCents: 1 }, version: 1 } as const;
    for (const command of [change, { kind: "pause" } as const, { kind: "resume" } as const]) {
      expect(actor.do(command)).to.deep.equal({ kind: "archived" });
    }
    expect(actor.totals()).to.include({ spent: 0, reserved: 0 });
  });
});

describe("the agent's own record", () => {
  it("its revision rises with every change of lifecycle, policy or totals, and with nothing else", () => {
    const actor = new TestActor({ budgetCents: 100 });
    const revision = () => actor.state.revision;
    const raises = (change: () => unknown): number => {
      const before = revision();
      change();
      return revision() - before;
    };
    expect(raises(() => actor.do({ kind: "pause" }))).to.equal(1);
    expect(raises(() => actor.do({ kind: "pause" }))).to.equal(0);
    expect(raises(() => actor.do({ kind: "resume" }))).to.equal(1);
    expect(raises(() => actor.change({}))).to.equal(1);
    expect(raises(() => actor.pay(101))).to.equal(0);
    const { request } = actor.pay(100);
    expect(summarize(actor.state)).to.include({ spentCents: 0, reservedCents: 100, revision: 5 });
    expect(raises(() => actor.settle(request.transactionId, { status: "pending" }))).to.equal(0);
    expect(raises(() => actor.settle(request.transactionId))).to.equal(1);
    expect(summarize(actor.state)).to.include({ spentCents: 100, reservedCents: 0 });
  });

  it("a confirmation confirms no more than there is, and an older one takes nothing back", () => {
    const actor = new TestActor();
    const confirmed = (revision: number) => {
      actor.do({ kind: "confirm_summary", revision });
      return actor.state.confirmedRevision;
    };
    actor.do({ kind: "pause" });
    expect([confirmed(9), confirmed(1)]).to.deep.equal([2, 2]);
    actor.now += SECOND;
    actor.do({ kind: "resume" });
    expect([actor.state.confirmedRevision, actor.state.revision]).to.deep.equal([2, 3]);
    expect(projectedThrough(actor.state)).to.equal(0);
  });
});
