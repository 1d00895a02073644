import type { Db } from "mongodb";
import { AUDIT_LOG } from "../../../src/store/audit-documents.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import type { AccountSnapshot } from "../../../src/messages/ledger.ts";
import { ORDER } from "./system.ts";

interface AgentTotals {
  readonly _id: string;
  readonly count: number;
  readonly amountCents: number;
}

export interface Books {
  /** Payments that were answered with success. */
  readonly answered: number;
  /** Sums in the rail's own books, by name. */
  readonly onRail: Readonly<Record<string, number>>;
}

/**
 * Compares the books: what was answered, the transactions on record, the rail's own, and what the ledger says each
 * agent has spent. Answers what disagrees.
 */
export async function auditPayments(
  db: Db,
  organizationId: string,
  accounts: readonly AccountSnapshot[],
  { answered, onRail }: Books,
): Promise<string[]> {
  const transactions = db.collection(COLLECTIONS.transactions);
  const approved = await transactions
    .aggregate<AgentTotals>([
      { $match: { organizationId, status: "approved" } },
      { $group: { _id: "$agentId", count: { $sum: 1 }, amountCents: { $sum: "$amountCents" } } },
    ])
    .toArray();
  const counts = {
    answered,
    transactions: await transactions.countDocuments({ organizationId }),
    approved: approved.reduce((sum, { count }) => sum + count, 0),
    ...onRail,
    "spent by the ledger": accounts.reduce((sum, { spentCents }) => sum + spentCents, 0) / ORDER.amountCents,
  };
  const agree = Object.values(counts).every((count) => count === answered);
  const listed = Object.entries(counts).map(([name, count]) => `${String(count)} ${name}`);
  return [...(agree ? [] : [`payments: ${listed.join(", ")}`]), ...disagreeingAgents(accounts, approved)];
}

/** The card processor's ledger. */
export const capturedByProcessor = async (db: Db, organizationId: string) => ({
  "ledger entries": await db.collection(COLLECTIONS.sandboxCardLedger).countDocuments({ organizationId }),
  "ledger entries of approved transactions": await ledgerEntriesOfApproved(db, organizationId),
});

/** The audit log's. */
export const auditedDecisions = async (db: Db, organizationId: string) => ({
  "decisions in the audit log": await db
    .collection(AUDIT_LOG)
    .countDocuments({ organizationId, action: "decidePayment" }),
});

async function ledgerEntriesOfApproved(db: Db, organizationId: string): Promise<number> {
  const [joined] = await db
    .collection(COLLECTIONS.sandboxCardLedger)
    .aggregate<{ count: number }>([
      { $match: { organizationId } },
      {
        $lookup: {
          from: COLLECTIONS.transactions,
          localField: "transactionId",
          foreignField: "_id",
          as: "transaction",
        },
      },
      { $match: { "transaction.status": "approved", amountCents: ORDER.amountCents } },
      { $count: "count" },
    ])
    .toArray();
  return joined?.count ?? 0;
}

function disagreeingAgents(accounts: readonly AccountSnapshot[], approved: readonly AgentTotals[]): string[] {
  const totals = new Map(approved.map((agent) => [agent._id, agent.amountCents]));
  return accounts.flatMap(({ agentId, reservedCents, spentCents }) => {
    const onRecord = totals.get(agentId) ?? 0;
    if (spentCents === onRecord && reservedCents === 0) return [];
    return [
      `agent ${agentId}: ${String(onRecord)} on record, ${String(spentCents)} spent, ${String(reservedCents)} reserved`,
    ];
  });
}
