import { AgentProofs } from "../../../src/agents/agent-proofs.ts";
import type { AgentRef } from "../../../src/domain/agent/state.ts";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import { FORGED } from "../../../src/domain/ledger/forged.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { HmacPaymentProofs } from "../../../src/payments/payment-proofs.ts";
import { AccessProofs } from "../../../src/secrets/access-proofs.ts";
import { KeyedMacs } from "../../../src/secrets/keyed-macs.ts";
import type { MasterKey } from "../../../src/secrets/master-key.ts";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../src/store/documents.ts";
import { paymentIn } from "../../../src/store/payment-records.ts";
import { differing, type Found } from "./agent-records.ts";
import { ADVICE } from "./difference.ts";

/**
 * Checks records against the MACs that the service made when it wrote them. Covers facts that no actor knows, or no
 * longer knows.
 */
export class RecordProofs {
  readonly #payments: HmacPaymentProofs;
  readonly #agents: AgentProofs;
  readonly access: AccessProofs;

  constructor(masterKey: MasterKey) {
    this.#payments = new HmacPaymentProofs(
      new KeyedMacs(masterKey.deriveKeys("payment-proofs")),
      () => undefined,
    );
    this.#agents = new AgentProofs(masterKey.macs("agent-proofs"));
    this.access = new AccessProofs(masterKey.macs("access-proofs"));
  }

  /** Verifies the agent's container, scopes, wallet and key hash. */
  compareAgent(record: AgentDocument): Found[] {
    const { _id, key } = record;
    const found = {
      kind: "agent_record_differs",
      of: "agent",
      id: _id,
      expected: "as the service wrote it",
      found: "changed since",
      advice: ADVICE.proof,
    } as const;
    const isChanged = !this.#agents.isAgentGenuine(record);
    const isOtherKey = key !== null && !this.#agents.isKeyGenuine(_id, key);
    return [
      ...(isChanged ? [{ ...found, what: "the agent's organization, team, scopes, wallet or creator" }] : []),
      ...(isOtherKey ? [{ ...found, what: "the hash of the agent's key" }] : []),
    ];
  }

  isAccepted(payer: AgentRef, payment: Payment): boolean {
    return this.#payments.isAccepted(payer, payment);
  }

  /** Whether a payment was requested and counts as its record says. */
  isPaymentGenuine(record: TransactionDocument): boolean {
    const isRequested = isRefused(record) || this.#payments.isOrderGenuine(record);
    return isRequested && this.areBooksGenuine(record);
  }

  ofBooks(record: TransactionDocument): string {
    return this.#payments.ofBooks(record);
  }

  areBooksGenuine(record: TransactionDocument): boolean {
    return this.#payments.areBooksGenuine(record);
  }

  /** Verifies a payment's request, idempotency key and purpose, and the person who decided on it. */
  comparePayment(record: TransactionDocument, approval: ApprovalDocument | null): Found[] {
    const payment = paymentIn(record, approval);
    const ended = {
      expected: "as the service wrote it",
      found: "changed since",
      advice: ADVICE.closedPayment,
    } as const;
    const order: Found[] =
      isRefused(record) || this.#payments.isAccepted(record, payment)
        ? []
        : [
            {
              ...ended,
              kind: "payment_record_differs",
              of: "payment",
              id: record._id,
              what: "the agent's order",
            },
          ];
    const books: Found[] = this.areBooksGenuine(record)
      ? []
      : [
          {
            ...ended,
            kind: "payment_record_differs",
            of: "payment",
            id: record._id,
            what: "the payment's state and books",
          },
        ];
    if (approval === null) return [...order, ...books];
    const subject = { kind: "approval_record_differs", of: "approval", id: approval._id } as const;
    const decision: Found[] =
      isRefused(record) || this.#payments.isResolvedAsNamed(record, payment)
        ? []
        : [{ ...ended, ...subject, what: "the person's decision" }];
    const requested = { ...record, amountCents: usedCents(record.ledgerState.amountMc) };
    const copied = differing(copiedIn(requested), copiedIn(approval)).map(
      ([field, expected, found]): Found => ({
        ...subject,
        what: `${field} in the approval of a payment`,
        expected: `${expected}, as its payment's record says`,
        found,
        advice: ADVICE.closedPayment,
      }),
    );
    return [...order, ...books, ...decision, ...copied];
  }
}

/** Whether the service itself refused a payment for lack of a proof. */
const isRefused = ({ denialReason }: TransactionDocument): boolean => denialReason === FORGED.reason;

/** Fields of a payment that its approval's record repeats. */
const COPIED_FIELDS = [
  "organizationId",
  "projectId",
  "teamId",
  "agentId",
  "amountCents",
  "currency",
  "rail",
  "recipient",
  "purpose",
] as const;

const copiedIn = (of: TransactionDocument | ApprovalDocument) =>
  Object.fromEntries(COPIED_FIELDS.map((field) => [field, of[field]]));
