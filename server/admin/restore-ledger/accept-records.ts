import { MongoLedgerRevisions } from "../../../src/store/ledger-revisions.ts";
import { staleBackupOf } from "../../../src/domain/ledger/stale-backup.ts";
import type { AccountSnapshot } from "../../../src/messages/ledger.ts";
import { TemporalCalls } from "../../../src/actors/calls.ts";
import { TemporalActors } from "../../../src/actors/temporal.ts";
import { type Collections, collectionsOf } from "../../../src/store/collections.ts";
import type { Connections } from "../../../src/store/connections.ts";
import { AdminError, connected } from "../connecting.ts";
import { recordCommand } from "../record-command.ts";
import { requireMasterKey } from "../master-key.ts";
import { plural } from "../reconcile/text.ts";

export interface AcceptOptions {
  readonly projectId: string;
  /** False for a dry run that reports what the records lack. */
  readonly isConfirmed: boolean;
}

/** Payments of an agent that the ledger has and the records lack. */
export interface Lacking {
  readonly agentId: string;
  /** Null if the agent has no record and therefore cannot pay. */
  readonly payments: number | null;
}

export interface Accepted {
  readonly projectId: string;
  readonly isDone: boolean;
  readonly ledgerRevision: number;
  readonly recordedRevision: number;
  readonly lacking: readonly Lacking[];
}

/** Maximum accounts in one response of a ledger. */
const ACCOUNTS_AT_ONCE = 250;

/**
 * `accept-records`: lets a project's ledger continue with records restored from an older backup. Payments lost from the
 * records stay lost and continue to count.
 */
export const acceptRecords = (env: NodeJS.ProcessEnv, options: AcceptOptions): Promise<Accepted> =>
  connected(env, (connections) => acceptRecordsOn(connections, env, options));

export async function acceptRecordsOn(
  connections: Connections,
  env: NodeJS.ProcessEnv,
  { isConfirmed, projectId }: AcceptOptions,
): Promise<Accepted> {
  const { db, temporal } = connections;
  const masterKey = isConfirmed ? await requireMasterKey(env) : null;
  const collections = collectionsOf(db);
  const project = await collections.projects.findOne({ _id: projectId });
  if (project === null) throw new AdminError(`There is no project ${projectId}.`);
  const actors = new TemporalActors(new TemporalCalls(temporal, connections.addresses.taskQueue));
  const revisions = new MongoLedgerRevisions(db);
  const recorded = await revisions.read(projectId);
  const state = await actors.ledgerState(projectId);
  if (staleBackupOf(state, { ledger: 0, recorded, isRead: true }) !== "records")
    throw new AdminError(`The records of project ${projectId} are not behind its ledger. Nothing was done.`);
  const lacking = await lackingIn(collections, await accountsOf(actors, projectId));
  const found = { projectId, ledgerRevision: state.revision, recordedRevision: recorded, lacking };
  if (masterKey === null) return { ...found, isDone: false };
  await recordCommand(db, masterKey, {
    organizationId: project.organizationId,
    via: "accept-records",
    action: "acceptRecords",
    resource: { type: "project", id: projectId },
    before: { recordedRevision: recorded },
    after: { ledgerRevision: state.revision, agentsThatLackRecords: lacking.length },
  });
  await revisions.write(projectId, state.revision);
  return { ...found, isDone: true };
}

async function accountsOf(actors: TemporalActors, projectId: string): Promise<readonly AccountSnapshot[]> {
  const accounts: AccountSnapshot[] = [];
  for (let hasMore = true; hasMore;) {
    const after = accounts.at(-1)?.agentId ?? null;
    const page = await actors.ledgerSnapshot(projectId, { after, limit: ACCOUNTS_AT_ONCE });
    accounts.push(...page.accounts);
    ({ hasMore } = page);
  }
  return accounts;
}

/**
 * Compares records with accounts. Payments are numbered by their agent's account, and each has a record once it was
 * answered.
 */
async function lackingIn(
  { agents, transactions }: Pick<Collections, "agents" | "transactions">,
  accounts: readonly AccountSnapshot[],
): Promise<readonly Lacking[]> {
  const ids = accounts.map(({ agentId }) => agentId);
  const known = await agents.find({ _id: { $in: ids } }, { projection: { _id: 1 } }).toArray();
  const knownIds = new Set(known.map(({ _id }) => _id));
  const counted = await transactions
    .aggregate<{ readonly _id: string; readonly count: number }>([
      { $match: { agentId: { $in: ids } } },
      { $group: { _id: "$agentId", count: { $sum: 1 } } },
    ])
    .toArray();
  const countOf = new Map(counted.map(({ _id, count }) => [_id, count]));
  return accounts.flatMap(({ agentId, sequence }): Lacking[] => {
    if (!knownIds.has(agentId)) return [{ agentId, payments: null }];
    const payments = sequence - (countOf.get(agentId) ?? 0);
    return payments > 0 ? [{ agentId, payments }] : [];
  });
}

export const acceptedText = ({
  isDone,
  lacking,
  ledgerRevision,
  projectId,
  recordedRevision,
}: Accepted): string =>
  [
    `project ${projectId}: its ledger is at revision ${String(ledgerRevision)}, its records are at ${String(recordedRevision)}`,
    ...lacking.map(({ agentId, payments }) =>
      payments === null
        ? `agent ${agentId} has an account and no record: nobody can pay by it`
        : `agent ${agentId} lacks the records of ${plural(payments, "payment")}`,
    ),
    ...NOT_REPAIRED,
    isDone ? "The ledger goes on." : "Nothing was done. With --yes the ledger goes on.",
  ].join("\n");

const NOT_REPAIRED: readonly string[] = [
  "What the records lack goes on counting under every limit, and can't be listed.",
  "An idempotency key of a lost payment is answered 503 as long as the ledger remembers it (the newest 5,000 of the project); after that it would pay again.",
];
