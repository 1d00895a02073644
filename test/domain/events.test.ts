import { expect } from "chai";
import type { Payment, RailOutcome } from "../../src/domain/agent/payment.ts";
import { settle } from "../../src/domain/agent/payment.ts";
import { createdEventId, EVENT_TYPES, paymentEvents } from "../../src/domain/events.ts";
import { DAY, heldCommand, human, openPolicy, profile, TestActor } from "./support/actor.ts";

const HELD_CENTS = 6_000;
const DECLINED: RailOutcome = { status: "failed", code: "CARD_DECLINED", reason: "Declined." };
const REQUESTED = "approval.requested";
const DECIDED = "approval.completed";
const COMPLETED = "transaction.completed";
const DENIED = "transaction.denied";

/** Each in a word, for titles. */
const IN_A_WORD: Readonly<Record<string, string>> = {
  [REQUESTED]: "requested",
  [DECIDED]: "decided",
  [COMPLETED]: "completed",
  [DENIED]: "denied",
};

/** Something done to an actor with one payment; the payment afterwards. */
type Step = (actor: TestActor, payment: Payment) => Payment;

const by =
  (kind: "approve" | "deny" | "cancel" | "expire"): Step =>
  (actor, { request }) =>
    actor.resolve(kind, request.transactionId).payment;

const rail =
  (result: RailOutcome): Step =>
  (actor, payment) => {
    const settled = settle(payment, result, actor.now);
    actor.settle(payment.request.transactionId, result);
    return settled;
  };

const later =
  (ms: number): Step =>
  (actor, payment) => {
    actor.now += ms;
    return payment;
  };

const lifecycle =
  (kind: "pause" | "archive"): Step =>
  (actor, { request }) => {
    actor.do(kind === "pause" ? { kind } : { kind, by: { type: "user" } });
    return actor.payment(request.transactionId);
  };

const settled = rail({ status: "settled", final: true });
const cleared = rail({ status: "settled", final: false });
const reversed = rail({ status: "reversed" });

interface Path {
  readonly what: string;
  readonly begin: (actor: TestActor) => Payment;
  /** With the events that must have fired after each. */
  readonly first: readonly string[];
  readonly steps: readonly (readonly [Step, readonly string[]])[];
}

const sent = (actor: TestActor): Payment => actor.pay(100);
const held = (actor: TestActor): Payment => actor.pay(HELD_CENTS);

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
  { what: "sent and declined by its rail", begin: sent, first: [], steps: [[rail(DECLINED), []]] },
  {
    what: "settled, then reversed",
    begin: sent,
    first: [],
    steps: [
      [cleared, [COMPLETED]],
      [reversed, [COMPLETED]],
    ],
  },
  {
    what: "reversed, the settlement never heard of",
    begin: sent,
    first: [],
    steps: [[reversed, [COMPLETED]]],
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
    begin: (actor) => actor.pay(openPolicy.budgetCents + 1),
    first: [DENIED],
    steps: [],
  },
  {
    what: "denied since a pause overtook it",
    begin(actor) {
      actor.do({ kind: "pause" });
      return actor.pay(100);
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
    what: "held, approved on the next day, cleared, reversed",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY - 1), [REQUESTED]],
      [by("approve"), [REQUESTED, DECIDED]],
      [cleared, [REQUESTED, DECIDED, COMPLETED]],
      [reversed, [REQUESTED, DECIDED, COMPLETED]],
    ],
  },
  {
    what: "held, approved, declined by its rail",
    begin: held,
    first: [REQUESTED],
    steps: [
      [by("approve"), [REQUESTED, DECIDED]],
      [rail(DECLINED), [REQUESTED, DECIDED]],
    ],
  },
  {
    what: "held, approved while its agent was paused",
    begin: held,
    first: [REQUESTED],
    steps: [
      [lifecycle("pause"), [REQUESTED]],
      [by("approve"), [REQUESTED, DECIDED]],
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
    steps: [[by("cancel"), [REQUESTED]]],
  },
  {
    what: "held, expired",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [by("expire"), [REQUESTED]],
    ],
  },
  {
    what: "held, approved too late",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [by("approve"), [REQUESTED]],
    ],
  },
  {
    what: "held, denied too late",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [by("deny"), [REQUESTED]],
    ],
  },
  {
    what: "held, and its agent archived",
    begin: held,
    first: [REQUESTED],
    steps: [[lifecycle("archive"), [REQUESTED]]],
  },
  {
    what: "held, its window closed, and its agent archived before it expired",
    begin: held,
    first: [REQUESTED],
    steps: [
      [later(DAY), [REQUESTED]],
      [lifecycle("archive"), [REQUESTED]],
    ],
  },
];

const newActor = (): TestActor => new TestActor({ autoApprovalThresholdCents: HELD_CENTS - 1 });

/** A payment at each point of its path, with the types that must have fired by then. */
function walk({ begin, first, steps }: Path): { payment: Payment; types: readonly string[] }[] {
  const actor = newActor();
  let payment = begin(actor);
  const points = [{ payment, types: first }];
  for (const [step, types] of steps) {
    payment = step(actor, payment);
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
    const actor = newActor();
    const payments = [actor.paid(100), held(actor), actor.paid(100), held(actor)];
    const ids = payments.flatMap((payment) => paymentEvents(payment).map(({ id }) => id));
    expect(ids).to.deep.equal(["evt_txn_2_approval.requested", "evt_txn_4_approval.requested"]);
  });

  it("what is told at the end alone is what was told on the way: no revision loses an event", () => {
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

  it("other events show the payment as it is told; a reversed one was approved when it settled", () => {
    for (const path of PATHS) {
      for (const { payment } of walk(path)) {
        const others = paymentEvents(payment).filter(({ type }) => type !== REQUESTED);
        for (const { payment: shown, type } of others) {
          const isGivenBack = type === "transaction.completed" && payment.status === "reversed";
          expect(shown).to.deep.equal(
            isGivenBack ? { ...payment, status: "approved", deniedAt: null } : payment,
          );
        }
      }
    }
  });

  it("approval.completed names the person who decided", () => {
    const actor = newActor();
    const { request } = held(actor);
    const { payment } = actor.resolve("deny", request.transactionId);
    const told = paymentEvents(payment).find(({ type }) => type === DECIDED);
    expect(told?.payment.approval).to.deep.include({ resolution: "denied", resolvedBy: human });
    const again = actor.do(heldCommand("approve", request.transactionId));
    expect(again).to.deep.equal({ kind: "payment", changed: false, payment });
  });
});

describe("the events of an agent's life", () => {
  it("one for each change, in order, and none for what was so already or was refused", () => {
    const actor = newActor();
    const told = (): readonly string[] => (actor.state.outbox ?? []).map(({ type }) => type);
    actor.do({ kind: "resume" });
    expect(told()).to.deep.equal([]);
    for (const kind of ["pause", "pause", "resume", "resume", "pause"] as const) actor.do({ kind });
    actor.do({ kind: "archive", by: { type: "organization_key", lineageId: "any", balance: "zero" } });
    expect(told()).to.deep.equal(["agent.paused", "agent.resumed", "agent.paused"]);
    for (let times = 0; times < 2; times += 1) {
      actor.do({ kind: "archive", by: { type: "user" } });
      actor.do({ kind: "pause" });
      actor.do({ kind: "resume" });
    }
    expect(told()).to.deep.equal(["agent.paused", "agent.resumed", "agent.paused", "agent.archived"]);
    const ids = (actor.state.outbox ?? []).map(({ id }) => id);
    expect(new Set([...ids, createdEventId(profile.agentId)]).size).to.equal(5);
  });

  it("an event is kept until its own revision's record is confirmed, whatever came between", () => {
    const actor = newActor();
    actor.do({ kind: "pause" });
    const paused = actor.state.revision;
    actor.do({ kind: "resume" });
    actor.do({ kind: "confirm_summary", revision: paused - 1 });
    expect(actor.state.outbox).to.have.length(2);
    actor.do({ kind: "confirm_summary", revision: paused });
    expect(actor.state.outbox?.map(({ type }) => type)).to.deep.equal(["agent.resumed"]);
    actor.do({ kind: "confirm_summary", revision: actor.state.revision });
    expect(actor.state.outbox).to.deep.equal([]);
  });

  it("there are ten types of events, by the names that subscribers know", () => {
    const names = [
      "transaction.completed",
      "transaction.denied",
      "approval.requested",
      "approval.completed",
      "agent.created",
      "agent.paused",
      "agent.resumed",
      "agent.archived",
      "funding.deposited",
      "billing.payment_failed",
    ];
    expect(EVENT_TYPES).to.deep.equal(names);
  });
});
