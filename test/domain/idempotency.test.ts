import { expect } from "chai";
import { decide } from "../../src/domain/agent/decide.ts";
import type { PaymentRequest } from "../../src/domain/agent/payment.ts";
import { OPEN_PAYMENTS_MAX, REMEMBERED_KEYS_MAX } from "../../src/domain/agent/state.ts";
import { HOUR_ENTRIES_MAX } from "../../src/domain/agent/usage.ts";
import { APPROVAL_WINDOW_SECONDS, MINUTE, SECOND, TestActor } from "./support/actor.ts";

/** The same order again, as a server would send it: new ids, the same hashes. */
const again = (request: PaymentRequest, change: Partial<PaymentRequest> = {}): PaymentRequest => ({
  ...request,
  transactionId: "txn_again",
  approvalId: "apr_again",
  ...change,
});

/** Temporal refuses a larger one. */
const PAYLOAD_MAX_BYTES = 2 * 1_024 * 1_024;

/** 128 bits in base64url. */
const hash = (number: number): string => number.toString(16).padStart(22, "0");

/** Ids and hashes as long as the server's. */
const ids = (number: number) => ({
  transactionId: `txn_${hash(number).padStart(26, "0")}`,
  approvalId: `apr_${hash(number).padStart(26, "0")}`,
  keyHash: hash(number),
  payloadHash: hash(number),
  likenessHash: hash(number),
});

function paid(actor: TestActor, count: number): PaymentRequest[] {
  return Array.from({ length: count }, () => actor.paid(1).request);
}

describe("idempotency keys: a replay never decides again", () => {
  it("a key of an open payment answers that payment as it is now", () => {
    const actor = new TestActor();
    const { request } = actor.pay(100);
    const { payment } = actor.as("replayed", actor.payReply(again(request)));
    expect(payment).to.equal(actor.payment(request.transactionId));
    expect(actor.totals()).to.deep.equal({ spent: 0, reserved: 100, today: 100, count: 1 });
  });

  it("a key of a closed payment answers its id", () => {
    const actor = new TestActor();
    const { request } = actor.paid(100);
    expect(actor.payReply(again(request))).to.deep.equal({
      kind: "replayed",
      transactionId: request.transactionId,
      samePayload: true,
      payment: null,
    });
  });

  it("the same key with another payload is told apart, whatever became of the first", () => {
    const actor = new TestActor({ perTransactionLimitCents: 100 });
    const requests = [actor.pay(100).request, actor.paid(100).request, actor.pay(101).request];
    for (const request of requests) {
      const reply = actor.as("replayed", actor.payReply(again(request, { payloadHash: "another" })));
      expect(reply).to.include({ transactionId: request.transactionId, samePayload: false });
    }
    expect(actor.state.sequence).to.equal(3);
  });

  it("a denial is remembered too: a replay is denied again although the limit was raised since", () => {
    const actor = new TestActor({ perTransactionLimitCents: 100 });
    const { request } = actor.pay(101);
    actor.change({ perTransactionLimitCents: null });
    const { payment } = actor.as("replayed", actor.payReply(again(request)));
    expect(payment?.denial?.code).to.equal("PER_TRANSACTION_LIMIT_EXCEEDED");
  });

  it("a replay is answered while the agent is paused, and while as many are open as may be", () => {
    const actor = new TestActor();
    const { request } = actor.pay(0);
    for (let open = 1; open < OPEN_PAYMENTS_MAX; open += 1) actor.pay(0);
    actor.do({ kind: "pause" });
    expect(actor.payReply(again(request)).kind).to.equal("replayed");
  });

  it("a replay changes nothing of the state", () => {
    const actor = new TestActor();
    const { request } = actor.pay(100);
    const command = {
      kind: "pay",
      keyId: "akey_1",
      request: again(request),
      approvalWindowSeconds: APPROVAL_WINDOW_SECONDS,
      lookedUpThrough: 0,
    } as const;
    expect(decide(actor.state, command, actor.now + MINUTE).events).to.deep.equal([]);
  });
});

describe("idempotency keys: the table of the newest 2,000", () => {
  it("2,000 keys are remembered; the 2,001st payment forgets the first and no other", () => {
    const actor = new TestActor();
    const requests = paid(actor, REMEMBERED_KEYS_MAX);
    const first = requests[0];
    if (first === undefined) throw new Error("nothing was paid");
    expect(actor.payReply(again(first)).kind).to.equal("replayed");
    actor.paid(1);
    expect(Object.keys(actor.state.keys)).to.have.length(REMEMBERED_KEYS_MAX);
    expect(actor.payReply(again(first)).kind).to.equal("look_up");
    for (const request of requests.slice(1)) {
      expect(actor.payReply(again(request)).kind).to.equal("replayed");
    }
  });

  it("a key that is not in the table is decided only after a look-up of all that is forgotten", () => {
    const actor = new TestActor();
    paid(actor, REMEMBERED_KEYS_MAX + 10);
    const request = actor.request(1);
    const { projectedThrough } = actor.as("look_up", actor.payReply(request));
    expect(actor.payReply(request, 9).kind).to.equal("look_up");
    expect(actor.payReply(request, projectedThrough).kind).to.equal("decided");
  });

  it("before anything is forgotten no payment needs a look-up", () => {
    const actor = new TestActor();
    for (const request of paid(actor, REMEMBERED_KEYS_MAX)) {
      expect(actor.state.keys[request.keyHash]).to.not.equal(undefined);
    }
    expect(actor.payReply(actor.request(1), 0).kind).to.equal("decided");
  });

  it("a look-up that began before a payment closed does not count once that payment is forgotten", () => {
    const actor = new TestActor();
    const { request } = actor.pay(1);
    const projectedThrough = actor.state.closed;
    actor.settle(request.transactionId);
    paid(actor, REMEMBERED_KEYS_MAX);
    // The caller looked before the first payment was in the projection, and found nothing.
    expect(actor.payReply(again(request), projectedThrough).kind).to.equal("look_up");
  });

  it("keys of open payments are never forgotten, however many payments follow", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 100, budgetCents: 1_000_000 });
    const held = Array.from({ length: 20 }, () => actor.pay(101).request);
    paid(actor, 3 * REMEMBERED_KEYS_MAX);
    for (const request of held) {
      const reply = actor.as("replayed", actor.payReply(again(request), actor.state.closed));
      expect(reply.payment?.request).to.deep.equal(request);
    }
    expect(Object.keys(actor.state.keys)).to.have.length(REMEMBERED_KEYS_MAX);
    expect(actor.state.keyOrder.toSorted()).to.deep.equal(Object.keys(actor.state.keys).toSorted());
  });

  it("a payment that stays unconfirmed does not stop those that come 2,000 later", () => {
    const actor = new TestActor();
    const stuck = actor.pay(1).request;
    paid(actor, 2 * REMEMBERED_KEYS_MAX);
    const request = actor.request(1);
    const { projectedThrough } = actor.as("look_up", actor.payReply(request));
    expect(actor.payReply(request, projectedThrough).kind).to.equal("decided");
    actor.settle(stuck.transactionId);
    expect(actor.payReply(again(stuck), projectedThrough)).to.deep.include({
      kind: "replayed",
      transactionId: stuck.transactionId,
    });
  });

  it("one that closes late is forgotten late: a look-up from before its closing is refused then", () => {
    const actor = new TestActor();
    const late = actor.pay(1).request;
    paid(actor, REMEMBERED_KEYS_MAX + 500);
    const before = actor.state.closed;
    actor.settle(late.transactionId);
    paid(actor, 2 * REMEMBERED_KEYS_MAX);
    expect(actor.payReply(again(late), before).kind).to.equal("look_up");
  });

  it("2,000 keys and all that may be open, in the longest texts, fit through continue-as-new", () => {
    const actor = new TestActor({ autoApprovalThresholdCents: 1, budgetCents: 1_000_000 });
    // Four bytes each; what JSON writes in six, control characters and halves of pairs, the contract refuses.
    const rulesVersions = { project: Number.MAX_SAFE_INTEGER, team: Number.MAX_SAFE_INTEGER };
    const worst = { purpose: "😀".repeat(500), recipient: "😀".repeat(200), rulesVersions };
    const by = { userId: "0199aa00-0000-7000-8000-000000000000", name: "名".repeat(100) };
    const feedback = "言".repeat(1_000);
    for (let closed = 0; closed < HOUR_ENTRIES_MAX; closed += 1) {
      actor.now += 1;
      actor.settle(actor.pay(1, ids(closed)).request.transactionId);
    }
    for (let open = 0; open < OPEN_PAYMENTS_MAX; open += 1) {
      const { request } = actor.pay(2, { ...ids(HOUR_ENTRIES_MAX + open), ...worst });
      actor.do({ kind: "deny", transactionId: request.transactionId, by, feedback, proof: "" });
    }
    expect(Object.keys(actor.state.open)).to.have.length(OPEN_PAYMENTS_MAX);
    expect(Buffer.byteLength(JSON.stringify(actor.state))).to.be.below(PAYLOAD_MAX_BYTES);
  });
});

describe("open payments", () => {
  it("only so many may be open; the next leaves no trace, and is accepted once one has closed", () => {
    const actor = new TestActor();
    const first = actor.pay(1).request;
    for (let open = 1; open < OPEN_PAYMENTS_MAX; open += 1) actor.pay(1);
    const before = structuredClone(actor.state);
    const request = actor.request(1);
    expect(actor.payReply(request)).to.deep.equal({ kind: "too_many_open" });
    expect(actor.state).to.deep.equal(before);
    actor.settle(first.transactionId);
    expect(actor.payReply(request).kind).to.equal("decided");
  });

  it("a denied payment is open until its record is confirmed, and closes without an outcome", () => {
    const actor = new TestActor({ budgetCents: 0 });
    const { request, denial } = actor.pay(1);
    const { transactionId } = request;
    expect(denial?.code).to.equal("BUDGET_EXCEEDED");
    expect(Object.keys(actor.state.open)).to.deep.equal([transactionId]);
    actor.do({ kind: "confirm", transactionId, revision: 1, outcome: null });
    expect(actor.state.open).to.deep.equal({});
  });

  it("sequence numbers count all payments, denied ones too, from 1 and without a gap", () => {
    const actor = new TestActor({ perTransactionLimitCents: 1 });
    actor.now += SECOND;
    expect([1, 2, 1, 2].map((amount) => actor.pay(amount).sequence)).to.deep.equal([1, 2, 3, 4]);
  });
});
