import { expect } from "chai";
import { paymentDecisions } from "../../../src/domain/audit/payment-decisions.ts";
import { paymentEvents } from "../../../src/domain/events.ts";
import { dueNow } from "../../../src/domain/ledger/due.ts";
import { stageOf } from "../../../src/domain/ledger/payment.ts";
import type { LedgerBounds } from "../../../src/domain/ledger/state.ts";
import { ledgerBytes } from "../../../src/domain/ledger/weight.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { HOUR, MINUTE, NOON, profile } from "../support/actor.ts";
import { TestAccount } from "../support/account.ts";

/** An account with a payment whose card waits for an hour. */
function armed(
  amountCents = 100,
  bounds: Partial<LedgerBounds> = {},
): { readonly account: TestAccount; readonly transactionId: string } {
  const account = new TestAccount({}, NOON, bounds);
  const card = { last4: "4242", readyUntil: account.now + HOUR };
  const { transactionId } = account.paid(amountCents, { status: "armed", card }).request;
  return { account, transactionId };
}

const ask = (account: TestAccount, transactionId: string, change: object = {}) => {
  const asked = { authorization: "iauth_1", position: 0, amountMc: mcOf(100), merchant: "SHOP" };
  const answerBy = account.now + 1_500;
  const reply = account.do({ kind: "authorize", transactionId, ...asked, answerBy, ...change });
  return reply.kind === "authorization" ? (reply.refusal ?? "granted") : reply.kind;
};

const heldMc = (account: TestAccount): number => account.state.usage.reservedMc;

describe("an armed payment", () => {
  it("holds its amount until the network asks, and then what was granted", () => {
    const { account, transactionId } = armed();
    const payment = account.payment(transactionId);
    expect([payment.status, payment.phase, stageOf(payment)]).to.deep.equal([
      "pending",
      "following",
      "armed",
    ]);
    expect(heldMc(account)).to.equal(mcOf(100));
    expect(ask(account, transactionId, { amountMc: 0 }), "a card check").to.equal("granted");
    expect(stageOf(account.payment(transactionId))).to.equal("armed");
    expect(ask(account, transactionId, { position: 1, amountMc: mcOf(60) })).to.equal("granted");
    expect([stageOf(account.payment(transactionId)), heldMc(account)]).to.deep.equal([
      "authorized",
      mcOf(60),
    ]);
  });

  it("is granted no more than its amount by requests whose network tells no position", () => {
    const { account, transactionId } = armed();
    const asked = [60, 30, 20].map((cents) =>
      ask(account, transactionId, { position: null, amountMc: mcOf(cents) }),
    );
    expect(asked).to.deep.equal(["granted", "granted", "ABOVE_PAYMENT"]);
    const { answers, clearances } = account.payment(transactionId).books ?? { answers: [], clearances: [] };
    expect(answers.map(({ position }) => position)).to.deep.equal([0, 1, 2]);
    expect(clearances.map(({ position }) => position)).to.deep.equal([0, 1]);
  });

  it("is refused further requests once their answers take the half of the ledger's room", () => {
    const { account: idle } = armed();
    const resolvedBelowBytes = ledgerBytes(idle.ledger) + idle.state.weightBytes + 1_000;
    const { account, transactionId } = armed(100, { resolvedBelowBytes });
    const asked = Array.from({ length: 30 }, (_none, position) =>
      ask(account, transactionId, { position, amountMc: mcOf(200) }),
    );
    const stored = account.payment(transactionId).books?.answers.length ?? 0;
    expect(asked.indexOf("CLOSED"), "the first one refused").to.be.within(1, 29).and.to.equal(stored);
    expect(ledgerBytes(account.ledger)).to.be.below(resolvedBelowBytes);
    expect(ask(account, transactionId, { amountMc: mcOf(200) }), "a repeated one").to.equal("ABOVE_PAYMENT");
  });

  it("that nothing was charged on is released at its time, by the ledger itself", () => {
    const { account, transactionId } = armed();
    account.close(transactionId);
    const settings = { sweepAfterMs: MINUTE };
    const due = () =>
      dueNow(account.ledger, settings, account.now).due.filter(({ kind }) => kind === "payment").length;
    account.now += HOUR - 1;
    expect(due()).to.equal(0);
    expect(account.resolve("expire", transactionId).changed).to.equal(false);
    account.now += 1;
    expect(due()).to.equal(1);
    expect(ask(account, transactionId)).to.equal("CLOSED");
    const { payment } = account.resolve("expire", transactionId);
    expect(payment).to.include({ status: "failed", phase: "done", deniedAt: account.now });
    expect([payment.denial?.code, stageOf(payment), heldMc(account)]).to.deep.equal([
      "NOT_CHARGED",
      "released",
      0,
    ]);
  });

  it("that was charged is not released at that time", () => {
    const { account, transactionId } = armed();
    ask(account, transactionId);
    account.now += 2 * HOUR;
    expect(account.resolve("expire", transactionId).changed).to.equal(false);
    expect(heldMc(account)).to.equal(mcOf(100));
  });

  for (const [how, code, by, end] of [
    [
      "cancelled",
      "CANCELLED_BY_AGENT",
      profile.agentId,
      (account: TestAccount, id: string) => void account.resolve("cancel", id),
    ],
    [
      "archived with its agent",
      "AGENT_ARCHIVED",
      "archive",
      (account: TestAccount) => void account.archive(),
    ],
    [
      "stopped for good",
      "AGENT_PAUSED",
      "policy",
      (account: TestAccount) => {
        account.do({ kind: "pause" });
        account.follow({ keyId: null });
      },
    ],
  ] as const) {
    it(`that is ${how} is recorded as approved, then ended, and by whom`, () => {
      const { account, transactionId } = armed();
      end(account, transactionId);
      const entries = paymentDecisions(profile, account.payment(transactionId));
      expect(entries.map(({ action, actor, result }) => [action, actor.id, result.code])).to.deep.equal([
        ["decidePayment", profile.agentId, null],
        ["refusePayment", by, code],
      ]);
    });

    it(`that is ${how} ends at once, and its network is granted nothing more`, () => {
      const { account, transactionId } = armed();
      end(account, transactionId);
      const payment = account.payment(transactionId);
      expect(payment).to.include({ status: "denied", phase: "done" });
      expect([payment.denial?.code, heldMc(account)]).to.deep.equal([code, 0]);
      expect(ask(account, transactionId)).to.equal("CLOSED");
      // The network has stood in for us.
      const books = [{ ...forced, authorizedMc: mcOf(100), capturedMc: mcOf(100) }];
      account.do({ kind: "book", transactionId, books, recordsCheckedThrough: 0 });
      expect(account.state.usage.spentMc).to.equal(mcOf(100));
    });
  }

  it("is declined while its agent is paused, and granted again once it is resumed", () => {
    const { account, transactionId } = armed();
    account.do({ kind: "pause" });
    expect(ask(account, transactionId)).to.equal("NOT_ACTIVE");
    account.do({ kind: "resume" });
    expect(ask(account, transactionId), "the first answer").to.equal("NOT_ACTIVE");
    expect(ask(account, transactionId, { authorization: "iauth_2" })).to.equal("granted");
  });

  it("is declined at a merchant that restrictions forbid, by the newest of them", () => {
    const { account, transactionId } = armed();
    account.do({ kind: "follow_restrictions", version: 2 });
    const forbidden = { code: "MERCHANT_CATEGORY_NOT_ALLOWED", level: "agent" };
    expect(ask(account, transactionId, { rulesVersions: { project: null, team: null, agent: 1 } })).to.equal(
      "stale_rules",
    );
    const rulesVersions = { project: null, team: null, agent: 2 };
    expect(ask(account, transactionId, { rulesVersions, forbidden })).to.equal("MERCHANT_NOT_ALLOWED");
  });

  it("fires once for each answer to its network", () => {
    const { account, transactionId } = armed();
    ask(account, transactionId, { amountMc: mcOf(200) });
    ask(account, transactionId, { position: 1 });
    ask(account, transactionId, { position: 1 });
    expect(paymentEvents(account.payment(transactionId)).map(({ id }) => id)).to.deep.equal([
      "evt_txn_1_authorization.declined_iauth_1_0",
      "evt_txn_1_authorization.approved_iauth_1_1",
    ]);
  });
});

const forced = {
  authorization: "iauth_9",
  requests: 1,
  creditedMc: 0,
  recalledMc: 0,
  disputedMc: 0,
  isOpen: false,
};
