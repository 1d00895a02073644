import { expect } from "chai";
import { paymentEvents } from "../../../src/domain/events.ts";
import type { Payment, RailOutcome } from "../../../src/domain/ledger/payment.ts";
import { settle } from "../../../src/domain/ledger/payment.ts";
import { heldCommand, TestAccount } from "../support/account.ts";
import { DAY, HOUR, human, openPolicy } from "../support/actor.ts";

const HELD_CENTS = 6_000;
const DECLINED: RailOutcome = { status: "failed", code: "CARD_DECLINED", reason: "Declined." };
const REQUESTED = "approval.requested";
const DECIDED = "approval.completed";
const COMPLETED = "transaction.completed";
const DENIED = "transaction.denied";
const FAILED = "transaction.failed";
const REFUNDED = "transaction.refunded";
const REVERSED = "transaction.reversed";
const EXPIRED = "approval.expired";
const CANCELLED = "approval.cancelled";

/** Each in a word, for titles. */
const IN_A_WORD: Readonly<Record<string, string>> = {
  [REQUESTED]: "requested",
  [DECIDED]: "decided",
  [COMPLETED]: "completed",
  [DENIED]: "denied",
  [FAILED]: "failed",
  [REFUNDED]: "refunded",
  [REVERSED]: "reversed",
  [EXPIRED]: "expired",
  [CANCELLED]: "cancelled",
};

/** Something done to an account with one payment; the payment afterwards. */
type Step = (account: TestAccount, payment: Payment) => Payment;

const by =
  (kind: "approve" | "deny" | "cancel" | "expire"): Step =>
  (account, { request }) =>
    account.resolve(kind, request.transactionId).payment;

const rail =
  (result: RailOutcome): Step =>
  (account, payment) => {
    const settled = settle(payment, result, account.now);
    account.settle(payment.request.transactionId, result);
    return settled;
  };

const later =
  (ms: number): Step =>
  (account, payment) => {
    account.now += ms;
    return payment;
  };

const lifecycle =
  (kind: "pause" | "archive"): Step =>
  (account, { request }) => {
    if (kind === "pause") account.do({ kind });
    else account.archive();
    return account.payment(request.transactionId);
  };

const settled = rail({ status: "settled" });
const reversed: Step = (account, { request }) =>
  account.network(request.transactionId, { creditedMc: request.amountMc });

interface Path {
  readonly what: string;
  readonly begin: (account: TestAccount) => Payment;
  /** With the events that must have fired after each. */
  readonly first: readonly string[];
  readonly steps: readonly (readonly [Step, readonly string[]])[];
}

const sent = (account: TestAccount): Payment => account.pay(100);
const held = (account: TestAccount): Payment => account.pay(HELD_CENTS);

const PATHS: readonly Path[] = [
  { what: "sent and settled at once", begin: sent, first: [], steps: [[settled, [COMPLETED]]] },
  {
    what: "sent, pending on its rail, then settled",
    begin: sent,
    first: [],
    steps: [
      [rail({ status: "pending" }), []],
      [settled, [COMPLETED]],
    ],
  },
  { what: "sent and declined by its rail", begin: sent, first: [], steps: [[rail(DECLINED), [FAILED]]] },
  {
    what: "settled, then reversed",
    begin: sent,
    first: [],
    steps: [
      [settled, [COMPLETED]],
      [reversed, [COMPLETED, REFUNDED, REVERSED]],
    ],
  },
  {
    what: "sent, and its agent archived before it settles",
    begin: sent,
    first: [],
    steps: [
      [lifecycle("archive"), []],
      [settled, [COMPLETED]],
    ],
  },
  {
    what: "denied by a limit",
    begin: (account) => account.pay(openPolicy.budgetCents + 1),
    first: [DENIED],
    steps: [],
  },
  {
    what: "denied since a pause overtook it",
    begin(account) {
      account.do({ kind: "pause" });
      return account.pay(100);
    },
    first: [DENIED],
    steps: [],
  },
  {
    what: "held, approved, settled",
    begin: held,
    first: [REQUESTED],
    steps: [
      [by("approve"), [REQUESTED, DECIDED]],
      [settled, [REQUESTED, DECIDED, COMPLETED]],
    ],
  },
  {
    what: "held, approved later, reversed",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY - 1), [REQUESTED]],
      [by("approve"), [REQUESTED, DECIDED]],
      [settled, [REQUESTED, DECIDED, COMPLETED]],
      [reversed, [REQUESTED, DECIDED, COMPLETED, REFUNDED, REVERSED]],
    ],
  },
  {
    what: "held, approved, declined by its rail",
    begin: held,
    first: [REQUESTED],
    steps: [
      [by("approve"), [REQUESTED, DECIDED]],
      [rail(DECLINED), [REQUESTED, DECIDED, FAILED]],
    ],
  },
  {
    what: "held, approved while its agent was paused",
    begin: held,
    first: [REQUESTED],
    steps: [
      [lifecycle("pause"), [REQUESTED]],
      [by("approve"), [REQUESTED, DECIDED, FAILED]],
    ],
  },
  {
    what: "held, denied by a person",
    begin: held,
    first: [REQUESTED],
    steps: [[by("deny"), [REQUESTED, DECIDED, DENIED]]],
  },
  {
    what: "held, cancelled by the agent",
    begin: held,
    first: [REQUESTED],
    steps: [[by("cancel"), [REQUESTED, CANCELLED]]],
  },
  {
    what: "held, expired",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [by("expire"), [REQUESTED, EXPIRED]],
    ],
  },
  {
    what: "held, approved too late",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [by("approve"), [REQUESTED, EXPIRED]],
    ],
  },
  {
    what: "held, denied too late",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [by("deny"), [REQUESTED, EXPIRED]],
    ],
  },
  {
    what: "held, and its agent archived",
    begin: held,
    first: [REQUESTED],
    steps: [[lifecycle("archive"), [REQUESTED, CANCELLED]]],
  },
  {
    what: "held, and its agent archived after its window",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [lifecycle("archive"), [REQUESTED, EXPIRED]],
    ],
  },
];

const newAccount = (): TestAccount => new TestAccount({ autoApprovalThresholdCents: HELD_CENTS - 1 });

/** A payment at each point of its path, with the types that must have fired by then. */
function walk({ begin, first, steps }: Path): { payment: Payment; types: readonly string[] }[] {
  const account = newAccount();
  let payment = begin(account);
  const points = [{ payment, types: first }];
  for (const [step, types] of steps) {
    payment = step(account, payment);
    points.push({ payment, types });
  }
  return points;
}

const typesOf = (payment: Payment): readonly string[] => paymentEvents(payment).map(({ type }) => type);

describe("the events of a payment, each at its time", () => {
  for (const path of PATHS) {
    const last = path.steps.at(-1)?.[1] ?? path.first;
    it(`${path.what}, fires: ${last.map((type) => IN_A_WORD[type]).join(", ") || "nothing"}`, () => {
      for (const { payment, types } of walk(path)) {
        expect(typesOf(payment), payment.status).to.deep.equal(types);
      }
    });
  }

  it("an event keeps its id over all later revisions, and no two events share one", () => {
    const seen = new Map<string, string>();
    for (const path of PATHS) {
      for (const { payment } of walk(path)) {
        const ids = paymentEvents(payment).map(({ id, type }) => {
          expect(seen.get(id) ?? type, "one id for two types").to.equal(type);
          seen.set(id, type);
          return id;
        });
        expect(new Set(ids).size).to.equal(ids.length);
        expect(paymentEvents(payment)).to.deep.equal(paymentEvents(structuredClone(payment)));
      }
    }
    const account = newAccount();
    const payments = [account.paid(100), held(account), account.paid(100), held(account)];
    const ids = payments.flatMap((payment) => paymentEvents(payment).map(({ id }) => id));
    expect(ids).to.deep.equal(["evt_txn_2_approval.requested", "evt_txn_4_approval.requested"]);
  });

  it("at the end alone as much is published as on the way: no revision loses an event", () => {
    for (const path of PATHS) {
      const points = walk(path);
      const onTheWay = new Set(points.flatMap(({ payment }) => paymentEvents(payment).map(({ id }) => id)));
      const last = points.at(-1);
      const atTheEnd = last === undefined ? [] : paymentEvents(last.payment).map(({ id }) => id);
      expect(atTheEnd, path.what).to.deep.equal([...onTheWay]);
    }
  });

  it("approval.requested shows the payment as it was put on hold, whatever became of it since", () => {
    for (const path of PATHS.filter(({ begin }) => begin === held)) {
      const points = walk(path);
      for (const { payment } of points) {
        const requested = paymentEvents(payment).find(({ type }) => type === REQUESTED);
        expect(requested?.payment, path.what).to.deep.equal(points[0]?.payment);
      }
    }
  });

  it("other events show the payment as it is then", () => {
    for (const path of PATHS) {
      for (const { payment } of walk(path)) {
        const others = paymentEvents(payment).filter(({ type }) => type !== REQUESTED);
        for (const { payment: shown, type } of others) {
          const isSettled = type === COMPLETED && payment.status === "reversed";
          if (isSettled) expect(shown.status).to.equal("approved");
          else expect(shown).to.deep.equal(payment);
        }
      }
    }
  });

  const PUBLISHED_AGAIN: readonly (readonly [
    what: string,
    begin: Path["begin"],
    steps: readonly Step[],
    published: readonly (readonly string[])[],
  ])[] = [
    [
      "held, approved, settled",
      held,
      [by("approve"), settled],
      [[REQUESTED, DECIDED, COMPLETED], [DECIDED, COMPLETED], [COMPLETED], []],
    ],
    [
      "held and denied by a person",
      held,
      [by("deny")],
      [[REQUESTED, DECIDED, DENIED], [DECIDED, DENIED], []],
    ],
    [
      "settled, then reversed",
      sent,
      [settled, reversed],
      [[COMPLETED, REFUNDED, REVERSED], [COMPLETED, REFUNDED, REVERSED], [REFUNDED, REVERSED], []],
    ],
    ["denied by a limit", (account) => account.pay(openPolicy.budgetCents + 1), [], [[DENIED], []]],
  ];
  for (const [what, begin, steps, published] of PUBLISHED_AGAIN) {
    it(`nothing is published again that fired before what is kept: ${what}`, () => {
      const account = newAccount();
      const times = [account.now];
      let payment = begin(account);
      for (const step of steps) {
        account.now += HOUR;
        payment = step(account, payment);
        times.push(account.now);
      }
      // Since each step, and since a millisecond after the last one.
      times.push(account.now + 1);
      const found = times.map((retainedSince) =>
        paymentEvents(payment, retainedSince).map(({ type }) => type),
      );
      expect(found).to.deep.equal(published);
    });
  }

  it("approval.completed names the person who decided", () => {
    const account = newAccount();
    const { request } = held(account);
    const { payment } = account.resolve("deny", request.transactionId);
    const published = paymentEvents(payment).find(({ type }) => type === DECIDED);
    expect(published?.payment.approval).to.deep.include({ resolution: "denied", resolvedBy: human });
    const again = account.do(heldCommand("approve", request.transactionId));
    expect(again).to.deep.equal({ kind: "payment", changed: false, payment });
  });
});
