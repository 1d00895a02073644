import { createSecretKey, randomBytes } from "node:crypto";
import { expect } from "chai";
import { paymentIn } from "../../src/store/payment-records.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import type { PaymentRequest } from "../../src/domain/ledger/payment.ts";
import { KeyedMacs } from "../../src/secrets/keyed-macs.ts";
import { NO_BOOKS } from "../../src/domain/ledger/books.ts";
import { decidedPayment } from "../../src/domain/ledger/pay.ts";
import {
  type OrderRequest,
  HmacPaymentProofs,
  type PersonsDecision,
} from "../../src/payments/payment-proofs.ts";

const PAYER = { organizationId: "org", agentId: "agent" };
const ORDER: OrderRequest = {
  transactionId: "txn",
  approvalId: "apr",
  keyHash: "key",
  rail: "card",
  amountMc: 100_000,
  currency: "USD",
  recipient: "shop",
  merchantCategory: null,
  purpose: "Paper.",
};
const DENIED: PersonsDecision = {
  resolution: "denied",
  by: { userId: "user", name: "Ada" },
  feedback: "Too dear.",
};

const REQUEST = {
  ...ORDER,
  currency: "USD",
  payloadHash: "payload",
  fingerprint: "like",
  proof: "",
} as const;
const DECISION = {
  policyVersion: 1,
  sequence: 1,
  createdAt: 0,
  countedAt: 0,
  day: "1970-01-01",
  limits: [],
  denial: null,
  approval: null,
} as const;
const randomMacs = () =>
  new KeyedMacs([{ id: "0a1b2c3d", key: createSecretKey(randomBytes(32)), retiredAt: null }]);

const paymentOf = (request: PaymentRequest) => decidedPayment(request, DECISION);

describe("proofs of payments and of decisions on them", () => {
  const proofs = new HmacPaymentProofs(randomMacs(), () => undefined);

  it("each fact of a payment changes its proof, and so does the key", () => {
    const changed = [
      proofs.ofOrder({ ...PAYER, organizationId: "org2" }, ORDER),
      proofs.ofOrder({ ...PAYER, agentId: "agent2" }, ORDER),
      proofs.ofOrder(PAYER, { ...ORDER, transactionId: "txn2" }),
      proofs.ofOrder(PAYER, { ...ORDER, approvalId: "apr2" }),
      proofs.ofOrder(PAYER, { ...ORDER, keyHash: "key2" }),
      proofs.ofOrder(PAYER, { ...ORDER, merchantCategory: "5734" }),
      proofs.ofOrder(PAYER, { ...ORDER, purpose: "Ink." }),
      proofs.ofOrder(PAYER, { ...ORDER, rail: "wallet" }),
      proofs.ofOrder(PAYER, { ...ORDER, amountMc: 101_000 }),
      proofs.ofOrder(PAYER, { ...ORDER, currency: "EUR" }),
      proofs.ofOrder(PAYER, { ...ORDER, recipient: "shop2" }),
      // What ends one part and begins the next counts.
      proofs.ofOrder({ organizationId: 'org","agent', agentId: "" }, ORDER),
      new HmacPaymentProofs(randomMacs(), () => undefined).ofOrder(PAYER, ORDER),
    ];
    expect(new Set([proofs.ofOrder(PAYER, ORDER), ...changed]).size).to.equal(changed.length + 1);
  });

  it("a payment that was accepted for its agent is not for another one, nor with other facts", () => {
    const request = { ...REQUEST, proof: proofs.ofOrder(PAYER, REQUEST) };
    const accepted = (payer: typeof PAYER, change: object = {}) =>
      proofs.isAccepted(
        payer,
        paymentOf(Object.keys(change).length === 0 ? request : { ...request, ...change }),
      );
    expect([accepted(PAYER), accepted(PAYER)]).to.deep.equal([true, true]);
    expect(accepted({ ...PAYER, agentId: "agent2" })).to.equal(false);
    expect(accepted({ ...PAYER, organizationId: "org2" })).to.equal(false);
    expect(accepted(PAYER, { amountMc: 101_000 })).to.equal(false);
  });

  it("each part of a decision changes its proof, and none is a payment's", () => {
    const proofOf = (change: Partial<PersonsDecision>, order = ORDER) =>
      proofs.ofDecision(PAYER, order, { ...DENIED, ...change });
    const all = [
      proofOf({}),
      proofOf({ resolution: "approved" }),
      proofOf({ by: { userId: "user2", name: "Ada" } }),
      proofOf({ by: { userId: "user", name: "Bob" } }),
      proofOf({ feedback: "Why?" }),
      proofOf({ feedback: null }),
      proofOf({}, { ...ORDER, amountMc: 101_000 }),
      proofOf({}, { ...ORDER, recipient: "shop2" }),
      proofOf({}, { ...ORDER, purpose: "another" }),
      proofs.ofOrder(PAYER, ORDER),
    ];
    expect(new Set(all).size).to.equal(all.length);
  });

  it("a record and reports of a retired key's time count, and no payment is made on its proof", () => {
    const [old, inUse] = [randomMacs(), randomMacs()];
    const [before, now] = [
      new HmacPaymentProofs(old, () => undefined),
      new HmacPaymentProofs(inUse, () => undefined, old),
    ];
    const place = { agentId: PAYER.agentId, projectId: "project", teamId: "team" };
    const record = transactionOf(PAYER.organizationId, place);
    const { request } = paymentIn(record, null);
    const proof = before.ofOrder(PAYER, request);
    const ledgerState = { ...record.ledgerState, proof, booksProof: before.ofBooks(record) };
    expect(now.isChargeGenuine({ ...record, ledgerState })).to.equal(true);
    const unsent = paymentOf({ ...request, proof });
    expect(now.isAccepted(PAYER, unsent)).to.equal(false);
    expect(now.isAccepted(PAYER, { ...unsent, books: NO_BOOKS, phase: "done" }), "a report").to.equal(true);
  });
});
