import { expect } from "chai";
import type { PaymentRequest } from "../../src/domain/agent/payment.ts";
import { REMEMBERED_KEYS_MAX } from "../../src/domain/agent/state.ts";
import { countWithin, countWithinHour, HOUR_ENTRIES_MAX } from "../../src/domain/agent/usage.ts";
import type { PaymentRules } from "../../src/domain/rules/checks.ts";
import { RULE_WINDOW_SECONDS_MAX } from "../../src/domain/rules/rules.ts";
import { DAY, HOUR, MINUTE, NOON, SECOND, TestActor } from "./support/actor.ts";

const velocity = (count: number, windowSeconds: number): PaymentRules => ({
  checks: [{ type: "velocity", count, windowSeconds }],
});
const duplicate = (windowSeconds: number, likeAt?: number): PaymentRules => ({
  checks: [{ type: "duplicate", windowSeconds }],
  ...(likeAt === undefined ? {} : { likeAt }),
});

const declined = { status: "failed", code: "CARD_DECLINED", reason: "Declined." } as const;

/** A payment as servers send it since there are rules. */
const like = (what: string): Partial<PaymentRequest> => ({ recipient: what, likenessHash: `like ${what}` });

/** Which types hold the payment that comes next. It is cancelled again, so that it is like none, but it counts. */
function heldBy(
  actor: TestActor,
  rules: PaymentRules,
  change: Partial<PaymentRequest> = {},
): readonly string[] {
  const { approval, request } = actor.pay(1, change, rules);
  if (approval !== null) actor.resolve("cancel", request.transactionId);
  return approval?.flaggedByRuleTypes ?? [];
}

/** Three payments within 20 ms from noon, and then one under a rule of three in a minute. */
function threeThenAt(now: number): readonly string[] {
  const actor = new TestActor();
  for (const ms of [0, 10, 20]) {
    actor.now = NOON + ms;
    actor.pay(1);
  }
  actor.now = now;
  return heldBy(actor, velocity(3, 60));
}

/** One payment, and so much later another under a rule of one in the longest window. */
function onceThenAfter(ms: number): readonly string[] {
  const actor = new TestActor();
  actor.paid(1);
  actor.now += ms;
  return heldBy(actor, velocity(1, RULE_WINDOW_SECONDS_MAX));
}

/** One payment, and so much later a like one under a rule of a minute. */
function likeAfter(ms: number): readonly string[] {
  const actor = new TestActor();
  actor.pay(1, like("shop"));
  actor.now += ms;
  return heldBy(actor, duplicate(60), like("shop"));
}

describe("rules: velocity", () => {
  it("payment number count + 1 is flagged, and not when the first has left the window", () => {
    expect(threeThenAt(NOON + 20)).to.deep.equal(["velocity"]);
    expect(threeThenAt(NOON + 60 * SECOND - 1)).to.deep.equal(["velocity"]);
    expect(threeThenAt(NOON + 60 * SECOND)).to.deep.equal([]);
  });

  it("counts what passed policy, whatever became of it since, and not what a limit denied", () => {
    const actor = new TestActor({ perTransactionLimitCents: 100, autoApprovalThresholdCents: 50 });
    actor.pay(101);
    actor.paid(1);
    actor.paid(1, declined);
    actor.pay(51);
    actor.resolve("deny", actor.pay(51).request.transactionId);
    actor.resolve("expire", actor.pay(51).request.transactionId);
    expect(heldBy(actor, velocity(6, 60))).to.deep.equal([]);
    expect(heldBy(actor, velocity(6, 60))).to.deep.equal(["velocity"]);
  });

  it("looks back 31 days, the longest window", () => {
    expect([onceThenAfter(31 * DAY - 1), onceThenAfter(31 * DAY)]).to.deep.equal([["velocity"], []]);
  });

  it("beyond its table old payments count longer, never shorter; the hourly limit stays exact", () => {
    const actor = new TestActor({ budgetCents: 1_000_000 });
    const made: number[] = [];
    for (let payment = 0; payment < 3 * HOUR_ENTRIES_MAX; payment += 1) {
      actor.now += 2 * SECOND;
      actor.paid(0);
      made.push(actor.now);
      if (payment % 97 !== 0) continue;
      const exactly = (windowMs: number) => made.filter((at) => at > actor.now - windowMs).length;
      const { usage } = actor.state;
      expect(countWithinHour(usage, actor.now)).to.equal(exactly(HOUR));
      for (const windowMs of [2 * HOUR, 5 * HOUR, 31 * DAY]) {
        expect(countWithin(usage, windowMs, actor.now)).to.be.at.least(exactly(windowMs));
      }
      expect(usage.hour.length).to.be.at.most(HOUR_ENTRIES_MAX);
    }
    expect(countWithin(actor.state.usage, 31 * DAY, actor.now)).to.equal(made.length);
  });
});

function end(actor: TestActor, kind: "expire" | "deny" | "cancel"): void {
  const { request } = actor.pay(600, like("shop"));
  if (kind === "expire") actor.now += DAY;
  const { payment } = actor.resolve(kind, request.transactionId);
  const { revision } = payment;
  actor.do({ kind: "confirm", transactionId: request.transactionId, revision, outcome: null });
}

describe("rules: duplicate", () => {
  it("flags up to the window's end: a millisecond before it, and no more at it", () => {
    expect([likeAfter(0), likeAfter(60 * SECOND - 1), likeAfter(60 * SECOND)]).to.deep.equal([
      ["duplicate"],
      ["duplicate"],
      [],
    ]);
  });

  it("another likeness is none", () => {
    const actor = new TestActor();
    actor.pay(1, like("shop"));
    expect(heldBy(actor, duplicate(60), like("other"))).to.deep.equal([]);
  });

  const ends: readonly [string, (actor: TestActor) => void, boolean][] = [
    ["settled", (actor) => actor.settle(actor.pay(1, like("shop")).request.transactionId), true],
    ["on its way", (actor) => void actor.pay(1, like("shop")), true],
    ["failed", (actor) => actor.settle(actor.pay(1, like("shop")).request.transactionId, declined), true],
    ["on hold", (actor) => void actor.pay(600, like("shop")), true],
    ["expired", (actor) => end(actor, "expire"), true],
    ["denied by a person", (actor) => end(actor, "deny"), false],
    ["cancelled", (actor) => end(actor, "cancel"), false],
    ["denied by a limit", (actor) => void actor.pay(1_001, like("shop")), false],
  ];
  for (const [what, pay, flags] of ends) {
    it(`a like payment that is ${what} ${flags ? "counts" : "does not"}, open or closed`, () => {
      const actor = new TestActor({ autoApprovalThresholdCents: 500, perTransactionLimitCents: 1_000 });
      pay(actor);
      expect(heldBy(actor, duplicate(2 * 86_400), like("shop"))).to.deep.equal(flags ? ["duplicate"] : []);
    });
  }

  it("one that is denied while on hold, before its effects are confirmed, is like none at once", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 500 });
    const { request } = actor.pay(600, like("shop"));
    expect(heldBy(actor, duplicate(60), like("shop"))).to.deep.equal(["duplicate"]);
    actor.resolve("deny", request.transactionId);
    expect(heldBy(actor, duplicate(60), like("shop"))).to.deep.equal([]);
  });

  it("the newest one counts, remembered or looked up", () => {
    const actor = new TestActor();
    actor.pay(1, like("shop"));
    actor.now += 30 * SECOND;
    actor.pay(1, like("shop"));
    actor.now += 59 * SECOND;
    expect(heldBy(actor, duplicate(60), like("shop"))).to.deep.equal(["duplicate"]);
    const lookedUp = duplicate(60, actor.now - 60 * SECOND + 1);
    expect(heldBy(actor, lookedUp, like("nobody"))).to.deep.equal(["duplicate"]);
    expect(heldBy(actor, duplicate(60, actor.now - 60 * SECOND), like("nobody"))).to.deep.equal([]);
  });

  it("once keys are forgotten it is decided with a look-up that covers them", () => {
    const actor = new TestActor({ budgetCents: 1_000_000 });
    for (let payment = 0; payment <= REMEMBERED_KEYS_MAX; payment += 1) {
      actor.settle(actor.pay(1, like(`shop ${payment}`)).request.transactionId);
    }
    const request = { ...actor.request(1), ...like("shop 0") };
    expect(actor.payReply(request, 0, duplicate(60)).kind).to.equal("look_up");
    const found = duplicate(60, NOON);
    const reply = actor.as("decided", actor.payReply(request, actor.state.closed, found));
    expect(reply.decision.approval?.flaggedByRuleTypes).to.deep.equal(["duplicate"]);
  });
});

describe("rules: an actor from before there were any", () => {
  it("knows what is open by what it is, and needs a look-up for what it only has the keys of", () => {
    const actor = new TestActor();
    const { request: open } = actor.pay(7, { recipient: "Shop" });
    const same = { recipient: "sHOP", likenessHash: "like shop" };
    const decide = (lookedUpThrough: number, rules: PaymentRules, change = {}) =>
      actor.payReply({ ...actor.request(7), ...same, ...change }, lookedUpThrough, rules);
    const held = actor.as("decided", decide(0, duplicate(60))).decision.approval;
    expect(held?.flaggedByRuleTypes).to.deep.equal(["duplicate"]);
    const other = actor.as("decided", decide(0, duplicate(60), { amountCents: 8, likenessHash: "other" }));
    expect(other.decision.approval).to.equal(null);

    actor.settle(open.transactionId);
    expect(decide(0, duplicate(60), { likenessHash: "third" })).to.deep.equal({
      kind: "look_up",
      projectedThrough: 1,
    });
    const found = duplicate(60, actor.now - MINUTE + 1);
    const decided = actor.as("decided", decide(1, found, { likenessHash: "fourth" }));
    expect(decided.decision.approval?.flaggedByRuleTypes).to.deep.equal(["duplicate"]);
    // Rules that ask for nothing of it need no look-up.
    expect(decide(0, velocity(99, 60), { likenessHash: "fifth" }).kind).to.equal("decided");
  });
});
