import { recordedAmounts } from "../../../src/domain/ledger/recorded-amounts.ts";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { type Db, MongoClient, type Timestamp } from "mongodb";
import pLimit from "p-limit";
import { readTemporal } from "../../../server/temporal-settings.ts";
import { PocketKeys } from "../../../src/rails/pocket/pocket-keys.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import type { AgentDocument, ApprovalDocument, TransactionDocument } from "../../../src/store/documents.ts";
import { webhookCollections } from "../../../src/store/webhook-documents.ts";
import { scriptOf } from "../../../src/rails/card/merchants.ts";
import type { CardLedgerDocument } from "../../../src/rails/card/network-books.ts";
import { type ProjectDocument, type TeamDocument } from "../../../src/store/documents.ts";
import { type Cap, NO_CAP, NO_TOTALS } from "../../../src/domain/ledger/state.ts";
import { queried } from "../../../src/actors/calls.ts";
import { type AgentStateView, agentWorkflowId, STATE_QUERY } from "../../../src/messages/agent.ts";
import {
  type AccountSnapshot,
  SNAPSHOT_QUERY,
  type SnapshotPage,
  type SnapshotQueryInput,
  CAPS_QUERY,
  type CapsView,
  ledgerWorkflowId,
} from "../../../src/messages/ledger.ts";
import { DEFAULT_TASK_QUEUE } from "../../../src/messages/common.ts";
import { watchWorkflowId } from "../../../src/messages/watch.ts";
import { paymentEntry } from "../../../src/rails/findings.ts";
import { ACTORS_AT_ONCE } from "../../../server/admin/reconcile/actors-at-once.ts";
import type { Letterbox, Letters } from "../letterbox.ts";
import { CHAOS_PAYLOADS } from "../deployment.ts";
import type { Site } from "../site.ts";
import type { Stopped } from "../changes.ts";
import type { PayingAgent } from "../tenant.ts";
import type { Ticket } from "../tickets.ts";
import { WaitTimeout, untilNothingIsMissing } from "../until.ts";
import { type Books, type LevelEntry, type DeliveredToEndpoint, usedNonces } from "./books.ts";
import { auditLogOf } from "../../../src/store/audit-documents.ts";
import type { RaiseRequestDocument } from "../../../src/store/raise-documents.ts";
import {
  accountEntry,
  approvalEntry,
  actorEntry,
  decisionEntry,
  recordEntry,
  withoutOld,
} from "./entries.ts";
import type { ApprovalEntry } from "./delivered.ts";
import { ChainReader, type ChainScope } from "./chain-reader.ts";
import { sentSince, timeOf } from "./sent.ts";

const CALL_MS = 10_000;
/** An actor that has nothing left to do ends at once; a task of its may have to wait for a worker. */
const ENDED_MS = 15_000;
/** Accounts that are read at once. */
const PAGE = 200;

interface OwnLetters extends Letters {
  readonly organizationId: string;
}

/** The organizations whose books are read. */
export interface Scope extends ChainScope {
  readonly organizationIds: readonly string[];
  readonly agents: readonly PayingAgent[];
  readonly tickets: readonly Ticket[];
  readonly projectIds: readonly string[];
  readonly caps: Books["caps"];
  readonly stopped: readonly Stopped[];
  readonly restricted: Books["restricted"];
  readonly spendLimits: Books["spendLimits"];
  /** The organizations' endpoints. */
  readonly letters: readonly OwnLetters[];
  /** Approvals whose records a retention may have removed. */
  readonly removed: readonly ApprovalEntry[];
}

type Where = Pick<Site, "addresses" | "env" | "letterbox">;

/** Archived, with nothing to wait for. */
const isEnding = ({ access, archivedAt }: AgentStateView): boolean =>
  archivedAt !== null && access.bundled.erased;

/** Reads MongoDB, the chain, Temporal and what receivers got, and nothing by way of the service. */
export class Reader {
  readonly #mongo: MongoClient;
  readonly #db: Db;
  readonly #connection: Connection;
  readonly #temporal: Client;
  readonly #chain: ChainReader;
  readonly #letterbox: Letterbox;
  readonly #began: Timestamp;

  private constructor(
    mongo: MongoClient,
    connection: Connection,
    began: Timestamp,
    { addresses: { rpcUrl, temporalNamespace }, env, letterbox }: Where,
  ) {
    this.#letterbox = letterbox;
    this.#began = began;
    const masterKey = MasterKey.parse(env["MASTER_KEY"] ?? "", "MASTER_KEY");
    const pocketKeys = new PocketKeys(masterKey.deriveFirst("pocket-keys"));
    this.#mongo = mongo;
    this.#db = mongo.db();
    this.#connection = connection;
    this.#temporal = new Client({ connection, namespace: temporalNamespace, ...CHAOS_PAYLOADS.client });
    this.#chain = new ChainReader(this.#db, rpcUrl, pocketKeys);
  }

  static async open(where: Where): Promise<Reader> {
    const { addresses, env } = where;
    const bounds = { serverSelectionTimeoutMS: CALL_MS, socketTimeoutMS: CALL_MS };
    const mongo = await new MongoClient(addresses.mongodbUri, bounds).connect();
    const { options } = readTemporal(env).readSecurity();
    const connection = await Connection.connect({ address: addresses.temporalAddress, ...options });
    return new Reader(mongo, connection, await timeOf(mongo.db()), where);
  }

  async close(): Promise<void> {
    await this.#connection.close();
    await this.#mongo.close();
  }

  async books({
    agents,
    caps,
    foreign,
    letters,
    organizationIds,
    projectIds,
    receiptsMax,
    removed,
    restricted,
    shop,
    spendLimits,
    stopped,
    tickets,
  }: Scope): Promise<Books> {
    const of = { organizationId: { $in: [...organizationIds] } };
    const accounts = (
      await pLimit(ACTORS_AT_ONCE).map(projectIds, (projectId) => this.#accounts(projectId))
    ).flat();
    const actors = await this.#settledActors(agents);
    const levels = (
      await pLimit(ACTORS_AT_ONCE).map(projectIds, (projectId) => this.#levels(projectId))
    ).flat();
    const [transactions, approvals, cardLedger, records, decided, raises, chain, sent] = await Promise.all([
      this.#db.collection<TransactionDocument>("transactions").find(of).toArray(),
      this.#db.collection<ApprovalDocument>("approvals").find(of).toArray(),
      this.#db.collection<CardLedgerDocument>("sandbox_card_ledger").find(of).toArray(),
      this.#db.collection<AgentDocument>("agents").find(of).toArray(),
      auditLogOf(this.#db)
        .find({ ...of, action: "decidePayment" })
        .toArray(),
      this.#db.collection<RaiseRequestDocument>("raise_requests").find(of).toArray(),
      this.#chain.books(agents, { receiptsMax, foreign, shop }),
      sentSince(this.#db, this.#began),
    ]);
    return {
      agents,
      tickets,
      chain,
      caps,
      stopped,
      restricted,
      spendLimits,
      decisions: decided.map(decisionEntry),
      raises: raises.map(({ _id: id, ...raise }) => ({ id, ...raise })),
      accounts: accounts.map(accountEntry),
      actors: actors.map(actorEntry),
      levels,
      transactions: transactions.map((transaction) => ({
        ...transaction,
        ...paymentEntry(transaction),
        requestedCents: recordedAmounts(transaction).requestedCents,
        approvedAt: transaction.approvalId === null ? null : (transaction.ledgerState.windowAt ?? null),
      })),
      approvals: withRemoved(approvals.map(approvalEntry), removed, agents),
      delivered: await pLimit(ACTORS_AT_ONCE).map(letters, (each) => this.#delivered(each, records)),
      cardLedger,
      sent,
      records: records.map(recordEntry),
    };
  }

  /** Returns the number of transactions of the service's key in the chain. */
  chainTransactions(): Promise<number> {
    return this.#chain.nonce();
  }

  /** Returns a line about unfinished work; null: there is none. */
  async unfinished({ agents, foreign, organizationIds, projectIds }: Scope): Promise<string | null> {
    const of = { organizationId: { $in: [...organizationIds] } };
    const pending = await this.#db.collection("transactions").countDocuments({ ...of, status: "pending" });
    if (pending > 0) return `${String(pending)} payments are pending`;
    const accounts = (
      await pLimit(ACTORS_AT_ONCE).map(projectIds, (projectId) => this.#accounts(projectId))
    ).flat();
    const open = accounts.flatMap((account) => account.open.map(({ payment }) => payment.request));
    if (open.length > 0)
      return `${String(open.length)} payments are open in ledgers (${open.map(({ transactionId }) => transactionId).join(", ")})`;
    const entries = await this.#db.collection<CardLedgerDocument>("sandbox_card_ledger").find(of).toArray();
    const entriesOf = (id: string): number => entries.filter((each) => each.transactionId === id).length;
    const unplayed = entries.filter(
      ({ merchant, transactionId }) => entriesOf(transactionId) <= scriptOf(merchant).effects.length,
    );
    if (unplayed.length > 0)
      return `the network has more to do with ${String(unplayed[0]?.transactionId)} and others`;
    const closed = accounts.filter(({ status }) => status === "closed");
    if (closed.length > 0) return `${String(closed.length)} closed accounts are still there`;
    const behind = await this.#db.collection<AgentDocument>("agents").countDocuments({
      $or: accounts.map(({ agentId, revision }) => ({ _id: agentId, accountRevision: { $lt: revision } })),
    });
    if (behind > 0) return `${String(behind)} agents' records are behind their accounts`;
    const levels = (
      await pLimit(ACTORS_AT_ONCE).map(projectIds, (projectId) => this.#levels(projectId))
    ).flat();
    const unrecorded = levels.filter(({ cap, recordedCap }) => recordedCap.version < cap.version);
    if (unrecorded.length > 0) return `${String(unrecorded.length)} budgets' records are behind their ledger`;
    const granting = await this.#db
      .collection<RaiseRequestDocument>("raise_requests")
      .countDocuments({ ...of, status: "pending", decision: { $ne: null } });
    if (granting > 0) return `${String(granting)} raises are granted and not recorded`;
    const actors = await this.#actors(agents);
    const statusOf = new Map(accounts.map(({ agentId, status }) => [agentId, status]));
    const untold = actors
      .map(actorEntry)
      .filter(({ agentId, state }) => state !== "archived" && state !== (statusOf.get(agentId) ?? state));
    if (untold.length > 0)
      return `${String(untold.length)} agents' actors are to be told of a change of status`;
    const ending = actors.filter(isEnding);
    if (ending.length > 0) return `${String(ending.length)} archived agents' actors have not ended`;
    const undispatched = await this.#db.collection("events").countDocuments({ ...of, isPending: true });
    if (undispatched > 0)
      return `${String(undispatched)} events have no deliveries yet; their watch: ${await this.#watch()}`;
    const { deliveries } = webhookCollections(this.#db);
    const undelivered = await deliveries.countDocuments({ ...of, status: "pending" });
    if (undelivered > 0) return `${String(undelivered)} deliveries are pending`;
    const recorded = await this.#chain.recorded();
    const nonce = await this.#chain.nonce();
    const used = usedNonces({ nonce, recorded, foreign }).length;
    if (nonce !== used) return `of ${String(used)} nonces that are used ${String(nonce)} are in the chain`;
    const query = `ExecutionStatus = "Running" AND WorkflowType IN ("settlement", "approval", "organization", "delivery")`;
    const { count } = await this.#temporal.workflow.count(query);
    return count > 0 ? `${String(count)} workflows still follow something` : null;
  }

  /** Returns a line about the activity that dispatches events, as Temporal has it. */
  async #watch(): Promise<string> {
    const { workflow } = this.#temporal;
    const { raw } = await workflow.getHandle(watchWorkflowId(DEFAULT_TASK_QUEUE, "events")).describe();
    const activities = raw.pendingActivities ?? [];
    return activities.length === 0
      ? "no activity is pending"
      : activities
          .map(({ attempt, lastFailure, lastWorkerIdentity }) =>
            [`attempt ${String(attempt)}`, lastWorkerIdentity, lastFailure?.message].join(", "),
          )
          .join("; ");
  }

  /** Returns the actors' states once windows have closed that were about to. */
  async #settledActors(agents: readonly PayingAgent[]): Promise<AgentStateView[]> {
    let actors: AgentStateView[] = [];
    const missing = async (): Promise<string | null> => {
      actors = await this.#actors(agents);
      return actors.some(isEnding) ? "an archived agent's actor runs on" : null;
    };
    await untilNothingIsMissing("archived agents' actors end", ENDED_MS, missing).catch((error: unknown) => {
      if (!(error instanceof WaitTimeout)) throw error;
    });
    return actors;
  }

  /** The states of agents' actors that run. */
  async #actors(agents: readonly PayingAgent[]): Promise<AgentStateView[]> {
    const states = await pLimit(ACTORS_AT_ONCE).map(agents, async ({ id }) => {
      const handle = this.#temporal.workflow.getHandle(agentWorkflowId(id));
      const { status } = await handle.describe();
      return status.name === "RUNNING" ? queried<AgentStateView>(handle, STATE_QUERY) : null;
    });
    return states.flatMap((state) => state ?? []);
  }

  async #accounts(projectId: string): Promise<AccountSnapshot[]> {
    const accounts: AccountSnapshot[] = [];
    for (;;) {
      const input: SnapshotQueryInput = { after: accounts.at(-1)?.agentId ?? null, limit: PAGE };
      const page = await queried<SnapshotPage>(this.#ledger(projectId), SNAPSHOT_QUERY, input);
      accounts.push(...page.accounts);
      if (!page.hasMore) return accounts;
    }
  }

  async #levels(projectId: string): Promise<LevelEntry[]> {
    const view = await queried<CapsView>(this.#ledger(projectId), CAPS_QUERY, { now: Date.now() });
    const entryOf = (
      teamId: string | null,
      { cap, totals }: Pick<LevelEntry, "cap" | "totals"> = { cap: NO_CAP, totals: NO_TOTALS },
      recordedCap: Cap = NO_CAP,
    ): LevelEntry => ({
      projectId,
      teamId,
      totals,
      cap: withoutOld(cap),
      recordedCap: withoutOld(recordedCap),
    });
    const teams = await this.#db.collection<TeamDocument>("teams").find({ projectId }).toArray();
    const project = await this.#db.collection<ProjectDocument>("projects").findOne({ _id: projectId });
    return [
      entryOf(null, view.project, project?.cap),
      ...teams.map(({ _id, cap }) => entryOf(_id, view.teams[_id], cap)),
    ];
  }

  #ledger(projectId: string): WorkflowHandle {
    return this.#temporal.workflow.getHandle(ledgerWorkflowId(projectId));
  }

  async #delivered(letters: OwnLetters, records: readonly AgentDocument[]): Promise<DeliveredToEndpoint> {
    const { endpointId, organizationId } = letters;
    const deliveries = await webhookCollections(this.#db)
      .deliveries.find({ endpointId }, { projection: { status: 1 } })
      .toArray();
    return {
      ...this.#letterbox.read(letters),
      agentIds: records.filter((agent) => agent.organizationId === organizationId).map(({ _id }) => _id),
      deliveries: deliveries.map(({ _id, status }) => ({ id: _id, status })),
    };
  }
}

/** The approvals that are there, and those of these agents that a retention has removed. */
function withRemoved(
  there: readonly ApprovalEntry[],
  removed: readonly ApprovalEntry[],
  agents: readonly PayingAgent[],
): readonly ApprovalEntry[] {
  const known = new Set(there.map(({ id }) => id));
  const own = new Set(agents.map(({ id }) => id));
  return [...there, ...removed.filter(({ agentId, id }) => own.has(agentId) && !known.has(id))];
}
