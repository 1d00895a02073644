import { type Db, type IndexDescription, MongoServerError } from "mongodb";
import { COLLECTIONS } from "./documents.ts";

/** The field that says when a record was made, by which it is newer or older than others. */
export type TimeField = "createdAt" | "at";

/**
 * The key of the index that holds the records which have some fields in common, newest first. A list names the same fields
 * in the same order (src/store/lists.ts), and is read through exactly this index. `behind`: fields that it holds besides.
 */
export const newestFirst = (
  fields: readonly string[],
  newestBy: TimeField = "createdAt",
  behind: readonly string[] = [],
): Readonly<Record<string, 1 | -1>> => ({
  ...Object.fromEntries(fields.map((field) => [field, 1 as const])),
  [newestBy]: -1,
  _id: -1,
  ...Object.fromEntries(behind.map((field) => [field, 1 as const])),
});

/** The scopes of agents, payments and approvals, the widest first: each is nested in the one before, for good. */
const AGENT_SCOPES = ["organizationId", "projectId", "teamId"] as const;
const PAYMENT_SCOPES = [...AGENT_SCOPES, "agentId"] as const;

/** All that a summary of payments is made of, so that it reads keys and no record. */
const SUMMARIZED = {
  organizationId: 1,
  createdAt: -1,
  agentId: 1,
  teamId: 1,
  projectId: 1,
  rail: 1,
  status: 1,
  amountCents: 1,
} as const;
export const SUMMARY_INDEX = "summary";

/** Of transactions, from before there were those with the rail, and with the amount. */
const SUPERSEDED = [
  "organizationId_1_createdAt_-1__id_-1",
  "agentId_1_createdAt_-1__id_-1",
  "agent_compared_recipient",
];

/** The scopes of projects, and of teams. */
const CONTAINER_SCOPES = {
  [COLLECTIONS.projects]: ["organizationId"],
  [COLLECTIONS.teams]: ["organizationId", "projectId"],
} as const;

/**
 * The indexes behind the lists of projects, teams, agents, payments and approvals (docs/lists.md): for each scope, without and
 * with the status that a list may be narrowed to. The rail is in every key of payments. Idempotent.
 */
export async function ensureListIndexes(db: Db): Promise<void> {
  const create = (collection: string, keys: readonly (readonly string[])[]) => {
    const indexes: IndexDescription[] = keys.map((fields) => ({ key: newestFirst(fields) }));
    return db.collection(collection).createIndexes(indexes);
  };
  const ofPayments = PAYMENT_SCOPES.flatMap((scope) => [
    [scope, "rail"],
    [scope, "status", "rail"],
  ]);
  const ofAgents = AGENT_SCOPES.flatMap((scope) => [[scope], [scope, "lifecycle"]]);
  const ofApprovals = PAYMENT_SCOPES.map((scope) => [scope, "state"]);
  const ofContainers = Object.entries(CONTAINER_SCOPES).map(
    ([name, scopes]) => [name, scopes.flatMap((scope) => [[scope], [scope, "state"]])] as const,
  );
  const namesOfAgents: IndexDescription[] = AGENT_SCOPES.map((scope) => ({
    key: newestFirst([scope], "createdAt", ["name"]),
  }));
  await Promise.all([
    db.collection(COLLECTIONS.agents).createIndexes(namesOfAgents),
    db.collection(COLLECTIONS.transactions).createIndex(SUMMARIZED, { name: SUMMARY_INDEX }),
    create(COLLECTIONS.transactions, ofPayments),
    create(COLLECTIONS.approvals, ofApprovals),
    create(COLLECTIONS.agents, ofAgents),
    ...ofContainers.map(([name, keys]) => create(name, keys)),
    create(COLLECTIONS.sandboxCardLedger, [["organizationId"]]),
  ]);
  await Promise.all(SUPERSEDED.map((name) => dropIfThere(db, name)));
}

const INDEX_NOT_FOUND = 27;

async function dropIfThere(db: Db, name: string): Promise<void> {
  try {
    await db.collection(COLLECTIONS.transactions).dropIndex(name);
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== INDEX_NOT_FOUND) throw error;
  }
}
