import { WorkflowExecutionAlreadyStartedError } from "@temporalio/client";
import { setTimeout as sleep } from "node:timers/promises";
import pLimit from "p-limit";
import { MongoLedgerRevisions } from "../../../src/store/ledger-revisions.ts";
import type { ProjectDocument } from "../../../src/store/documents.ts";
import { staleBackupOf } from "../../../src/domain/ledger/stale-backup.ts";
import { packLedger } from "../../../src/domain/ledger/pack.ts";
import { restoredLedger } from "../../../src/domain/ledger/restore.ts";
import type { Ledger, Totals } from "../../../src/domain/ledger/state.ts";
import type { LedgerStateView } from "../../../src/messages/ledger.ts";
import { ActorUnavailable } from "../../../src/actors/actor-unavailable.ts";
import { TemporalCalls } from "../../../src/actors/calls.ts";
import { TemporalActors } from "../../../src/actors/temporal.ts";
import { webhookCollections } from "../../../src/store/webhook-documents.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import type { Connections } from "../../../src/store/connections.ts";
import { verifyMasterKey } from "../../../src/secrets/verify-master-key.ts";
import { AdminError, connected } from "../connecting.ts";
import { recordCommand } from "../record-command.ts";
import { findMasterKey, requireMasterKey } from "../master-key.ts";
import type { Difference } from "../reconcile/difference.ts";
import { RecordProofs } from "../reconcile/proofs.ts";
import { reconcileOn } from "../reconcile/reconcile.ts";
import { readRecords } from "./records.ts";

export interface RestoreOptions {
  readonly projectId: string;
  /** False for a dry run that reports what would be restored. */
  readonly isConfirmed: boolean;
  /**
   * Maximum time for which work in flight may look like a difference in the final comparison; null for no comparison.
   */
  readonly patienceMs: number | null;
  readonly onProgress: (line: string) => void;
}

/**
 * Time after which records contain all that is known. A payment decided by the lost ledger is sent within 1 s
 * (`src/payments/rail-sender.ts`) and recorded by its sender within 5 s after that.
 */
const QUIET_MS = 10_000;
/**
 * Age of a ledger's end beyond which there is no wait, allowing for clock differences between this machine and the
 * engine.
 */
const LONG_AGO_MS = 120_000;
/** Time for an engine that has just been started to answer for its workflows. */
const ANSWER_TIMEOUT_MS = 60_000;
const ANSWER_INTERVAL_MS = 1_000;

export interface Restored {
  readonly organizationId: string;
  readonly projectId: string;
  readonly isDone: boolean;
  /** State of the lost ledger in the engine. */
  readonly lost: string;
  readonly accounts: number;
  readonly droppedAccounts: number;
  readonly caps: number;
  readonly totals: Totals;
  /** Payments that are executed again, by state. */
  readonly open: Readonly<Record<"held" | "sending" | "following" | "done", number>>;
  readonly notes: readonly string[];
  /** Facts that no record contains. */
  readonly notKnown: readonly string[];
  /** Differences in the whole organization once the ledger runs; null if it was not started or nothing was compared. */
  readonly differences: readonly Difference[] | null;
}

/**
 * `restore-ledger`: restarts a project's ledger from its records after it was ended by hand or lost with its engine.
 * Ends a ledger that runs from a backup and is behind its records; refuses while any other runs.
 */
export const restoreLedger = (env: NodeJS.ProcessEnv, options: RestoreOptions): Promise<Restored> =>
  connected(env, (connections) => restoreLedgerOn(connections, env, options));

type RestoreAllOptions = Pick<RestoreOptions, "isConfirmed" | "onProgress">;

/** Ledgers restored concurrently. Each waits some seconds until nothing in its project is in flight. */
const LEDGERS_AT_ONCE = 50;

/** Results for all projects whose ledger did not run, or ran behind its records. */
export interface RestoredAll {
  readonly restored: readonly Restored[];
  /** Projects whose ledger could not be restored, with the reason. */
  readonly refused: readonly { readonly projectId: string; readonly reason: string }[];
}

/**
 * `restore-ledger --all`: restores all ledgers after Temporal was restored from a backup, and starts deliveries again.
 * Compares nothing.
 */
export const restoreLedgers = (env: NodeJS.ProcessEnv, options: RestoreAllOptions): Promise<RestoredAll> =>
  connected(env, (connections) => restoreLedgersOn(connections, env, options));

export async function restoreLedgersOn(
  connections: Connections,
  env: NodeJS.ProcessEnv,
  { isConfirmed, onProgress }: RestoreAllOptions,
): Promise<RestoredAll> {
  const projects = collectionsOf(connections.db).projects.find({}, { projection: { _id: 1 } });
  const ids = (await projects.toArray()).map(({ _id }) => _id);
  const limit = pLimit(LEDGERS_AT_ONCE);
  const restored: Restored[] = [];
  const refused: { projectId: string; reason: string }[] = [];
  const restore = async (projectId: string): Promise<void> => {
    const say = (line: string): void => onProgress(`project ${projectId}: ${line}`);
    const options = { projectId, isConfirmed, patienceMs: null, onProgress: say };
    try {
      restored.push(await restoreLedgerOn(connections, env, options));
    } catch (error) {
      if (error instanceof LedgerRuns) return;
      if (!(error instanceof AdminError)) throw error;
      refused.push({ projectId, reason: error.message });
    }
  };
  await Promise.all(ids.map((id) => limit(() => restore(id))));
  if (isConfirmed) await restartDeliveries(connections);
  return { restored, refused };
}

/** Has the workflows of pending deliveries started, which Temporal's backup may lack. Those that run are left alone. */
export async function restartDeliveries({ db }: Pick<Connections, "db">): Promise<void> {
  const unstarted = { status: "pending", pendingAction: { $exists: false } } as const;
  await webhookCollections(db).deliveries.updateMany(unstarted, { $set: { pendingAction: "start" } });
}

export async function restoreLedgerOn(
  connections: Connections,
  env: NodeJS.ProcessEnv,
  options: RestoreOptions,
): Promise<Restored> {
  const { db, temporal } = connections;
  const { isConfirmed, onProgress, patienceMs, projectId } = options;
  // Checked first, since nothing begins without its audit entry.
  const masterKey = isConfirmed ? await requireMasterKey(env) : await findMasterKey(env);
  if (masterKey !== null) await verifyMasterKey(db, masterKey);
  const project = await collectionsOf(db).projects.findOne({ _id: projectId });
  if (project === null) throw new AdminError(`There is no project ${projectId}.`);
  const actors = new TemporalActors(new TemporalCalls(temporal, connections.addresses.taskQueue));
  const lost = await lostLedger(connections, actors, options);
  onProgress("reading the records");
  const proofs = masterKey === null ? null : new RecordProofs(masterKey);
  const { notes, recorded } = await readRecords(connections, project, proofs);
  const now = Date.now();
  const ledger = restoredLedger(recorded, now);
  const found = { ...summaryOf(ledger), lost, notes, notKnown: NOT_KNOWN };
  if (masterKey === null || !isConfirmed) return { ...found, isDone: false, differences: null };
  const { organizationId } = ledger;
  await recordCommand(db, masterKey, entryOf(project, found));
  await start(actors, ledger, now);
  if (patienceMs === null) return { ...found, isDone: true, differences: null };
  onProgress("the ledger runs; comparing everything");
  const comparison = { organizationId, patienceMs, onProgress, repair: false };
  const { differences } = await reconcileOn(connections, env, comparison);
  return { ...found, isDone: true, differences };
}

/** Returns the engine's status of the lost ledger, once its decisions are recorded. */
async function lostLedger(
  { db }: Connections,
  actors: TemporalActors,
  { isConfirmed, onProgress, projectId }: RestoreOptions,
): Promise<string> {
  const status = await actors.ledgerStatus(projectId);
  if (status?.name !== "RUNNING") {
    await untilQuiet(status?.endedAt?.getTime() ?? Infinity, onProgress);
    return status?.name.toLowerCase() ?? "unknown to the engine";
  }
  const recorded = await new MongoLedgerRevisions(db).read(projectId);
  const state = await stateOf(actors, projectId, onProgress);
  const stale = staleBackupOf(state, { ledger: 0, recorded, isRead: true });
  if (stale === "records") throw new AdminError(STALE_RECORDS);
  if (stale === null) throw new LedgerRuns(`The ledger of project ${projectId} runs. Nothing was done.`);
  if (isConfirmed) {
    await actors.endLedger(projectId, "it is from a backup, and behind its records");
    await untilQuiet(Date.now(), onProgress);
  }
  return `running from a backup, at revision ${String(state.revision)} of ${String(recorded)}`;
}

/** The ledger runs and needs no restoring. */
class LedgerRuns extends AdminError {}

const STALE_RECORDS =
  "The ledger runs, and its records are from a backup: they lack payments that the ledger has counted, and a ledger restored from them would not count these. Restore newer records, or keep these with accept-records. Nothing was done.";

async function stateOf(
  actors: TemporalActors,
  projectId: string,
  onProgress: (line: string) => void,
): Promise<LedgerStateView> {
  const untilMs = performance.now() + ANSWER_TIMEOUT_MS;
  for (let tries = 1; ; tries += 1) {
    try {
      return await actors.ledgerState(projectId);
    } catch (error) {
      if (!(error instanceof ActorUnavailable)) throw error;
      if (performance.now() > untilMs) {
        throw new AdminError(
          `The ledger of project ${projectId} runs but does not answer; does a worker run? Nothing was done.`,
        );
      }
      if (tries === 1) onProgress("waiting until the ledger answers");
      await sleep(ANSWER_INTERVAL_MS);
    }
  }
}

/** Waits until the decisions of a ledger that ended at `endedAt` are recorded. */
async function untilQuiet(endedAt: number, onProgress: (line: string) => void): Promise<void> {
  if (Date.now() - endedAt >= LONG_AGO_MS) return;
  onProgress(`waiting ${String(QUIET_MS / 1_000)} s until nothing is in flight`);
  await sleep(QUIET_MS);
}

async function start(actors: TemporalActors, ledger: Ledger, now: number): Promise<void> {
  try {
    await actors.resumeLedger(packLedger(ledger, now));
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    throw new AdminError(`The ledger of project ${ledger.projectId} was just started by somebody else.`);
  }
}

type Summary = Pick<
  Restored,
  "organizationId" | "projectId" | "accounts" | "droppedAccounts" | "caps" | "totals" | "open"
>;

function summaryOf({
  accounts,
  droppedAccounts,
  organizationId,
  project,
  projectId,
  teams,
}: Ledger): Summary {
  const open = { held: 0, sending: 0, following: 0, done: 0 };
  for (const account of accounts.values()) {
    for (const { payment } of account.open.values()) open[payment.phase] += 1;
  }
  const levels = [project, ...teams.values()];
  return {
    organizationId,
    projectId,
    accounts: accounts.size,
    droppedAccounts,
    caps: levels.filter(({ cap }) => cap.capCents !== null).length,
    totals: project.totals,
    open,
  };
}

const entryOf = (
  { _id: id, organizationId }: ProjectDocument,
  { accounts, lost, open, totals }: Pick<Restored, "accounts" | "lost" | "open" | "totals">,
) => ({
  organizationId,
  via: "restore-ledger",
  action: "restoreLedger",
  resource: { type: "project", id },
  before: { ledger: lost },
  after: { accounts, open, ...totals },
});

const NOT_KNOWN: readonly string[] = [
  "Payments that were decided and whose process died before it recorded them. Where a rail has such a payment, the comparison names it (card_ledger_differs, chain_differs). It counts under no limit, and its idempotency key pays again: stop its agent first.",
  "Decisions of people that were not recorded: their requests got no response. Payments that were approved so are on hold again.",
  "A budget or policy whose change was not answered: some of its agents may have it already.",
  "Payments that were withdrawn by an emergency stop of an agent that was resumed since: they go on. Those of archived agents are withdrawn unless their rail has them.",
  "Cached replies to management requests: one that the engine repeats is judged again.",
];
