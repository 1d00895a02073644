import { expect } from "chai";
import type { PaymentRequest } from "../../src/domain/ledger/payment.ts";
import type { PaymentRules } from "../../src/domain/rules/checks.ts";
import { RULE_WINDOW_SECONDS_MAX } from "../../src/domain/rules/rules.ts";
import { TestAccount } from "./support/account.ts";
import { DAY, NOON, SECOND } from "./support/actor.ts";

const velocity = (count: number, windowSeconds: number): PaymentRules => ({
  checks: [{ type: "velocity", count, windowSeconds }],
});
const duplicate = (windowSeconds: number, similarAt?: number): PaymentRules => ({
  checks: [{ type: "duplicate", windowSeconds }],
  ...(similarAt === undefined ? {} : { similarAt }),
});

const declined = { status: "failed", code: "CARD_DECLINED", reason: "Declined." } as const;

/** A payment as servers send it since there are rules. */
const like = (what: string): Partial<PaymentRequest> => ({ recipient: what, fingerprint: `like ${what}` });

/** Which types hold the payment that comes next. It is cancelled again, so that it is like none, but it counts. */
function heldBy(
  account: TestAccount,
  rules: PaymentRules,
  change: Partial<PaymentRequest> = {},
): readonly string[] {
  const { approval, request } = account.pay(1, change, rules);
  if (approval !== null) account.resolve("cancel", request.transactionId);
  return approval?.flaggedByRuleTypes ?? [];
}

/** Three payments within 20 ms from noon, and then one under a rule of three in a minute. */
function threeThenAt(now: number): readonly string[] {
  const account = new TestAccount();
  for (const ms of [0, 10, 20]) {
    account.now = NOON + ms;
    account.pay(1);
  }
  account.now = now;
  return heldBy(account, velocity(3, 60));
}

/** One payment, and so much later another under a rule of one in the longest window. */
function onceThenAfter(ms: number): readonly string[] {
  const account = new TestAccount();
  account.paid(1);
  account.now += ms;
  return heldBy(account, velocity(1, RULE_WINDOW_SECONDS_MAX));
}

/** One payment, and so much later a like one under a rule of a minute. */
function likeAfter(ms: number): readonly string[] {
  const account = new TestAccount();
  account.pay(1, like("shop"));
  account.now += ms;
  return heldBy(account, duplicate(60), like("shop"));
}

describe("rules: velocity", () => {
  it("payment number count + 1 is flagged, and not when the first has left the window", () => {
    expect(threeThenAt(NOON + 20)).to.deep.equal(["velocity"]);
    expect(threeThenAt(NOON + 60 * SECOND - 1)).to.deep.equal(["velocity"]);
    expect(threeThenAt(NOON + 60 * SECOND)).to.deep.equal([]);
  });

  it("counts what passed policy, whatever became of it since, and not what a limit denied", () => {
    const account = new TestAccount({ perTransactionLimitCents: 100, autoApprovalThresholdCents: 50 });
    account.pay(101);
    account.paid(1);
    account.paid(1, declined);
    account.pay(51);
    account.resolve("deny", account.pay(51).request.transactionId);
    account.resolve("expire", account.pay(51).request.transactionId);
    expect(heldBy(account, velocity(6, 60))).to.deep.equal([]);
    expect(heldBy(account, velocity(6, 60))).to.deep.equal(["velocity"]);
  });

  it("looks back 31 days, the longest window", () => {
    expect([onceThenAfter(31 * DAY - 1), onceThenAfter(31 * DAY)]).to.deep.equal([["velocity"], []]);
  });

  it("a rule that is set later counts what was paid before, never fewer, in wider buckets", () => {
    const account = new TestAccount({ budgetCents: 1_000_000 });
    const made: number[] = [];
    for (let payment = 0; payment < 3_000; payment += 1) {
      account.now += 10 * 60 * SECOND;
      account.paid(0);
      made.push(account.now);
    }
    for (const windowSeconds of [3 * 3_600, 86_400, RULE_WINDOW_SECONDS_MAX]) {
      const within = (ms: number) => made.filter((at) => at > account.now - ms).length;
      const exactly = within(windowSeconds * 1_000);
      expect(heldBy(account, velocity(exactly, windowSeconds))).to.deep.equal(["velocity"]);
      made.push(account.now);
      const most = within(windowSeconds * 1_250) + 1;
      expect(heldBy(account, velocity(most, windowSeconds))).to.deep.equal([]);
      made.push(account.now);
    }
  });
});

function end(account: TestAccount, kind: "expire" | "deny" | "cancel"): void {
  const { request } = account.pay(600, like("shop"));
  if (kind === "expire") account.now += DAY;
  const { payment } = account.resolve(kind, request.transactionId);
  const { revision } = payment;
  account.do({ kind: "confirm", transactionId: request.transactionId, revision, outcome: null });
}

describe("rules: duplicate", () => {
  it("flags up to the window's end: a millisecond before it, and no more at it", () => {
    expect([likeAfter(0), likeAfter(60 * SECOND - 1), likeAfter(60 * SECOND)]).to.deep.equal([
      ["duplicate"],
      ["duplicate"],
      [],
    ]);
  });

  it("another fingerprint is none", () => {
    const account = new TestAccount();
    account.pay(1, like("shop"));
    expect(heldBy(account, duplicate(60), like("other"))).to.deep.equal([]);
  });

  const ends: readonly [string, (account: TestAccount) => void, boolean][] = [
    ["settled", (account) => account.settle(account.pay(1, like("shop")).request.transactionId), true],
    ["on its way", (account) => void account.pay(1, like("shop")), true],
    [
      "failed",
      (account) => account.settle(account.pay(1, like("shop")).request.transactionId, declined),
      true,
    ],
    ["on hold", (account) => void account.pay(600, like("shop")), true],
    ["expired", (account) => end(account, "expire"), true],
    ["denied by a person", (account) => end(account, "deny"), false],
    ["cancelled", (account) => end(account, "cancel"), false],
    ["denied by a limit", (account) => void account.pay(1_001, like("shop")), false],
  ];
  for (const [what, pay, flags] of ends) {
    it(`a like payment that is ${what} ${flags ? "counts" : "does not"}, open or closed`, () => {
      const account = new TestAccount({ autoApprovalThresholdCents: 500, perTransactionLimitCents: 1_000 });
      pay(account);
      expect(heldBy(account, duplicate(2 * 86_400), like("shop"))).to.deep.equal(flags ? ["duplicate"] : []);
    });
  }

  it("one that is denied while on hold, before its effects are confirmed, is like none at once", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 500 });
    const { request } = account.pay(600, like("shop"));
    expect(heldBy(account, duplicate(60), like("shop"))).to.deep.equal(["duplicate"]);
    account.resolve("deny", request.transactionId);
    expect(heldBy(account, duplicate(60), like("shop"))).to.deep.equal([]);
  });

  it("the newest one counts, remembered or looked up", () => {
    const account = new TestAccount();
    account.pay(1, like("shop"));
    account.now += 30 * SECOND;
    account.pay(1, like("shop"));
    account.now += 59 * SECOND;
    expect(heldBy(account, duplicate(60), like("shop"))).to.deep.equal(["duplicate"]);
    const lookedUp = duplicate(60, account.now - 60 * SECOND + 1);
    expect(heldBy(account, lookedUp, like("nobody"))).to.deep.equal(["duplicate"]);
    expect(heldBy(account, duplicate(60, account.now - 60 * SECOND), like("nobody"))).to.deep.equal([]);
  });

  it("once keys are forgotten it is decided with a look-up that covers them", () => {
    const account = new TestAccount({}, NOON, { closedKeys: 20 });
    for (let payment = 0; payment <= 20; payment += 1) {
      account.settle(account.pay(1, like(`shop ${payment}`)).request.transactionId);
    }
    const request = { ...account.request(1), ...like("shop 0") };
    expect(account.payReply(request, 0, duplicate(60)).kind).to.equal("records_check_required");
    const found = duplicate(60, NOON);
    const reply = account.as("decided", account.payReply(request, account.state.closed, found));
    expect(reply.decision.approval?.flaggedByRuleTypes).to.deep.equal(["duplicate"]);
  });
});

describe("rules in the shadow", () => {
  it("hold nothing, say what they would have flagged, and leave what enabled rules do as it is", () => {
    const account = new TestAccount();
    account.pay(1, like("shop"));
    const shadow = { checks: [], shadow: [{ type: "duplicate", windowSeconds: 60 }] } as const;
    const alike = account.pay(1, like("shop"), shadow);
    expect(alike).to.deep.include({ approval: null, wouldHaveFlagged: ["duplicate"] });
    expect(account.pay(1, like("other"), shadow)).to.not.have.property("wouldHaveFlagged");
    const both = { ...velocity(1, 60), shadow: [{ type: "rail" }] } as const;
    const held = account.pay(1, like("another"), both);
    expect(held.approval?.flaggedByRuleTypes).to.deep.equal(["velocity"]);
    expect(held.wouldHaveFlagged).to.deep.equal(["rail"]);
  });
});
