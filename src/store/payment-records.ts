import { type Money, shownBreach } from "../domain/ledger/books.ts";
import {
  type Approval,
  moneyOf,
  type Payment,
  type PaymentTexts,
  stageOf,
} from "../domain/ledger/payment.ts";
import { amountCentsOf, amountMcOf, amountsOf } from "../domain/ledger/amounts.ts";
import { mcOf, usedCents } from "../domain/money.ts";
import type { Denial } from "../domain/ledger/policy.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import { comparedName } from "../domain/rules/compared-name.ts";
import { hostIn } from "../domain/rules/shop-hosts.ts";
import { searchWords } from "../domain/search-words.ts";
import { storedAmounts } from "../domain/ledger/recorded-amounts.ts";
import { recordedBooks, storedBooks } from "./stored-books.ts";
import { movedAmounts } from "./moved-amounts.ts";
import type { ShownOrder } from "../payments/payment-proofs.ts";
import type { ApprovalDocument, LedgerState, TransactionDocument } from "./documents.ts";

/** Denial reason of a payment that was made and then reversed. */
const REVERSED =
  "The payment was made, and then refunded by the merchant or the card network: its amount is available again.";

export function transactionDocument(
  profile: AgentProfile,
  payment: Payment,
  booksProof = "",
): TransactionDocument {
  const { approval, books, denial, request } = payment;
  const { onChainTxHash } = payment;
  const amountCents = amountCentsOf(payment);
  const moved = movedAmounts(payment);
  return {
    _id: request.transactionId,
    organizationId: profile.organizationId,
    projectId: profile.projectId,
    teamId: profile.teamId,
    agentId: profile.agentId,
    agentName: profile.name,
    keyHash: request.keyHash,
    payloadHash: request.payloadHash,
    sequence: payment.sequence,
    createdAt: new Date(payment.createdAt),
    recipient: request.recipient,
    ...purchaseFields(payment),
    comparedRecipient: comparedName(request.recipient),
    words: searchWords({ ...request, amountCents, onChainTxHash }),
    merchantCategory: request.merchantCategory,
    amountCents,
    ...storedAmounts(amountsOf(payment)),
    stage: stageOf(payment),
    breach: books === null || books.breaches.length === 0 ? null : books.breaches.map(shownBreach),
    ...(moved.length === 0 ? {} : { moved }),
    currency: request.currency,
    rail: request.rail,
    status: payment.status,
    purpose: request.purpose,
    ...(payment.wouldHaveFlagged === undefined ? {} : { wouldHaveFlagged: [...payment.wouldHaveFlagged] }),
    denialReason: denial?.reason ?? (payment.status === "reversed" ? REVERSED : null),
    denialCode: denial?.code ?? null,
    denialDetails: denialDetails(payment),
    deniedAt: dateOrNull(payment.deniedAt),
    feedback: approval?.feedback ?? null,
    onChainTxHash,
    chainCaip2: payment.chainCaip2,
    approvalId: approval?.id ?? null,
    revision: payment.revision,
    ledgerState: {
      phase: payment.phase,
      day: payment.day,
      ...(payment.windowAt === undefined ? {} : { windowAt: new Date(payment.windowAt) }),
      policyVersion: payment.policyVersion,
      amountMc: request.amountMc,
      ...(payment.card === undefined ? {} : { card: payment.card }),
      books: storedBooks(books, request.amountMc),
      booksProof,
      approvalId: request.approvalId,
      fingerprint: request.fingerprint,
      proof: request.proof,
      rulesVersions: request.rulesVersions ?? null,
    },
  };
}

function purchaseFields(payment: Payment) {
  const { receipt, request } = payment;
  const { protocol, resource } = request;
  if (protocol === undefined || resource === undefined) return {};
  const host = hostIn(resource);
  const amountMc = amountMcOf(payment);
  return { resource, protocol, host, amountMc, ...(receipt === undefined ? {} : { receipt }) };
}

/** Fields of a payment's record that tell where its money is. */
export type CountedRecord = Pick<TransactionDocument, "status" | "teamId"> & {
  readonly ledgerState: Pick<LedgerState, "amountMc" | "books" | "day">;
};

export const COUNTED_FIELDS = {
  status: 1,
  teamId: 1,
  "ledgerState.amountMc": 1,
  "ledgerState.books": 1,
  "ledgerState.day": 1,
} as const;

/** Projection to a payment's texts. */
export const TEXT_FIELDS = {
  recipient: 1,
  purpose: 1,
  resource: 1,
} as const satisfies Readonly<Record<keyof PaymentTexts, 1>>;

export const moneyIn = ({
  ledgerState,
  status,
}: Pick<TransactionDocument, "status"> & {
  readonly ledgerState: Pick<LedgerState, "amountMc" | "books">;
}): Money => moneyOf({ status, books: recordedBooks(ledgerState), request: ledgerState });

/** Returns the approval's record; null for a payment that was never held. */
export function approvalDocument(profile: AgentProfile, payment: Payment): ApprovalDocument | null {
  const { approval, request } = payment;
  if (approval === null) return null;
  return {
    _id: approval.id,
    transactionId: request.transactionId,
    organizationId: profile.organizationId,
    projectId: profile.projectId,
    teamId: profile.teamId,
    agentId: profile.agentId,
    agentName: profile.name,
    amountCents: usedCents(request.amountMc),
    currency: request.currency,
    rail: request.rail,
    recipient: request.recipient,
    ...(request.resource === undefined ? {} : { resource: request.resource, amountMc: request.amountMc }),
    purpose: request.purpose,
    budgetContext: approval.budgetContext,
    flaggedByRuleTypes: [...approval.flaggedByRuleTypes],
    createdAt: new Date(payment.createdAt),
    expiresAt: new Date(approval.expiresAt),
    state: approval.resolution === null ? "pending" : "completed",
    resolution: approval.resolution,
    resolvedAt: dateOrNull(approval.resolvedAt),
    resolvedBy: approval.resolvedBy,
    feedback: approval.feedback,
    revision: payment.revision,
    ledgerState: {
      proof: approval.proof ?? null,
      policyVersion: approval.policyVersion ?? null,
      ...(request.protocol === undefined ? {} : { protocol: request.protocol }),
    },
  };
}

/** Returns the payment as the person saw it, which is exactly what the proof of a decision covers. */
export function shownOrderOf(record: ApprovalDocument): ShownOrder {
  const {
    _id: approvalId,
    currency,
    ledgerState,
    purpose,
    rail,
    recipient,
    resource,
    transactionId,
  } = record;
  const { protocol } = ledgerState;
  const { amountMc = mcOf(record.amountCents) } = record;
  const purchase = protocol === undefined || resource === undefined ? {} : { protocol, resource };
  return { approvalId, amountMc, currency, purpose, rail, recipient, transactionId, ...purchase };
}

/** Restores a payment from its records, which hold everything that its ledger knew. `approval` is that of `record`. */
export function paymentIn(record: TransactionDocument, approval: ApprovalDocument | null): Payment {
  const { ledgerState } = record;
  const { rulesVersions } = ledgerState;
  return {
    request: {
      transactionId: record._id,
      approvalId: ledgerState.approvalId,
      keyHash: record.keyHash,
      payloadHash: record.payloadHash,
      rail: record.rail,
      amountMc: ledgerState.amountMc,
      currency: "USD",
      recipient: record.recipient,
      ...(record.resource === undefined ? {} : { resource: record.resource }),
      ...(record.protocol === undefined ? {} : { protocol: record.protocol }),
      merchantCategory: record.merchantCategory,
      purpose: record.purpose,
      fingerprint: ledgerState.fingerprint,
      proof: ledgerState.proof,
      ...(rulesVersions === null ? {} : { rulesVersions }),
    },
    sequence: record.sequence,
    createdAt: record.createdAt.getTime(),
    // A restored ledger counts the payment at its creation.
    countedAt: record.createdAt.getTime(),
    day: ledgerState.day,
    ...(ledgerState.windowAt === undefined ? {} : { windowAt: ledgerState.windowAt.getTime() }),
    ...(record.wouldHaveFlagged === undefined ? {} : { wouldHaveFlagged: record.wouldHaveFlagged }),
    status: record.status,
    phase: ledgerState.phase,
    denial: denialIn(record),
    deniedAt: record.deniedAt?.getTime() ?? null,
    approval: approval === null ? null : approvalIn(approval),
    onChainTxHash: record.onChainTxHash,
    chainCaip2: record.chainCaip2,
    ...(record.receipt === undefined ? {} : { receipt: record.receipt }),
    ...(ledgerState.card === undefined ? {} : { card: ledgerState.card }),
    books: recordedBooks(ledgerState),
    policyVersion: ledgerState.policyVersion,
    revision: record.revision,
  };
}

function approvalIn(record: ApprovalDocument): Approval {
  const { policyVersion, proof } = record.ledgerState;
  return {
    id: record._id,
    flaggedByRuleTypes: record.flaggedByRuleTypes,
    budgetContext: record.budgetContext,
    expiresAt: record.expiresAt.getTime(),
    resolution: record.resolution,
    resolvedAt: record.resolvedAt?.getTime() ?? null,
    resolvedBy: record.resolvedBy,
    feedback: record.feedback,
    ...(proof === null ? {} : { proof }),
    ...(policyVersion === null ? {} : { policyVersion }),
  };
}

function denialIn(record: TransactionDocument): Denial | null {
  if (record.denialCode === null) return null;
  const shown = record.denialDetails;
  const details = shown === null ? null : { ...shown, resetsAt: shown.resetsAt?.getTime() ?? null };
  return { code: record.denialCode, reason: record.denialReason ?? "", details };
}

function denialDetails(payment: Payment): TransactionDocument["denialDetails"] {
  const details = payment.denial?.details ?? null;
  if (details === null) return null;
  return { ...details, resetsAt: dateOrNull(details.resetsAt) };
}

const dateOrNull = (at: number | null): Date | null => (at === null ? null : new Date(at));
