import { expect } from "chai";
import { paymentEvents } from "../../../src/domain/events.ts";
import { capturedInFull, type RailBooks } from "../../../src/domain/ledger/books.ts";
import { type Payment, settle } from "../../../src/domain/ledger/payment.ts";
import { amountsOf } from "../../../src/domain/ledger/amounts.ts";
import { mcOf } from "../../../src/domain/money.ts";
import { TestAccount } from "../support/account.ts";
import { SECOND } from "../support/actor.ts";

const ASKED_CENTS = 1_000;

/** A report of the network on a payment of 10.00, in cents. */
function report(
  captured: number,
  {
    credited = 0,
    disputed = 0,
    held = 0,
    isOpen = held > 0,
    recalled = 0,
  }: {
    readonly credited?: number;
    readonly disputed?: number;
    readonly held?: number;
    readonly isOpen?: boolean;
    readonly recalled?: number;
  } = {},
): RailBooks {
  return {
    ...capturedInFull(mcOf(Math.max(ASKED_CENTS, captured + held))),
    capturedMc: mcOf(captured),
    creditedMc: mcOf(credited),
    recalledMc: mcOf(recalled),
    disputedMc: mcOf(disputed),
    isOpen,
  };
}

const AUTHORIZED = report(0, { held: ASKED_CENTS });
const CAPTURED = report(ASKED_CENTS);
const HALF_BACK = report(ASKED_CENTS, { credited: 500 });
const ALL_BACK = report(ASKED_CENTS, { credited: ASKED_CENTS });

/** A payment after the network's reports came in, a second apart. */
function reported(reports: readonly RailBooks[], budgetCents = 100_000): readonly Payment[] {
  const account = new TestAccount({ budgetCents });
  const { request } = account.pay(ASKED_CENTS);
  const { transactionId } = request;
  return reports.map((books) => {
    account.now += SECOND;
    account.do({ kind: "book", transactionId, books: [books], recordsCheckedThrough: 0 });
    return account.payment(transactionId);
  });
}

const lastOf = (payments: readonly Payment[]): Payment => {
  const last = payments.at(-1);
  if (last === undefined) throw new Error("there is no report");
  return last;
};

/** Types and gross sums of the events that have fired. */
const firedFor = (payment: Payment): readonly string[] =>
  paymentEvents(payment).map(({ id }) => id.replace(/^evt_txn_1_/, ""));

const COMPLETED = "transaction.completed";

const SCENES: readonly (readonly [string, readonly RailBooks[], readonly string[]])[] = [
  ["authorized, not captured yet", [AUTHORIZED], []],
  ["captured", [CAPTURED], [COMPLETED]],
  [
    "captured in part, and in part again",
    [report(400, { held: 600 }), report(700, { isOpen: false })],
    [COMPLETED],
  ],
  ["never captured", [AUTHORIZED, report(0)], ["transaction.failed"]],
  [
    "never captured, and captured by force later",
    [AUTHORIZED, report(0), CAPTURED],
    ["transaction.failed", COMPLETED],
  ],
  [
    "refunded in part, and then in full",
    [CAPTURED, HALF_BACK, ALL_BACK],
    [COMPLETED, "transaction.refunded_500000", "transaction.refunded_1000000", "transaction.reversed"],
  ],
  [
    "refunded, the refund taken back, and refunded again",
    [
      CAPTURED,
      ALL_BACK,
      report(ASKED_CENTS, { credited: ASKED_CENTS, recalled: ASKED_CENTS }),
      report(ASKED_CENTS, { credited: 2 * ASKED_CENTS, recalled: ASKED_CENTS }),
    ],
    [COMPLETED, "transaction.refunded_1000000", "transaction.reversed", "transaction.refunded_2000000"],
  ],
  [
    "disputed, and credited",
    [
      CAPTURED,
      report(ASKED_CENTS, { disputed: ASKED_CENTS }),
      report(ASKED_CENTS, { credited: ASKED_CENTS, disputed: ASKED_CENTS }),
    ],
    [COMPLETED, "transaction.disputed_1000000", "transaction.refunded_1000000", "transaction.reversed"],
  ],
  [
    "captured and refunded, both learned at once",
    [ALL_BACK],
    [COMPLETED, "transaction.refunded_1000000", "transaction.reversed"],
  ],
];

describe("every event of a payment's books fires once", () => {
  for (const [what, reports, expected] of SCENES) {
    it(`a payment that was ${what}`, () => {
      expect(firedFor(lastOf(reported(reports)))).to.deep.equal(expected);
    });
  }

  it("each revision publishes what earlier ones did, under the same ids, with the same payment", () => {
    for (const [what, reports] of SCENES) {
      const seen = new Map<string, unknown>();
      for (const payment of reported(reports)) {
        const fired = paymentEvents(payment);
        expect(
          fired.map(({ id }) => id),
          what,
        ).to.include.members([...seen.keys()]);
        for (const { id, payment: as } of fired) {
          const { capturedCents, creditedCents } = amountsOf(as);
          const shown = { status: as.status, capturedCents, creditedCents };
          expect(seen.get(id) ?? shown, `${what}: ${id}`).to.deep.equal(shown);
          seen.set(id, shown);
        }
      }
    }
  });

  it("reports that come twice, or an older one after a newer, fire nothing more", () => {
    const inOrder = firedFor(lastOf(reported([CAPTURED, HALF_BACK, ALL_BACK])));
    const muddled = [CAPTURED, HALF_BACK, CAPTURED, HALF_BACK, ALL_BACK, HALF_BACK, ALL_BACK, CAPTURED];
    expect(firedFor(lastOf(reported(muddled)))).to.deep.equal(inOrder);
  });

  it("each excess over a limit fires once, with all that is exceeded by then", () => {
    const payments = reported([report(1_200), report(1_300), report(1_300)], ASKED_CENTS);
    const fired = paymentEvents(lastOf(payments)).filter(({ type }) => type.endsWith("limit_breached"));
    expect(fired.map(({ id, payment }) => [id, payment.books?.breaches])).to.deep.equal([
      ["evt_txn_1_transaction.limit_breached_200000", [{ level: "agent", limit: "budget", overMc: 200_000 }]],
      ["evt_txn_1_transaction.limit_breached_300000", [{ level: "agent", limit: "budget", overMc: 300_000 }]],
    ]);
  });

  it("a payment of nothing completes once it is charged", () => {
    const account = new TestAccount();
    const payment = settle(account.pay(0), { status: "settled" }, account.now);
    expect(firedFor(payment)).to.deep.equal([COMPLETED]);
  });

  it("nothing is published again that fired before what is kept", () => {
    const payment = lastOf(reported([CAPTURED, HALF_BACK, ALL_BACK]));
    const refundedAt = payment.books?.bookings[1]?.at ?? 0;
    const types = paymentEvents(payment, refundedAt + 1).map(({ type }) => type);
    expect(types).to.deep.equal(["transaction.refunded", "transaction.reversed"]);
  });
});
