import { isDeepStrictEqual } from "node:util";
import type { Money } from "../../../src/domain/ledger/books.ts";
import { usedCents } from "../../../src/domain/money.ts";
import type { ApprovalDocument, TransactionDocument } from "../../../src/store/documents.ts";
import {
  approvalDocument,
  moneyIn,
  paymentIn,
  transactionDocument,
} from "../../../src/store/payment-records.ts";
import {
  bookedStatus,
  hasTexts,
  moneyOf,
  type Payment,
  type PaymentTexts,
  type StoredPayment,
  withTexts,
} from "../../../src/domain/ledger/payment.ts";
import { profileIn } from "../../../src/domain/ledger/state.ts";
import type { AccountSnapshot, OpenPaymentSnapshot } from "../../../src/messages/ledger.ts";
import { compareAccountRecord, compareLifecycle, differing, flat, type Found } from "./agent-records.ts";
import type { RecordProofs } from "./proofs.ts";
import type { AgentSources } from "./sources.ts";
import { ADVICE, type Difference, type DifferenceKind } from "./difference.ts";
import { cents } from "../../../src/rails/findings.ts";

/**
 * Compares an agent's actor and account with its record, and the account with the records of its payments. Actor and
 * account were read first. The record of a payment that the ledger dropped was final before, and open payments are
 * known exactly, so the sums agree to the cent at any time, however busy the agent.
 */
export function compareAgent(sources: AgentSources, proofs: RecordProofs | null): readonly Difference[] {
  const { agentId, record, transactions } = sources;
  const projectId = record?.projectId ?? transactions[0]?.projectId ?? null;
  const compared = [
    ...compareLifecycle(sources),
    ...(record === null || proofs === null ? [] : proofs.compareAgent(record)),
    ...compareMoney(sources, proofs),
  ];
  return compared.map((found) => ({
    repair: null,
    mayBeInFlight: false,
    ...found,
    agentId,
    projectId,
  }));
}

function compareMoney(sources: AgentSources, proofs: RecordProofs | null): Found[] {
  const { account, agentId, record, transactions } = sources;
  if (account === "unknown") return [];
  if (account === "none") return compareDropped(sources, proofs);
  const location = record ?? transactions[0];
  if (location === undefined) return [];
  const { organizationId, projectId } = location;
  const known: KnownAccount = {
    account,
    profile: profileIn({ organizationId, projectId }, account),
    open: new Map(account.open.map((open) => [open.payment.request.transactionId, open])),
    sequence: account.sequence,
  };
  return [
    ...(record === null ? [] : compareAccountRecord(account, record)),
    ...compareSequence(agentId, known, transactions),
    ...compareSum(known, transactions),
    ...compareOpen(known, sources, proofs),
    ...compareClosed(known, sources, proofs),
  ];
}

/**
 * Compares the records of an agent whose account was dropped. The agent is finished: its records are all there is and
 * must agree with each other.
 */
function compareDropped(sources: AgentSources, proofs: RecordProofs | null): Found[] {
  const { agentId, record, transactions } = sources;
  const subject = { of: "agent", id: agentId } as const;
  if (record === null) return [];
  if (record.archivedAt === null) {
    const lost = { what: "the agent's account in its project's ledger", expected: "one", found: "none" };
    // A create opens the account before the record exists; an archive writes the record before it closes the account.
    return [{ ...subject, ...lost, kind: "account_lost", advice: ADVICE.lostAccount, mayBeInFlight: true }];
  }
  const sequence = transactions.reduce((last, one) => Math.max(last, one.sequence), 0);
  const known = { open: new Map<string, OpenPaymentSnapshot>(), sequence };
  const spentMc = transactions.reduce((sum, one) => sum + moneyIn(one).spentMc, 0);
  const compared = [
    ["spent", record.spentCents, usedCents(spentMc)],
    ["held", record.reservedCents, 0],
  ] as const;
  const sums = compared
    .filter(([, said, sum]) => said !== sum)
    .map(([name, said, sum]): Found => ({
      ...subject,
      kind: "payments_sum_differs",
      what: `the sum over the archived agent's payments, ${name}`,
      expected: `${cents(said)}, as its record says`,
      found: cents(sum),
      advice: ADVICE.sum,
    }));
  return [
    ...sums,
    ...compareSequence(agentId, known, transactions),
    ...compareClosed(known, sources, proofs),
  ];
}

/** An agent's payments as the ledger knows them; without an account, as its records imply. */
interface KnownPayments {
  readonly open: ReadonlyMap<string, OpenPaymentSnapshot>;
  readonly sequence: number;
}

interface KnownAccount extends KnownPayments {
  readonly account: AccountSnapshot;
  readonly profile: ReturnType<typeof profileIn>;
}

/**
 * Compares sequence numbers. The ledger numbers every decision: a gap is a lost record, and a duplicate was not decided
 * by the ledger.
 */
function compareSequence(
  agentId: string,
  { open, sequence: last }: KnownPayments,
  transactions: readonly TransactionDocument[],
): Found[] {
  const known = new Set([...open.values()].map(({ payment }) => payment.sequence));
  const seen = new Set<number>();
  const unknown = transactions.filter(({ _id, sequence }) => {
    const isSecond = seen.has(sequence);
    seen.add(sequence);
    const isOpenElsewhere = known.has(sequence) && !open.has(_id);
    return isSecond || isOpenElsewhere || sequence > last || sequence < 1;
  });
  const lost: Found[] = [];
  for (let sequence = 1; sequence <= last; sequence += 1) {
    if (seen.has(sequence) || known.has(sequence)) continue;
    const what = `the record of the agent's payment number ${String(sequence)}, which the ledger has closed`;
    const found = { of: "agent", id: agentId, what, expected: "one", found: "none" } as const;
    lost.push({ ...found, kind: "payment_record_lost", advice: ADVICE.lostPayment });
  }
  return [
    ...lost,
    ...unknown.map(({ _id, sequence }): Found => {
      const what = `a record as the agent's payment number ${String(sequence)}`;
      const found = { of: "payment", id: _id, what, expected: "none", found: "one" } as const;
      return { ...found, kind: "payment_record_unknown", advice: ADVICE.unknownPayment };
    }),
  ];
}

/** Compares the account's spending with its open payments and the records of all others. */
function compareSum(
  { account, open, sequence }: KnownAccount,
  transactions: readonly TransactionDocument[],
): Found[] {
  const closed = transactions.filter((one) => one.sequence <= sequence && !open.has(one._id)).map(moneyIn);
  const all = [...closed, ...[...open.values()].map(({ payment }) => moneyOf(payment))];
  const sumOf = (money: keyof Money): number => usedCents(all.reduce((sum, each) => sum + each[money], 0));
  const compared = [
    ["spent", account.spentCents, sumOf("spentMc")],
    ["held", account.reservedCents, sumOf("heldMc")],
  ] as const;
  return compared
    .filter(([, said, sum]) => said !== sum)
    .map(([name, said, sum]) => ({
      kind: "payments_sum_differs",
      of: "agent",
      id: account.agentId,
      what: `the sum over the agent's payments, ${name}`,
      expected: `${cents(said)}, as its account says`,
      found: cents(sum),
      advice: ADVICE.sum,
      steady: String(said - sum),
    }));
}

/**
 * Returns the payment with the first texts that match its proof, or without proofs with the first available ones; null
 * if there are none.
 */
function wholeOf(
  payment: StoredPayment,
  known: readonly (PaymentTexts | null | undefined)[],
  profile: ReturnType<typeof profileIn>,
  proofs: RecordProofs | null,
): Payment | null {
  if (hasTexts(payment)) return payment;
  const wholes = known.flatMap((texts) => (texts ? [withTexts(payment, texts)] : []));
  return wholes.find((whole) => proofs === null || proofs.isAccepted(profile, whole)) ?? null;
}

/** Compares the account's open payments with their records. */
function compareOpen(
  { open, profile }: KnownAccount,
  { approvals, texts, transactions }: AgentSources,
  proofs: RecordProofs | null,
): Found[] {
  const recorded = new Map(transactions.map((transaction) => [transaction._id, transaction]));
  const approvalsById = new Map(approvals.map((approval) => [approval._id, approval]));
  return [...open.values()].flatMap((each) => {
    const { transactionId } = each.payment.request;
    const record = recorded.get(transactionId) ?? null;
    const payment = wholeOf(each.payment, [record, texts.get(transactionId)], profile, proofs);
    if (payment === null) return [lostTexts(transactionId)];
    const expected = withProofOf(record, transactionDocument(profile, payment), proofs);
    const found = compareRevised("payment", each, expected, record, PAYMENT_FIELDS);
    const approval = approvalDocument(profile, payment);
    // An approval's record is written with its payment's. If only the approval's is missing, it was removed.
    const isApprovalMissing =
      approval === null || record === null
        ? []
        : compareRevised(
            "approval",
            each,
            approval,
            approvalsById.get(approval._id) ?? null,
            APPROVAL_FIELDS,
          );
    const repair = { kind: "payment_records", profile, payment } as const;
    return [...found, ...isApprovalMissing].map((one) =>
      one.advice === ADVICE.repair ? { ...one, repair } : one,
    );
  });
}

/**
 * Returns the expected record with the proof of its books: the actual record's if that is valid, since it may have been
 * made with an older master key.
 */
function withProofOf(
  record: TransactionDocument | null,
  expected: TransactionDocument,
  proofs: RecordProofs | null,
): TransactionDocument {
  if (record === null) return expected;
  const isGenuine = proofs === null || proofs.areBooksGenuine(record);
  const booksProof = isGenuine ? record.ledgerState.booksProof : proofs.ofBooks(expected);
  return { ...expected, ledgerState: { ...expected.ledgerState, booksProof } };
}

const lostTexts = (id: string): Found => ({
  kind: "payment_record_lost",
  of: "payment",
  id,
  what: "the record of an open payment",
  expected: "one, or a workflow, with the texts that the payment was accepted with",
  found: "neither",
  advice: ADVICE.lostPayment,
  mayBeInFlight: true,
});

const PAYMENT_FIELDS = [
  "organizationId",
  "projectId",
  "teamId",
  "agentId",
  "keyHash",
  "sequence",
  "amountCents",
  "recipient",
  "comparedRecipient",
  "words",
  "rail",
  "purpose",
  "status",
  "denialCode",
  "feedback",
  "approvalId",
  "onChainTxHash",
  "ledgerState",
] as const;
const APPROVAL_FIELDS = [
  "transactionId",
  "agentId",
  "amountCents",
  "recipient",
  "purpose",
  "state",
  "resolution",
  "resolvedBy",
  "feedback",
  "ledgerState",
] as const;

const KINDS = {
  payment: "payment_record_differs",
  approval: "approval_record_differs",
} as const satisfies Record<string, DifferenceKind>;

const comparable = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? flat(value) : value;

/** Compares a record written by revision with the ledger's state at the same revision. */
function compareRevised<T extends TransactionDocument | ApprovalDocument>(
  of: "payment" | "approval",
  { confirmedRevision, payment }: OpenPaymentSnapshot,
  target: T,
  record: T | null,
  fields: readonly string[],
): Found[] {
  const found = { kind: KINDS[of], of, id: target._id } as const;
  const advice = ADVICE.repair;
  if (record === null) {
    const what = `the record of an open ${of}`;
    const mayBeInFlight = confirmedRevision === 0;
    return [{ ...found, what, expected: "one", found: "none", advice, mayBeInFlight }];
  }
  const revision = { expected: String(payment.revision), found: String(record.revision) };
  const what = `the revision of the record of an open ${of}`;
  if (record.revision > payment.revision)
    return [{ ...found, ...revision, what, advice: ADVICE.ahead, mayBeInFlight: true }];
  if (record.revision < payment.revision)
    return [{ ...found, ...revision, what, advice, mayBeInFlight: record.revision >= confirmedRevision }];
  const pick = (document: T) =>
    Object.fromEntries(fields.map((field) => [field, comparable(document[field])]));
  return differing(pick(target), pick(record)).map(([field, expected, actual]) => {
    return { ...found, what: `${field} in the record of an open ${of}`, expected, found: actual, advice };
  });
}

/**
 * Checks a payment that the ledger has closed: it has ended, its approval's record agrees, and both have valid proofs.
 */
function compareClosed(
  { open, sequence }: KnownPayments,
  { approvals, approvalsRetainedSince, transactions }: AgentSources,
  proofs: RecordProofs | null,
): Found[] {
  const approvalsById = new Map(approvals.map((approval) => [approval._id, approval]));
  const closed = transactions.filter((one) => !open.has(one._id) && one.sequence <= sequence);
  const unproven = closed.flatMap((record) => {
    const approval = record.approvalId === null ? null : (approvalsById.get(record.approvalId) ?? null);
    return proofs === null ? [] : proofs.comparePayment(record, approval);
  });
  const altered = closed.flatMap((record): Found[] => {
    const { agentName: name } = record;
    const payment = paymentIn(record, approvalsById.get(record.approvalId ?? "") ?? null);
    const { amountCents, amounts, breach, stage } = transactionDocument({ ...record, name }, payment);
    const status = bookedStatus(payment) ?? record.status;
    const fields = Object.entries({ status, amountCents, amounts, breach, stage }).filter(
      ([field, value]) => !isDeepStrictEqual(value, record[field]),
    );
    if (fields.length === 0 || record.status === "pending") return [];
    return [
      {
        kind: "payment_record_differs",
        of: "payment",
        id: record._id,
        what: `${fields.map(([field]) => field).join(", ")} in the record of a payment`,
        expected: `${JSON.stringify(fields.map(([, value]) => value))}, as its books say`,
        found: JSON.stringify(fields.map(([field]) => record[field])),
        advice: ADVICE.closedPayment,
      },
    ];
  });
  const ended = closed.flatMap(({ _id, approvalId, createdAt, revision, status }): Found[] => {
    const advice = ADVICE.closedPayment;
    if (status === "pending") {
      const what = "the status of a payment that the ledger has closed";
      return [
        {
          kind: "payment_record_differs",
          of: "payment",
          id: _id,
          what,
          expected: "an end",
          found: status,
          advice,
        },
      ];
    }
    if (approvalId === null) return [];
    const approval = approvalsById.get(approvalId);
    // Retention may have removed the approval.
    if (approval === undefined && approvalsRetainedSince !== null && createdAt < approvalsRetainedSince)
      return [];
    const actual =
      approval === undefined ? "no record" : `${approval.state}, revision ${String(approval.revision)}`;
    const expected = `completed, revision ${String(revision)}`;
    if (actual === expected) return [];
    const what = "the approval of a payment that the ledger has closed";
    return [
      {
        kind: "approval_record_differs",
        of: "approval",
        id: approvalId,
        what,
        expected,
        found: actual,
        advice,
      },
    ];
  });
  return [...unproven, ...altered, ...ended];
}
