import { recordedBooks } from "../../../src/store/stored-books.ts";
import { isDeepStrictEqual } from "node:util";
import type { Db } from "mongodb";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../src/store/documents.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import { booksIn, type CardLedgerDocument } from "../../../src/rails/card/network-books.ts";

/** What an agent's actor says of its money (GET budget-policy). */
export interface Totals {
  readonly spentCents: number;
  readonly reservedCents: number;
}

export interface BooksOptions {
  readonly db: Db;
  readonly organizationId: string;
  /** Asks the actor. */
  readonly totalsOf: (agentId: string) => Promise<Totals>;
}

/**
 * Audits an organization from outside: what its actors decided, what the projection shows and what the processor
 * took must agree to the cent. Answers what does not, each in a line; empty when the books agree.
 */
export async function audit({ db, organizationId, totalsOf }: BooksOptions): Promise<readonly string[]> {
  const of = { organizationId };
  const [agents, transactions, approvals, ledger] = await Promise.all([
    db.collection<AgentDocument>(COLLECTIONS.agents).find(of).toArray(),
    db.collection<TransactionDocument>(COLLECTIONS.transactions).find(of).toArray(),
    db.collection<ApprovalDocument>(COLLECTIONS.approvals).find(of).toArray(),
    db.collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger).find(of).toArray(),
  ]);
  const ofAgents = await Promise.all(
    agents.map(async (agent) => {
      const own = transactions.filter(({ agentId }) => agentId === agent._id);
      return [...auditTotals(agent, own, await totalsOf(agent._id)), ...auditSequence(agent, own)];
    }),
  );
  return [
    ...ofAgents.flat(),
    ...transactions.flatMap((transaction) => auditEffects(transaction, ledger)),
    ...auditLedger(transactions, ledger),
    ...auditHolds(transactions, approvals),
  ];
}

const sum = (transactions: readonly TransactionDocument[], status: TransactionDocument["status"]): number =>
  transactions.filter((one) => one.status === status).reduce((total, one) => total + one.amountCents, 0);

/** The actor's totals, and the record that lists show, are what the statuses of its payments add up to. */
function auditTotals(
  agent: AgentDocument,
  transactions: readonly TransactionDocument[],
  totals: Totals,
): readonly string[] {
  const [spent, reserved] = [sum(transactions, "approved"), sum(transactions, "pending")];
  const compare = (who: string, said: Totals): readonly string[] =>
    said.spentCents === spent && said.reservedCents === reserved
      ? []
      : [
          `agent ${agent._id}: its ${who} says ${said.spentCents} spent, ${said.reservedCents} reserved; its payments ${spent}, ${reserved}`,
        ];
  const within = spent + reserved <= agent.policy.budgetCents;
  return [
    ...compare("actor", totals),
    ...compare("record", agent),
    ...(within ? [] : [`agent ${agent._id}: ${spent + reserved} of a budget of ${agent.policy.budgetCents}`]),
  ];
}

/** Every decision is numbered by the actor, so a gap is a decision without a record, a double one a repeated one. */
function auditSequence(
  agent: AgentDocument,
  transactions: readonly TransactionDocument[],
): readonly string[] {
  const numbers = transactions.map(({ sequence }) => sequence).toSorted((a, b) => a - b);
  const wrong = numbers.findIndex((number, index) => number !== index + 1);
  return wrong < 0 ? [] : [`agent ${agent._id}: payment ${wrong + 1} is missing, or there twice`];
}

/** A payment's books are those of its network, and payments that were never sent have none. */
function auditEffects(
  { _id, ledgerState, recipient, status }: TransactionDocument,
  ledger: readonly CardLedgerDocument[],
): readonly string[] {
  const entries = ledger.filter(({ transactionId }) => transactionId === _id);
  const recorded = recordedBooks(ledgerState)?.authorizations ?? [];
  const isOther = entries.some(({ merchant }) => merchant !== recipient);
  return [
    ...(isDeepStrictEqual(booksIn(entries), recorded)
      ? []
      : [`${status} ${_id}: other books than its network`]),
    ...(isOther ? [`${status} ${_id}: the network charged for another merchant`] : []),
  ];
}

function auditLedger(
  transactions: readonly TransactionDocument[],
  ledger: readonly CardLedgerDocument[],
): readonly string[] {
  const known = new Set(transactions.map(({ _id }) => _id));
  return ledger
    .filter(({ transactionId }) => !known.has(transactionId))
    .map(({ _id, amountCents }) => `the processor took ${amountCents} under ${_id}, of which nobody knows`);
}

/** What is pending waits for a person: nothing else may stay reserved. */
function auditHolds(
  transactions: readonly TransactionDocument[],
  approvals: readonly ApprovalDocument[],
): readonly string[] {
  const waiting = new Set(approvals.filter(({ state }) => state === "pending").map(({ _id }) => _id));
  return transactions
    .filter(({ status, approvalId }) => status === "pending" && !waiting.has(approvalId ?? ""))
    .map(({ _id }) => `${_id} is pending, and nobody is asked about it`);
}
