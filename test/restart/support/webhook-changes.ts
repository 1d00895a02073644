import { recordedBooks } from "../../../src/store/stored-books.ts";
import type { Db } from "mongodb";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../src/store/documents.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import { auditLogOf, chainRange } from "../../../src/store/audit-documents.ts";
import { type Change, changesIn, stateChanges } from "../../../lab/chaos/audit/delivered.ts";

/** What was committed of an organization, as its records and its audit log have it: the journal of events is not asked. */
export interface Committed {
  readonly changes: readonly Change[];
  /** Where the records and the audit log contradict each other. */
  readonly contradictions: readonly string[];
  readonly teamOf: ReadonlyMap<string, string>;
}

const STATE_OF: Readonly<Record<string, string>> = { "agent.paused": "paused", "agent.resumed": "active" };

export async function committedOf(db: Db, organizationId: string): Promise<Committed> {
  const of = { organizationId };
  const [agents, transactions, approvals, log] = await Promise.all([
    db.collection<AgentDocument>(COLLECTIONS.agents).find(of).toArray(),
    db.collection<TransactionDocument>(COLLECTIONS.transactions).find(of).toArray(),
    db.collection<ApprovalDocument>(COLLECTIONS.approvals).find(of).toArray(),
    auditLogOf(db)
      .find({ _id: chainRange(organizationId) })
      .sort({ _id: 1 })
      .toArray(),
  ]);
  const ofRecords = changesIn({
    transactions: transactions.map(({ _id, ledgerState, ...rest }) => ({
      ...rest,
      id: _id,
      to: rest.recipient,
      authorizations: recordedBooks(ledgerState)?.authorizations ?? [],
    })),
    approvals: approvals.map(({ _id, agentId, resolution, resolvedBy }) => ({
      id: _id,
      agentId,
      isDecidedByPerson: resolvedBy !== null,
      resolution,
    })),
    agentIds: agents.map(({ _id }) => _id),
  });
  const contradictions: string[] = [];

  const states = agents.flatMap(({ _id, lifecycle }) => {
    const types = log
      .filter(({ resource, result }) => resource.id === _id && result.status === 200)
      .flatMap(({ action }) => STATE_TYPES[action] ?? [])
      // What was repeated for want of an answer is in the log twice, and has changed the state once.
      .filter((type, index, all) => type !== all[index - 1]);
    const last = types.at(-1);
    if (last !== undefined && STATE_OF[last] !== lifecycle)
      contradictions.push(`${_id} is ${lifecycle} after ${last}`);
    return stateChanges(_id, types);
  });

  const decided = new Map(
    log
      .filter(({ action }) => action === "decidePayment")
      .map(({ decision, resource }) => [resource.id ?? "", outcomeOf(decision)]),
  );
  for (const { _id, approvalId, status } of transactions) {
    const said = approvalId === null ? (status === "denied" ? "denied" : "approved") : "held";
    if (decided.get(_id) !== said) contradictions.push(`${_id}: ${said}, logged ${String(decided.get(_id))}`);
  }
  if (decided.size !== transactions.length)
    contradictions.push(`${String(decided.size)} logged for ${String(transactions.length)} payments`);
  const resolved = log.filter(({ action }) => action === "resolvePayment").length;
  const completed = approvals.filter(({ state }) => state === "completed").length;
  if (resolved !== completed)
    contradictions.push(`${String(resolved)} logged for ${String(completed)} approvals that were resolved`);

  return {
    changes: [...ofRecords, ...states],
    contradictions,
    teamOf: new Map(agents.map(({ _id, teamId }) => [_id, teamId])),
  };
}

const STATE_TYPES: Readonly<Record<string, string>> = {
  pauseAgent: "agent.paused",
  resumeAgent: "agent.resumed",
};

function outcomeOf(decision: unknown): string {
  const isRecord = typeof decision === "object" && decision !== null;
  return isRecord && "outcome" in decision ? String(decision.outcome) : "nothing";
}
