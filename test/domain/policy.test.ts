import { expect } from "chai";
import type { BudgetPolicyPatch } from "../../src/domain/ledger/policy.ts";
import { afterCharge } from "../../src/domain/ledger/foreseen-charge.ts";
import { summaryOf } from "../../src/domain/ledger/state.ts";
import { TestAccount } from "./support/account.ts";
import { openPolicy, profile, SECOND } from "./support/actor.ts";

describe("changing a policy", () => {
  it("the current version changes it and rises by one; any other is a conflict without effect", () => {
    const account = new TestAccount();
    for (const version of [0, 2]) {
      const reply = account.do({ kind: "change_policy", patch: { budgetCents: 1 }, version });
      expect(reply).to.deep.equal({ kind: "version_conflict", version: 1 });
    }
    expect(account.state.policy).to.deep.equal(openPolicy);
    const reply = account.do({ kind: "change_policy", patch: { budgetCents: 1 }, version: 1 });
    expect(reply).to.deep.equal({
      kind: "policy",
      before: openPolicy,
      policy: { ...openPolicy, budgetCents: 1 },
      policyVersion: 2,
    });
  });

  it("of two changes made from the same version the second is refused", () => {
    const account = new TestAccount();
    const replies = [1, 2].map((budgetCents) =>
      account.do({ kind: "change_policy", patch: { budgetCents }, version: 1 }),
    );
    expect(replies.map((reply) => reply.kind)).to.deep.equal(["policy", "version_conflict"]);
    expect(account.state.policy.budgetCents).to.equal(1);
  });

  const patches: readonly [string, BudgetPolicyPatch, BudgetPolicyPatch][] = [
    ["a field left out stays", { budgetCents: 5 }, { budgetCents: 5, perTransactionLimitCents: 7 }],
    ["null clears a limit", { perTransactionLimitCents: null }, { perTransactionLimitCents: null }],
    ["0 is a limit, not its absence", { perTransactionLimitCents: 0 }, { perTransactionLimitCents: 0 }],
    ["an empty change is a change of version only", {}, { perTransactionLimitCents: 7 }],
  ];
  for (const [guarantee, patch, expected] of patches) {
    it(guarantee, () => {
      const account = new TestAccount({ perTransactionLimitCents: 7 });
      account.change(patch);
      expect(account.state.policy).to.include(expected);
      expect(account.state.policyVersion).to.equal(2);
    });
  }

  it("lowering the budget under what is used takes nothing back, and accepts nothing more", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 500 });
    account.paid(300);
    const held = account.pay(600).request;
    account.change({ budgetCents: 100 });
    expect(account.totals()).to.include({ spent: 300, reserved: 600 });
    expect(account.pay(0).denial?.details).to.deep.equal({ limit: 100, remaining: 0, resetsAt: null });
    expect(account.resolve("approve", held.transactionId).payment.denial?.code).to.equal("BUDGET_EXCEEDED");
    expect(account.totals()).to.include({ spent: 300, reserved: 0 });
    account.change({ budgetCents: 400 });
    expect(account.pay(101).denial?.code).to.equal("BUDGET_EXCEEDED");
    expect(account.pay(100).denial).to.equal(null);
  });

  it("lowering a threshold holds later payments only: what was sent stays sent", () => {
    const account = new TestAccount();
    const sent = account.pay(100);
    account.change({ autoApprovalThresholdCents: 0 });
    expect(account.payment(sent.request.transactionId).phase).to.equal("sending");
    expect(account.pay(100).phase).to.equal("held");
  });
});

describe("pausing and resuming", () => {
  it("pausing a paused agent, or resuming an active one, changes nothing and says so", () => {
    const account = new TestAccount();
    const twice = (kind: "pause" | "resume") => [account.do({ kind }), account.do({ kind })];
    expect(account.do({ kind: "resume" })).to.deep.equal({
      kind: "account_status",
      status: "active",
      changed: false,
      fence: null,
    });
    expect(twice("pause").map((reply) => "changed" in reply && reply.changed)).to.deep.equal([true, false]);
    expect(twice("resume").map((reply) => "changed" in reply && reply.changed)).to.deep.equal([true, false]);
  });

  it("what is on hold or sent stays so over a pause, and settles", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 100 });
    const sent = account.pay(100).request;
    const held = account.pay(200).request;
    account.do({ kind: "pause" });
    account.settle(sent.transactionId);
    expect(account.payment(held.transactionId).phase).to.equal("held");
    expect(account.totals()).to.include({ spent: 100, reserved: 200 });
    account.do({ kind: "resume" });
    expect(account.resolve("approve", held.transactionId).payment.phase).to.equal("sending");
  });
});

describe("a closed account", () => {
  it("pays nothing, approves nothing, and can be neither paused, resumed nor changed", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 100 });
    const held = account.pay(200).request;
    expect(account.archive().ended).to.deep.equal([held.transactionId]);
    expect(account.payReply(account.request(1))).to.deep.equal({ kind: "no_account" });
    const after = account.resolve("approve", held.transactionId);
    expect([after.changed, after.payment.status, after.payment.denial?.code]).to.deep.equal([
      false,
      "denied",
      "AGENT_ARCHIVED",
    ]);
    const change = { kind: "change_policy", patch: { budgetCents: 1 }, version: 1 } as const;
    for (const command of [change, { kind: "pause" } as const, { kind: "resume" } as const]) {
      expect(account.do(command)).to.deep.equal({ kind: "no_account" });
    }
    expect(account.totals()).to.include({ spent: 0, reserved: 0 });
  });
});

describe("what the agent's record shows of its account", () => {
  it("its revision rises with every change of status, policy or totals, and with nothing else", () => {
    const account = new TestAccount({ budgetCents: 100 });
    const revision = () => account.state.revision;
    const raises = (change: () => unknown): number => {
      const before = revision();
      change();
      return revision() - before;
    };
    expect(raises(() => account.do({ kind: "pause" }))).to.equal(1);
    expect(raises(() => account.do({ kind: "pause" }))).to.equal(0);
    expect(raises(() => account.do({ kind: "resume" }))).to.equal(1);
    expect(raises(() => account.change({}))).to.equal(1);
    expect(raises(() => account.pay(101))).to.equal(0);
    const { request } = account.pay(100);
    expect(summaryOf(account.state)).to.include({ spentCents: 0, reservedCents: 100, revision: 5 });
    expect(raises(() => account.settle(request.transactionId, { status: "pending" }))).to.equal(0);
    expect(raises(() => account.settle(request.transactionId))).to.equal(1);
    expect(summaryOf(account.state)).to.include({ spentCents: 100, reservedCents: 0 });
  });

  it("the next revision is reserved for the charge of the payment that was just decided", () => {
    const account = new TestAccount({ budgetCents: 1_000 });
    const charged = (): string => account.pay(100).request.transactionId;
    const first = charged();
    const foreseen = afterCharge(summaryOf(account.state));
    expect(foreseen).to.include({ spentCents: 100, reservedCents: 0, revision: account.state.revision + 1 });
    account.now += SECOND;
    account.settle(first);
    expect({ ...summaryOf(account.state), updatedAt: foreseen.updatedAt }).to.deep.equal(foreseen);
    const [second, { revision }] = [charged(), account.state];
    account.do({ kind: "pause" });
    account.settle(second);
    expect(account.state.revision).to.equal(revision + 3);
    expect(afterCharge(summaryOf(account.state))).to.deep.equal(summaryOf(account.state));
  });

  it("a confirmation confirms no more than there is, and an older one takes nothing back", () => {
    const account = new TestAccount();
    const confirmed = (revision: number) => {
      account.judge({ kind: "confirm_records", records: [{ agentId: profile.agentId, revision }] });
      return account.state.confirmedRevision;
    };
    account.do({ kind: "pause" });
    expect([confirmed(9), confirmed(1)]).to.deep.equal([2, 2]);
    account.now += SECOND;
    account.do({ kind: "resume" });
    expect([account.state.confirmedRevision, account.state.revision]).to.deep.equal([2, 3]);
  });
});
