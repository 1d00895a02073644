import type { Payment, PaymentRequest, Resolver } from "../domain/ledger/payment.ts";
import type { AgentRef } from "../domain/agent/state.ts";
import type { KeyedMacs } from "../secrets/keyed-macs.ts";
import type { LedgerState, TransactionDocument } from "../store/documents.ts";
import { paymentIn } from "../store/payment-records.ts";
import type { PaymentProofs } from "./ports.ts";

/** Fields covered by the proof: those that move money, and the ids that make it happen once. */
export type ProvenOrder = Pick<
  PaymentRequest,
  "transactionId" | "approvalId" | "rail" | "amountMc" | "recipient" | "protocol" | "resource"
> & { readonly currency: string };

/**
 * Fields covered by a request's proof: also the idempotency key, so that a denied payment can't be submitted again
 * under another one, and the fields that a person decides by.
 */
export type OrderRequest = ProvenOrder & Pick<PaymentRequest, "keyHash" | "merchantCategory" | "purpose">;

/** Fields that a person decides by. */
export type ShownOrder = ProvenOrder & Pick<PaymentRequest, "purpose">;

export interface PersonsDecision {
  readonly resolution: "approved" | "denied";
  readonly by: Resolver;
  readonly feedback: string | null;
}

/** Callback for each forgery, for log and metrics. */
export type OnForged = PaymentProofs["onForged"];

/**
 * Proofs that this service accepted a payment, and that a person decided on it through this service. They are HMACs
 * under a separate key, made where the caller is authenticated, and checked where money moves and where a person is
 * named. In between, a ledger may have been reset, or restored from records that were changed.
 */
export class HmacPaymentProofs implements PaymentProofs {
  readonly #macs: KeyedMacs;
  readonly #macsOfRecords: KeyedMacs;
  /**
   * Requests with a verified proof, and their payer. Each is checked before every effect, and requests never change.
   */
  readonly #accepted = new WeakMap<PaymentRequest, string>();
  readonly onForged: OnForged;

  /** `macsOfRecords` also verify under retired keys: networks report on payments of their time for months. */
  constructor(macs: KeyedMacs, onForged: OnForged, macsOfRecords: KeyedMacs = macs) {
    this.#macs = macs;
    this.#macsOfRecords = macsOfRecords;
    this.onForged = onForged;
  }

  /** Proves that an agent requested a payment. */
  ofOrder(payer: AgentRef, order: OrderRequest): string {
    return this.#macs.make(orderFacts(payer, order));
  }

  /** Proves a person's decision on a payment as it was shown to them. */
  ofDecision(payer: AgentRef, order: ShownOrder, decision: PersonsDecision): string {
    return this.#macs.make(decisionFacts(payer, order, decision));
  }

  /** Proves the books and the state in a payment's record, from which its ledger may restore them. */
  ofBooks(record: ProvenBooks): string {
    return this.#macs.make(booksFacts(record));
  }

  areBooksGenuine(record: ProvenBooks & { readonly ledgerState: Pick<LedgerState, "booksProof"> }): boolean {
    return this.#macsOfRecords.isMac(booksFacts(record), record.ledgerState.booksProof);
  }

  /** Whether the service wrote of a payment who requested it, and what. */
  isOrderGenuine(record: TransactionDocument): boolean {
    const { request } = paymentIn(record, null);
    return this.#macsOfRecords.isMac(orderFacts(record, request), request.proof);
  }

  /** Whether the service wrote of a charged payment who paid whom, and that it was charged. */
  isChargeGenuine(record: TransactionDocument): boolean {
    return this.isOrderGenuine(record) && this.areBooksGenuine(record);
  }

  isAccepted(payer: AgentRef, payment: JudgedPayment): boolean {
    const { request } = payment;
    const { agentId, organizationId } = payer;
    const whose = `${organizationId} ${agentId}`;
    if (this.#accepted.get(request) === whose) return true;
    const facts = orderFacts(payer, request);
    if (isOnlyBooked(payment)) return this.#macsOfRecords.isMac(facts, request.proof);
    const isAccepted = this.#macs.isMac(facts, request.proof);
    if (isAccepted) this.#accepted.set(request, whose);
    return isAccepted;
  }

  isResolvedAsNamed(payer: AgentRef, payment: Payment): boolean {
    const { approval, request } = payment;
    if (approval === null) return true;
    const { feedback, proof = "", resolution } = approval;
    // A history written from outside may lack even the field.
    const by: Resolver | null | undefined = approval.resolvedBy;
    // Expiry and archival end a payment without a person. A payment that was to be paid was approved by a person,
    // whatever its later outcome.
    if (by === null || by === undefined)
      return resolution === null || resolution === "denied" || resolution === "expired";
    const decision = { resolution: resolution === "denied" ? "denied" : "approved", by, feedback } as const;
    const macs = isOnlyBooked(payment) ? this.#macsOfRecords : this.#macs;
    return macs.isMac(decisionFacts(payer, request, decision), proof);
  }
}

type JudgedPayment = Pick<Payment, "books" | "phase" | "request">;

/** Whether a network has charged the payment: nothing is sent for it any more, and its reports are booked. */
const isOnlyBooked = ({ books, phase }: Omit<JudgedPayment, "request">): boolean =>
  books !== null && (phase === "following" || phase === "done");

/** Fields of a recorded payment by which it counts. */
export type ProvenBooks = Pick<
  TransactionDocument,
  | "_id"
  | "organizationId"
  | "projectId"
  | "teamId"
  | "agentId"
  | "createdAt"
  | "sequence"
  | "revision"
  | "status"
> & {
  readonly ledgerState: Pick<LedgerState, "amountMc" | "books" | "day" | "phase" | "windowAt">;
};

const booksFacts = ({ _id, agentId, createdAt, ledgerState, ...record }: ProvenBooks): string =>
  asText([
    "books",
    record.organizationId,
    record.projectId,
    record.teamId,
    agentId,
    _id,
    createdAt.getTime(),
    record.sequence,
    record.revision,
    record.status,
    ledgerState.phase,
    ledgerState.day,
    ledgerState.windowAt?.getTime() ?? null,
    // Books of a payment charged in full follow from its amount.
    ledgerState.amountMc,
    JSON.stringify(ledgerState.books),
  ]);

const factsOf = ({ agentId, organizationId }: AgentRef, order: ProvenOrder) => {
  const { amountMc, approvalId, currency, protocol, rail, recipient, resource, transactionId } = order;
  const facts = [organizationId, agentId, transactionId, approvalId, rail, amountMc, currency, recipient];
  return protocol === undefined ? facts : [...facts, protocol, resource ?? null];
};

function orderFacts(payer: AgentRef, order: OrderRequest): string {
  const { keyHash, merchantCategory, purpose } = order;
  return asText(["order", ...factsOf(payer, order), keyHash, merchantCategory, purpose]);
}

function decisionFacts(
  payer: AgentRef,
  order: ShownOrder,
  { by, feedback, resolution }: PersonsDecision,
): string {
  const facts = factsOf(payer, order);
  return asText(["decision", ...facts, order.purpose, resolution, by.userId, by.name, feedback]);
}

/** Encodes the parts as JSON, which keeps them apart. */
const asText = (parts: readonly (string | number | null)[]): string => JSON.stringify(parts);
