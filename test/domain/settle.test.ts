import { mcOf } from "../../src/domain/money.ts";
import { expect } from "chai";
import type {
  Payment,
  PaymentPhase,
  RailOutcome,
  TransactionStatus,
} from "../../src/domain/ledger/payment.ts";
import { settle } from "../../src/domain/ledger/payment.ts";
import { TestAccount } from "./support/account.ts";
import { NOON } from "./support/actor.ts";

const outcomes: Readonly<Record<string, RailOutcome>> = {
  pending: { status: "pending" },
  settled: { status: "settled" },
  failed: { status: "failed", code: "CARD_DECLINED", reason: "Declined." },
};

/** Where a payment can stand once its rail is called, and the revision that says so. */
const places: Readonly<Record<string, { status: TransactionStatus; phase: PaymentPhase; revision: number }>> =
  {
    sending: { status: "pending", phase: "sending", revision: 1 },
    "sent, pending": { status: "pending", phase: "following", revision: 2 },
    approved: { status: "approved", phase: "done", revision: 3 },
    failed: { status: "failed", phase: "done", revision: 3 },
  };

function at<T>(table: Readonly<Record<string, T>>, name: string): T {
  const found = table[name];
  if (found === undefined) throw new Error(`no row ${name}`);
  return found;
}

const paymentAt = (place: string): Payment => ({ ...new TestAccount().pay(100), ...at(places, place) });

const LATER = NOON + 1_000;

describe("what a rail's outcome makes of a payment", () => {
  const rows: readonly [from: string, outcome: string, to: string][] = [
    ["sending", "pending", "sent, pending"],
    ["sending", "settled", "approved"],
    ["sending", "failed", "failed"],
    ["sent, pending", "settled", "approved"],
    ["sent, pending", "failed", "failed"],
  ];
  for (const [from, name, to] of rows) {
    it(`${from}: ${name} makes it ${to}`, () => {
      const outcome = at(outcomes, name);
      const after = settle(paymentAt(from), outcome, LATER);
      expect(after).to.include(at(places, to));
      expect(after.deniedAt).to.equal(to === "failed" ? LATER : null);
      expect(after.denial?.code ?? null).to.equal(to === "failed" ? "CARD_DECLINED" : null);
      expect(settle(after, outcome, LATER + 1), "confirmed twice is confirmed once").to.equal(after);
    });
  }

  it("executors that saw different steps write the same revision for the same outcome", () => {
    const sending = paymentAt("sending");
    const pending = at(outcomes, "pending");
    const settled = at(outcomes, "settled");
    const straight = settle(sending, settled, LATER);
    const followed = settle(settle(sending, pending, NOON), settled, LATER);
    expect(followed).to.deep.equal(straight);
    expect(settle(sending, pending, LATER).revision).to.be.below(straight.revision);
  });
});

describe("a rail's outcome never changes a terminal status", () => {
  for (const [name, outcome] of Object.entries(outcomes)) {
    for (const status of ["denied", "failed", "expired", "reversed", "approved"] as const) {
      it(`${status} and done: ${name} changes nothing`, () => {
        const before: Payment = { ...paymentAt("approved"), status };
        expect(settle(before, outcome, LATER)).to.equal(before);
      });
    }

    it(`on hold: ${name} changes nothing, for nothing was sent`, () => {
      const before = new TestAccount({ autoApprovalThresholdCents: 0 }).pay(100);
      expect(settle(before, outcome, LATER)).to.equal(before);
    });
  }
});

describe("outcomes that are confirmed late, twice or out of order", () => {
  it("a settlement that is confirmed after a refund does not bring the money back", () => {
    const account = new TestAccount();
    const { request } = account.paid(100);
    account.network(request.transactionId, { creditedMc: mcOf(100) });
    account.network(request.transactionId, {});
    expect(account.totals()).to.include({ spent: 0, reserved: 0 });
  });

  it("a confirmation of an older revision leaves the newer one to be executed", () => {
    const account = new TestAccount({ autoApprovalThresholdCents: 0 });
    const { request } = account.pay(100);
    const { transactionId } = request;
    account.resolve("deny", transactionId);
    account.do({ kind: "confirm", transactionId, revision: 1, outcome: null });
    expect(account.state.open.get(transactionId)?.confirmedRevision).to.equal(1);
    account.do({ kind: "confirm", transactionId, revision: 2, outcome: null });
    expect(account.isOpen(transactionId)).to.equal(false);
  });

  it("a confirmation of a payment that is closed, or was never made, changes nothing", () => {
    const account = new TestAccount();
    const { request } = account.paid(100);
    const before = structuredClone(account.state);
    for (const transactionId of [request.transactionId, "txn_unknown"]) {
      const result = { status: "failed", code: "CARD_DECLINED", reason: "Declined." } as const;
      const outcome = { result, at: account.now };
      const reply = account.do({ kind: "confirm", transactionId, revision: 9, outcome });
      expect(reply).to.deep.equal({ kind: "confirmed" });
    }
    expect(account.state).to.deep.equal(before);
  });
});
