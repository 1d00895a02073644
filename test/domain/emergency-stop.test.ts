import { expect } from "chai";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import { type Payment, settle } from "../../src/domain/agent/payment.ts";
import { paymentDecisions } from "../../src/domain/audit/payment-decisions.ts";
import { paymentEvents } from "../../src/domain/events.ts";
import { NOON, profile, SECOND, TestActor } from "./support/actor.ts";

const KEY = "akey_1";
const firstKey = { keyId: KEY, lineageId: null, deliverableUntil: NOON };

const pause: AgentCommand = { kind: "pause" };
const resume: AgentCommand = { kind: "resume" };
const revoke: AgentCommand = { kind: "revoke_key", recordedKeyId: null };
const mint: AgentCommand = { kind: "mint_key", keyId: "akey_2", recordedKeyId: null };
const archive: AgentCommand = { kind: "archive", by: { type: "user" } };

const LATER = { status: "pending" } as const;
const WITHHELD = { status: "withheld" } as const;

function newActor(policy = {}): TestActor {
  return new TestActor(policy, NOON, firstKey);
}

const idOf = ({ request }: Payment): string => request.transactionId;

const leaveOf = (actor: TestActor, transactionId: string) =>
  actor.as("leave", actor.do({ kind: "ask_to_send", transactionId })).leave;

describe("what an agent's actor says to who is about to send a payment", () => {
  const stories: readonly (readonly [commands: readonly AgentCommand[], leave: string, title: string])[] = [
    [[], "send", "active"],
    [[pause], "wait", "paused"],
    [[pause, resume], "send", "resumed"],
    [[revoke], "send", "revoked alone"],
    [[archive], "send", "archived alone"],
    [[pause, revoke], "withdraw", "paused, then revoked"],
    [[revoke, pause], "withdraw", "revoked, then paused"],
    [[pause, archive], "withdraw", "paused, then archived"],
    [[pause, revoke, mint, resume], "withdraw", "stopped, then taken back"],
    [[pause, resume, revoke], "send", "resumed, then revoked"],
  ];
  for (const [commands, leave, title] of stories) {
    it(`${title}: ${leave}`, () => {
      const actor = newActor();
      const payment = actor.pay(100);
      for (const command of commands) actor.do(command);
      expect(leaveOf(actor, idOf(payment))).to.equal(leave);
    });
  }

  it("of what is on hold, over or unknown, that it is not to be sent", () => {
    const actor = newActor({ autoApprovalThresholdCents: 50 });
    const held = actor.pay(100);
    const over = actor.paid(10);
    const ask = (transactionId: string) => actor.do({ kind: "ask_to_send", transactionId });
    expect(ask(idOf(held))).to.include({ kind: "payment", changed: false });
    expect([ask(idOf(over)).kind, ask("txn_none").kind]).to.deep.equal(["not_open", "not_open"]);
    actor.do(pause);
    actor.do(revoke);
    expect(ask(idOf(held)), "what is on hold stays").to.nested.include({ "payment.phase": "held" });
  });
});

const quietAfterMs = (actor: TestActor) => actor.as("lifecycle", actor.do(pause)).quietAfterMs;

describe("who pauses an agent is told how long others may still begin to send", () => {
  it("from the decision, and anew from each time that leave was given; again, if asked again", () => {
    const actor = newActor();
    const payment = actor.pay(100);
    actor.now += 400;
    expect(quietAfterMs(actor)).to.equal(850);
    actor.now += 300;
    expect(quietAfterMs(actor)).to.equal(550);
    actor.do(resume);
    actor.now += 10 * SECOND;
    leaveOf(actor, idOf(payment));
    actor.now += 1_000;
    expect(quietAfterMs(actor)).to.equal(250);
  });

  it("not at all where nothing is on its way, or nobody has leave any more", () => {
    const idle = newActor({ autoApprovalThresholdCents: 50 });
    idle.paid(10);
    idle.pay(100);
    expect(quietAfterMs(idle), "settled, and on hold").to.equal(undefined);
    const late = newActor();
    late.pay(100);
    late.now += 2 * SECOND;
    expect(quietAfterMs(late), "long ago").to.equal(undefined);
  });
});

function stopped(): { actor: TestActor; payment: Payment } {
  const actor = newActor({ hourlyVelocityLimit: 2 });
  const payment = actor.pay(100);
  actor.do(pause);
  actor.do(revoke);
  return { actor, payment };
}

describe("a payment that is released since its agent was stopped", () => {
  it("is denied once its rail has none of it; its money is free, its count stays", () => {
    const { actor, payment } = stopped();
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: 100, today: 100, count: 1 });
    const released = settle(actor.payment(idOf(payment)), WITHHELD, actor.now);
    expect(released).to.deep.include({ status: "denied", phase: "done", deniedAt: actor.now });
    expect(released.denial?.code).to.equal("AGENT_PAUSED");
    actor.settle(idOf(payment), WITHHELD);
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
    expect(actor.state.open).to.deep.equal({});
  });

  it("goes to its end where its rail has it: spent, or followed until that is so", () => {
    const { actor, payment } = stopped();
    actor.settle(idOf(payment), LATER);
    expect(actor.payment(idOf(payment))).to.include({ status: "pending", phase: "following" });
    actor.settle(idOf(payment));
    expect(actor.totals()).to.include({ spent: 100, reserved: 0 });
  });

  it("is released while it is followed, if the rail undid it and is not to do it again", () => {
    const { actor, payment } = stopped();
    actor.settle(idOf(payment), LATER);
    expect(leaveOf(actor, idOf(payment))).to.equal("withdraw");
    actor.settle(idOf(payment), WITHHELD);
    expect(actor.totals()).to.include({ spent: 0, reserved: 0 });
  });

  it("never changes what was settled before", () => {
    const { actor, payment } = stopped();
    const settled = settle(actor.payment(idOf(payment)), { status: "settled", final: false }, actor.now);
    expect(settle(settled, WITHHELD, actor.now)).to.equal(settled);
  });

  it("fails its approval where a person had approved it", () => {
    const actor = newActor({ autoApprovalThresholdCents: 50 });
    const { request } = actor.pay(100);
    actor.resolve("approve", request.transactionId);
    actor.do(pause);
    actor.do(revoke);
    const released = settle(actor.payment(request.transactionId), WITHHELD, actor.now);
    expect([released.status, released.approval?.resolution]).to.deep.equal(["denied", "failed"]);
  });

  it("is told of as denied, and its audit log says that it was let through and then refused", () => {
    const { actor, payment } = stopped();
    const before = paymentDecisions(profile, payment);
    const released = settle(actor.payment(idOf(payment)), WITHHELD, actor.now + SECOND);
    expect(paymentEvents(released).map(({ type }) => type)).to.deep.equal(["transaction.denied"]);
    const entries = paymentDecisions(profile, released);
    expect(entries.slice(0, 1)).to.deep.equal(before);
    expect(entries.map(({ action, result }) => [action, result.code])).to.deep.equal([
      ["decidePayment", null],
      ["refusePayment", "AGENT_PAUSED"],
    ]);
  });

  it("counts as allowed by the caps, which had taken it: its count stays there, too", () => {
    const actor = newActor();
    actor.do({ kind: "heed_budget", epoch: 1, asks: true, budgetCents: null });
    const payment = actor.pay(100);
    expect(payment.ask).to.equal("reserve");
    actor.do(pause);
    actor.do(revoke);
    actor.settle(idOf(payment), WITHHELD);
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
  });
});

describe("a payment whose key was revoked on its way", () => {
  it("is refused and leaves nothing behind; the new key pays", () => {
    const actor = newActor();
    const known = actor.request(100);
    actor.payReply(known);
    actor.do(revoke);
    const pay = { kind: "pay", approvalWindowSeconds: 60, lookedUpThrough: 0 } as const;
    const request = actor.request(100);
    expect(actor.do({ ...pay, keyId: KEY, request })).to.deep.equal({ kind: "dead_key" });
    expect(actor.do({ ...pay, keyId: KEY, request: known }).kind, "decided before").to.equal("replayed");
    actor.do(mint);
    expect(actor.do({ ...pay, keyId: KEY, request }).kind, "the old key").to.equal("dead_key");
    expect(actor.totals().reserved).to.equal(100);
    expect(actor.do({ ...pay, keyId: "akey_2", request }).kind).to.equal("decided");
  });

  it("is decided where the actor knows nothing of keys", () => {
    const actor = new TestActor();
    expect(actor.payReply(actor.request(100)).kind).to.equal("decided");
  });
});
