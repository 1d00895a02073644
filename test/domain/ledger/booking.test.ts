import { expect } from "chai";
import { paymentEvents } from "../../../src/domain/events.ts";
import {
  AUTHORIZATIONS_MAX,
  capturedInFull,
  NO_BOOKS,
  type RailBooks,
  shownBreach,
  withBreaches,
} from "../../../src/domain/ledger/books.ts";
import { settle } from "../../../src/domain/ledger/payment.ts";
import { noAmounts, plusPayment } from "../../../src/domain/ledger/restore.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { DAY, MINUTE } from "../support/actor.ts";
import { TestAccount } from "../support/account.ts";

const CENT = mcOf(1);

const report = (number: number, change: Partial<RailBooks> = {}): RailBooks => ({
  ...capturedInFull(CENT),
  authorization: `auth_${number}`,
  ...change,
});
const reports = (count: number, change: Partial<RailBooks> = {}) =>
  Array.from({ length: count }, (_, number) => report(number, change));

describe("what a network reports", () => {
  it("is booked whole, however many authorizations a payment has; those beyond 20 as one", () => {
    const account = new TestAccount();
    const { transactionId } = account.pay(10).request;
    const book = (books: readonly RailBooks[]) => {
      account.do({ kind: "book", transactionId, books, recordsCheckedThrough: 0 });
      return account.payment(transactionId).books?.authorizations ?? [];
    };
    const open = { isOpen: true, authorizedMc: 2 * CENT };
    expect(book(reports(15, open))).to.have.lengthOf(15);
    expect(book(reports(50, open))).to.have.lengthOf(AUTHORIZATIONS_MAX);
    const money = () => [account.state.usage.spentMc, account.state.usage.reservedMc];
    expect(money()).to.deep.equal([50 * CENT, 50 * CENT]);
    // An older read, and one that comes again.
    book(reports(30, open));
    book(reports(50, open));
    expect(money()).to.deep.equal([50 * CENT, 50 * CENT]);
    const refunded = reports(50, open).map((each) => ({ ...each, creditedMc: CENT / 2 }));
    book([...refunded].toReversed());
    expect(money()).to.deep.equal([25 * CENT, 50 * CENT]);
    book(refunded.map((each) => ({ ...each, isOpen: false })).slice(0, 49));
    expect(money()[0], "a read that lacks one takes nothing back").to.equal(25 * CENT);
  });

  it("asks for no more authorizations than are told apart", () => {
    const account = new TestAccount();
    const { transactionId } = account.paid(100, { status: "pending" }).request;
    const granted = Array.from({ length: AUTHORIZATIONS_MAX + 5 }, (_, number) => {
      const ask = {
        kind: "authorize",
        transactionId,
        authorization: `auth_${number}`,
        position: 0,
        merchant: "SHOP",
      } as const;
      const reply = account.do({ ...ask, amountMc: CENT, answerBy: account.now });
      return reply.kind === "authorization" ? reply.refusal : reply.kind;
    });
    expect(granted.filter((refusal) => refusal === null)).to.have.lengthOf(AUTHORIZATIONS_MAX - 1);
    expect(granted.at(-1)).to.equal("CLOSED");
  });

  it("gives back what it does not show ten minutes after our yes, and books it when it does", () => {
    const account = new TestAccount();
    const { transactionId } = account.paid(100, { status: "pending" }).request;
    const ask = {
      kind: "authorize",
      transactionId,
      authorization: "auth_0",
      position: 0,
      merchant: "SHOP",
    } as const;
    account.do({ ...ask, amountMc: 40 * CENT, answerBy: account.now });
    const read = (books: readonly RailBooks[]) => {
      account.do({ kind: "book", transactionId, books, recordsCheckedThrough: 0 });
      return account.state.usage.reservedMc;
    };
    account.now += 10 * MINUTE - 1;
    expect(read([])).to.equal(40 * CENT);
    account.now += 1;
    expect(read([])).to.equal(0);
    expect(account.payment(transactionId).status).to.equal("failed");
    expect(read([report(0, { authorizedMc: 30 * CENT, capturedMc: 0, isOpen: true })])).to.equal(30 * CENT);
  });

  it("counts on the day of its booking where the rail had refused the payment", () => {
    const account = new TestAccount();
    const declined = account.paid(100, { status: "failed", code: "CARD_DECLINED", reason: "Declined." });
    const { transactionId } = declined.request;
    expect(account.state.usage.day.amountMc).to.equal(0);
    account.now += DAY;
    const forced = account.network(transactionId, {});
    expect(forced.status).to.equal("approved");
    const { amountMc, date } = account.state.usage.day;
    expect([amountMc, date]).to.deep.equal([mcOf(100), new Date(account.now).toISOString().slice(0, 10)]);
    expect(paymentEvents(forced).map(({ type }) => type)).to.deep.equal([
      "transaction.failed",
      "transaction.completed",
    ]);
  });

  it("of an agent that was archived and dropped exceeds the limits of the window it was paid in", () => {
    const account = new TestAccount({ spendLimits: [{ period: "month", limitCents: 100 }] });
    const record = settle(account.paid(80), { status: "settled" }, account.now);
    const { transactionId, amountMc } = record.request;
    account.archive();
    const { agentId, policy, policyVersion, revision, teamId } = account.state;
    account.judge({ kind: "confirm_records", records: [{ agentId, revision }] });
    expect(account.ledger.accounts.size).to.equal(0);
    // The next update of the ledger.
    account.ledger.revision += 1;
    const books = [{ ...capturedInFull(amountMc), capturedMc: mcOf(110) }];
    const command = { kind: "book", transactionId, books, recordsCheckedThrough: 0, closed: record } as const;
    const asked = account.as("account_dropped", account.do(command));
    const known = { name: "Agent", policy, policyVersion, revision, teamId, asOfRevision: asked.revision };
    const dropped = { ...known, ...plusPayment(noAmounts(asked.windows), record, asked.windows) };
    const { payment: booked } = account.as("payment", account.do({ ...command, dropped }));
    expect(booked.books?.breaches).to.deep.equal([{ level: "agent", limit: "month", overMc: mcOf(10) }]);
  });

  it("fires for each refund that one read tells apart, with the sums of then", () => {
    const account = new TestAccount();
    const { request } = account.paid(100);
    const { transactionId, amountMc } = request;
    const full = capturedInFull(amountMc);
    const closed = account.network(transactionId, { creditedMc: mcOf(10) });
    const books = [full, ...[10, 25, 60].map((cents) => ({ ...full, creditedMc: mcOf(cents) }))];
    const command = { kind: "book", transactionId, books, closed } as const;
    const reply = account.do({ ...command, recordsCheckedThrough: account.state.closed });
    if (reply.kind !== "payment") throw new Error(reply.kind);
    const fired = paymentEvents({ ...closed, ...reply.payment, request: closed.request });
    const refunds = fired.filter(({ type }) => type === "transaction.refunded");
    expect(refunds.map(({ payment }) => payment.books?.bookings.at(-1)?.creditedMc)).to.deep.equal(
      [10, 25, 60].map(mcOf),
    );
  });

  it("a breach adds up to the thousandth, and a started cent is shown whole", () => {
    const over = { level: "agent", limit: "budget", overMc: 400 } as const;
    const twice = withBreaches(withBreaches(NO_BOOKS, [over]), [over]).breaches;
    expect(twice.map(shownBreach)).to.deep.equal([{ level: "agent", limit: "budget", overCents: 1 }]);
  });
});
