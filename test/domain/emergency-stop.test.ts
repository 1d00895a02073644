import { expect } from "chai";
import { type Payment, settle } from "../../src/domain/ledger/payment.ts";
import { paymentDecisions } from "../../src/domain/audit/payment-decisions.ts";
import { paymentEvents } from "../../src/domain/events.ts";
import { KEY, TestAccount } from "./support/account.ts";
import { HOUR, profile, SECOND } from "./support/actor.ts";

type Change = (account: TestAccount) => unknown;

const pause: Change = (account) => account.do({ kind: "pause" });
const resume: Change = (account) => account.do({ kind: "resume" });
const revoke: Change = (account) => account.follow({ keyId: null });
const mint: Change = (account) => account.follow({ keyId: "akey_2" });
const archive: Change = (account) => account.archive();
const later: Change = (account) => (account.now += 1);
const stop = (account: TestAccount) =>
  account.as("stopped", account.judge({ kind: "stop_accounts", teamId: null, revokeKeys: false }));

const LATER = { status: "pending" } as const;
const WITHHELD = { status: "withheld" } as const;

const idOf = ({ request }: Payment): string => request.transactionId;

const permissionOf = (account: TestAccount, transactionId: string) =>
  account.as("permission", account.do({ kind: "request_permission", transactionId })).permission;

describe("what the ledger says to who is about to send a payment", () => {
  const stories: readonly (readonly [changes: readonly Change[], permission: string, title: string])[] = [
    [[], "send", "active"],
    [[pause], "wait", "paused"],
    [[pause, resume], "send", "resumed"],
    [[revoke], "send", "revoked alone"],
    [[archive], "send", "archived alone"],
    [[pause, revoke], "withdraw", "paused, then revoked"],
    [[revoke, pause], "withdraw", "revoked, then paused"],
    [[pause, archive], "withdraw", "paused, then archived"],
    [[archive, stop], "withdraw", "archived, then stopped with its project"],
    [[stop, archive], "withdraw", "stopped with its project, then archived"],
    [[pause, revoke, mint, resume], "withdraw", "stopped, then taken back"],
    [[pause, resume, revoke], "send", "resumed, then revoked"],
  ];
  for (const [changes, permission, title] of stories) {
    it(`${title}: ${permission}`, () => {
      const account = new TestAccount();
      const payment = account.pay(100);
      for (const change of changes) change(account);
      expect(permissionOf(account, idOf(payment)).kind).to.equal(permission);
    });
  }

  it("archived with a purchase that waits for its caller, whose key is gone: withdraw", () => {
    const account = new TestAccount();
    const purchase = account.pay(100, { protocol: "x402/2" });
    archive(account);
    expect(permissionOf(account, idOf(purchase)).kind).to.equal("withdraw");
  });

  it("of what is on hold, over or unknown, that it is not to be sent", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 50 });
    const held = account.pay(100);
    const over = account.paid(10);
    const ask = (transactionId: string) => account.do({ kind: "request_permission", transactionId });
    expect(ask(idOf(held))).to.include({ kind: "payment", changed: false });
    expect([ask(idOf(over)).kind, ask("txn_none").kind]).to.deep.equal(["not_open", "not_open"]);
    pause(account);
    revoke(account);
    expect(ask(idOf(held)), "what is on hold stays").to.nested.include({ "payment.phase": "held" });
  });
});

describe("a resume that comes late", () => {
  const meanwhile: readonly (readonly [changes: readonly Change[], title: string])[] = [
    [[pause], "paused again"],
    [[stop], "stopped with its project"],
    [[resume, later, pause], "resumed and paused"],
    [[resume, later, stop], "resumed and stopped with its project"],
  ];
  for (const [changes, title] of meanwhile) {
    it(`leaves an agent paused that was meanwhile ${title}`, () => {
      const account = new TestAccount();
      pause(account);
      const { pausedAt } = account.state;
      for (const change of changes) change(account);
      expect(account.do({ kind: "resume", pausedAt })).to.deep.equal({ kind: "paused_again" });
      expect(account.state.status).to.equal("paused");
      const { pausedAt: newest } = account.state;
      expect(account.do({ kind: "resume", pausedAt: newest })).to.include({
        status: "active",
        changed: true,
      });
    });
  }
});

const pausedWith = (account: TestAccount, requestId?: string) =>
  account.as(
    "account_status",
    account.do({ kind: "pause", ...(requestId === undefined ? {} : { requestId }) }),
  );

describe("a pause says what is to be fenced, and above which permits", () => {
  it("a stop of a project fences what an archived agent had decided, above every permit", () => {
    const account = new TestAccount();
    const payment = account.pay(100);
    archive(account);
    const permission = permissionOf(account, idOf(payment));
    const permit = permission.kind === "send" ? permission.permit : Infinity;
    const { fences, paused } = stop(account);
    expect([paused, fences.map(({ payments }) => payments.card)]).to.deep.equal([0, [[idOf(payment)]]]);
    expect(fences[0]?.fence).to.be.greaterThan(permit);
  });

  it("all that was decided and is not over, and nothing on hold", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 150 });
    account.paid(10);
    account.pay(200);
    const [sending, following] = [account.pay(100), account.pay(100)];
    account.settle(idOf(following), LATER);
    const { fence } = pausedWith(account);
    expect(fence?.payments).to.deep.equal({ card: [idOf(sending), idOf(following)], wallet: [] });
  });

  it("nothing, where nothing is on its way", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 50 });
    account.paid(10);
    account.pay(100);
    expect(pausedWith(account).fence).to.equal(null);
  });

  it("every permit of before is below the fence, every one of after a resume above it", () => {
    const account = new TestAccount();
    const permits = [account.payReply(account.request(100))].map(
      (reply) => account.as("decided", reply).permit,
    );
    const [id] = [...account.state.open.keys()];
    for (let round = 0; round < 3; round += 1) {
      const before = permits.at(-1) ?? 0;
      const fence = pausedWith(account).fence?.fence ?? 0;
      expect(fence).to.be.above(before);
      expect(pausedWith(account).fence?.fence, "again").to.be.at.least(fence);
      resume(account);
      const permission = permissionOf(account, id ?? "");
      const permit = permission.kind === "send" ? permission.permit : 0;
      expect(permit).to.be.above(fence);
      permits.push(permit);
    }
  });

  it("also where the engine delivers the same pause again, until the agent is resumed", () => {
    const account = new TestAccount();
    const payment = account.pay(100);
    const first = pausedWith(account, "req");
    expect(pausedWith(account, "req")).to.deep.equal(first);
    expect(first.fence?.payments.card).to.deep.equal([idOf(payment)]);
    resume(account);
    expect(pausedWith(account, "req")).to.deep.equal({ ...first, fence: null });
  });

  it("no decision that is denied or held permits to send", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 50 });
    const permitOf = (cents: number) =>
      account.as("decided", account.payReply(account.request(cents))).permit;
    expect(permitOf(100), "held").to.equal(null);
    pause(account);
    expect(permitOf(10), "denied").to.equal(null);
  });
});

function stopped(): { account: TestAccount; payment: Payment } {
  const account = new TestAccount({ hourlyVelocityLimit: 2 });
  const payment = account.pay(100);
  pause(account);
  revoke(account);
  return { account, payment };
}

describe("a payment that is released since its agent was stopped", () => {
  it("is denied once its rail has none of it; its money is free, its count stays", () => {
    const { account, payment } = stopped();
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 100, today: 100, count: 1 });
    const released = settle(account.payment(idOf(payment)), WITHHELD, account.now);
    expect(released).to.deep.include({ status: "denied", phase: "done", deniedAt: account.now });
    expect(released.denial?.code).to.equal("AGENT_PAUSED");
    account.settle(idOf(payment), WITHHELD);
    expect(account.totals()).to.deep.equal({ spent: 0, reserved: 0, today: 0, count: 1 });
    expect(account.isOpen(idOf(payment))).to.equal(false);
  });

  it("goes to its end where its rail has it: spent, or followed until that is so", () => {
    const { account, payment } = stopped();
    account.settle(idOf(payment), LATER);
    expect(account.payment(idOf(payment))).to.include({ status: "pending", phase: "following" });
    account.settle(idOf(payment));
    expect(account.totals()).to.include({ spent: 100, reserved: 0 });
  });

  it("is released while it is followed, if the rail undid it and is not to do it again", () => {
    const { account, payment } = stopped();
    account.settle(idOf(payment), LATER);
    expect(permissionOf(account, idOf(payment)).kind).to.equal("withdraw");
    account.settle(idOf(payment), WITHHELD);
    expect(account.totals()).to.include({ spent: 0, reserved: 0 });
  });

  it("ends if its card is only made afterwards, so that no resume makes the card good", () => {
    const { account, payment } = stopped();
    mint(account);
    resume(account);
    const card = { last4: "4242", readyUntil: account.now + HOUR };
    account.settle(idOf(payment), { status: "armed", card });
    expect(account.payment(idOf(payment))).to.deep.include({ status: "denied", phase: "done", card });
    expect(account.totals().reserved).to.equal(0);
  });

  it("never changes what was settled before", () => {
    const { account, payment } = stopped();
    const settled = settle(account.payment(idOf(payment)), { status: "settled" }, account.now);
    expect(settle(settled, WITHHELD, account.now)).to.equal(settled);
  });

  it("fails its approval where a person had approved it", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 50 });
    const { request } = account.pay(100);
    account.resolve("approve", request.transactionId);
    pause(account);
    revoke(account);
    const released = settle(account.payment(request.transactionId), WITHHELD, account.now);
    expect([released.status, released.approval?.resolution]).to.deep.equal(["denied", "failed"]);
  });

  it("has a denied event, and its audit log says that it was allowed and then refused", () => {
    const { account, payment } = stopped();
    const before = paymentDecisions(profile, payment);
    const released = settle(account.payment(idOf(payment)), WITHHELD, account.now + SECOND);
    expect(paymentEvents(released).map(({ type }) => type)).to.deep.equal(["transaction.denied"]);
    const entries = paymentDecisions(profile, released);
    expect(entries.slice(0, 1)).to.deep.equal(before);
    expect(entries.map(({ action, result }) => [action, result.code])).to.deep.equal([
      ["decidePayment", null],
      ["refusePayment", "AGENT_PAUSED"],
    ]);
  });

  it("is released at every level, however many caps it counted under", () => {
    const { account, payment } = stopped();
    account.cap(100, 100);
    account.settle(idOf(payment), WITHHELD);
    for (const { totals } of [account.ledger.project, ...account.ledger.teams.values()]) {
      expect(totals).to.deep.equal({ spentMc: 0, reservedMc: 0 });
    }
  });
});

describe("a payment whose key was revoked on its way", () => {
  it("is refused and leaves nothing behind; the new key pays", () => {
    const account = new TestAccount();
    const known = account.request(100);
    account.payReply(known);
    revoke(account);
    const pay = { kind: "pay", approvalWindowSeconds: 60, recordsCheckedThrough: 0 } as const;
    const request = account.request(100);
    expect(account.do({ ...pay, keyId: KEY, request })).to.deep.equal({ kind: "inactive_key" });
    expect(account.do({ ...pay, keyId: KEY, request: known }).kind, "decided before").to.equal("replayed");
    mint(account);
    expect(account.do({ ...pay, keyId: KEY, request }).kind, "the old key").to.equal("inactive_key");
    expect(account.totals().reserved).to.equal(100);
    expect(account.do({ ...pay, keyId: "akey_2", request }).kind).to.equal("decided");
  });
});
