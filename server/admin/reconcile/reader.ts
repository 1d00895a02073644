import { COUNTED_FIELDS, type CountedRecord, moneyIn } from "../../../src/store/payment-records.ts";
import type { KeyObject } from "node:crypto";
import type { Db } from "mongodb";
import { type Client, QueryRejectedError, WorkflowNotFoundError } from "@temporalio/client";
import pLimit from "p-limit";
import { queried } from "../../../src/actors/calls.ts";
import { withNetwork } from "../../../src/chain/networks.ts";
import { PocketKeys } from "../../../src/rails/pocket/pocket-keys.ts";
import type { CardConnections } from "../../../src/rails/card/connections.ts";
import type { AccessProofs } from "../../../src/secrets/access-proofs.ts";
import { approvalsRetainedSince } from "../../../src/store/retention.ts";
import { type AgentStateView, agentWorkflowId, STATE_QUERY } from "../../../src/messages/agent.ts";
import {
  type AccountSnapshot,
  SNAPSHOT_QUERY,
  type SnapshotPage,
  type SnapshotQueryInput,
  ledgerWorkflowId,
} from "../../../src/messages/ledger.ts";
import type { ApprovalStateView } from "../../../src/messages/approval.ts";
import { type SettlementStateView, waitingWorkflowId } from "../../../src/messages/settlement.ts";
import { hasTexts, type PaymentTexts, RAILS } from "../../../src/domain/ledger/payment.ts";
import { type Collections, collectionsOf } from "../../../src/store/collections.ts";
import type { Connections } from "../../../src/store/connections.ts";
import { ACTORS_AT_ONCE } from "./actors-at-once.ts";
import { type PaymentEntry, paymentEntry, type RailFinding } from "../../../src/rails/findings.ts";
import type { RailReconciliation } from "../../../src/rails/folder.ts";
import { RAIL_FOLDERS } from "../../../src/rails/rails.ts";
import type { AgentSources, LedgerSource, ProjectSources } from "./sources.ts";
import { type AccessRecord, COMPARED_KINDS } from "./access.ts";

/** Timeout of one call to an actor. An actor that no worker has cached is replayed from its history first. */
const ACTOR_TIMEOUT_MS = 20_000;
/** Maximum accounts in one response of a ledger. */
const ACCOUNTS_AT_ONCE = 250;
/** Maximum reads of a ledger. It is read again if an account was dropped during the read. */
const READS_MAX = 10;
/** Maximum ids in one query. */
const IDS_AT_ONCE = 1_000;

/** Subset of an organization that a second look reads. */
export interface Focus {
  readonly agentIds: ReadonlySet<string>;
  readonly projectIds: ReadonlySet<string>;
  readonly paymentIds: ReadonlySet<string>;
}

/** Sources to compare for an organization, or for a focus on it. */
export interface OrganizationSources {
  readonly agents: readonly AgentSources[];
  readonly projects: readonly ProjectSources[];
  readonly payments: readonly PaymentEntry[];
  /** Differences between each rail's books and the payments, or a text that says why the books could not be read. */
  readonly onRails: readonly (readonly [RailReconciliation, readonly RailFinding[] | string])[];
  /** All records that decide access, with their proofs, whatever the focus. */
  readonly access: readonly AccessRecord[];
}

/** Values that need the master key; null without it. */
export interface OpenedByKey {
  readonly pocketKey: KeyObject | null;
  readonly cardConnections: CardConnections | null;
  readonly accessProofs: AccessProofs | null;
}

/**
 * Reads ledgers, agents' actors, records and the rails' books, in that order: later stages of a payment's life are read
 * earlier.
 */
export class SourceReader {
  readonly #db: Db;
  readonly #collections: Collections;
  readonly #temporal: Client;
  readonly #chainRpcUrl: string | null;
  readonly #env: NodeJS.ProcessEnv;
  readonly #pocketKeys: PocketKeys | null;
  readonly #cardConnections: CardConnections | null;
  readonly #accessProofs: AccessProofs | null;

  /** Without the pockets' key, their addresses are derived from what they have signed. */
  constructor(
    { addresses, db, temporal }: Connections,
    env: NodeJS.ProcessEnv,
    { accessProofs, cardConnections, pocketKey }: OpenedByKey,
  ) {
    this.#accessProofs = accessProofs;
    this.#cardConnections = cardConnections;
    this.#db = db;
    this.#collections = collectionsOf(db);
    this.#temporal = temporal;
    this.#env = withNetwork(env);
    this.#pocketKeys = pocketKey === null ? null : new PocketKeys(pocketKey);
    this.#chainRpcUrl = addresses.evmRpcUrl;
  }

  async organizations(): Promise<readonly string[]> {
    const found = await this.#collections.organizations.find({}, { projection: { _id: 1 } }).toArray();
    return found.map(({ _id }) => _id).toSorted();
  }

  async sources(
    organizationId: string,
    focus: Focus | null,
    onAgent: () => void,
  ): Promise<OrganizationSources> {
    const projectIdsByAgent = await this.#projectIdsByAgent(organizationId, focus);
    const ids = await this.#projectIds(organizationId, focus, projectIdsByAgent);
    const ledgers = new Map(
      await pLimit(ACTORS_AT_ONCE).map(
        ids,
        async (projectId) => [projectId, await this.#ledger(projectId)] as const,
      ),
    );
    const agents = await pLimit(ACTORS_AT_ONCE).map([...projectIdsByAgent], async ([agentId, projectId]) => {
      const sources = await this.#agent(agentId, ledgers.get(projectId) ?? "lost");
      onAgent();
      return sources;
    });
    const projects = await pLimit(ACTORS_AT_ONCE).map([...ledgers], ([projectId, ledger]) =>
      this.#project(organizationId, projectId, ledger),
    );
    const payments = await this.#payments(agents, focus);
    const [onRails, access] = await Promise.all([
      this.#onRails(organizationId, payments, focus),
      this.#access(organizationId),
    ]);
    return { agents, projects, payments, onRails, access };
  }

  async #access(organizationId: string): Promise<AccessRecord[]> {
    const found = COMPARED_KINDS.map(async ({ collection, kind, path }) => {
      // Rules and restrictions may never have been set. For any other record a missing proof is a difference.
      const [part = ""] = path.split(".");
      const some = path === "proof" ? {} : { [part]: { $exists: true } };
      const records = this.#db.collection<{ readonly _id: string }>(collection);
      const own = await records.find({ organizationId, ...some }).toArray();
      return own.map((record): AccessRecord => ({ kind, record }));
    });
    return (await Promise.all(found)).flat();
  }

  /** Returns agents with their projects. An agent whose record is lost is found through its payments. */
  async #projectIdsByAgent(
    organizationId: string,
    focus: Focus | null,
  ): Promise<ReadonlyMap<string, string>> {
    const { agents, transactions } = this.#collections;
    const some = focus === null ? null : { $in: [...focus.agentIds] };
    const [recorded, paying] = await Promise.all([
      agents
        .find(
          { organizationId, ...(some === null ? {} : { _id: some }) },
          { projection: { _id: 1, projectId: 1 } },
        )
        .toArray(),
      transactions
        .aggregate<{ _id: string; projectId: string }>([
          { $match: { organizationId, ...(some === null ? {} : { agentId: some }) } },
          { $group: { _id: "$agentId", projectId: { $first: "$projectId" } } },
        ])
        .toArray(),
    ]);
    return new Map([...paying, ...recorded].map(({ _id, projectId }) => [_id, projectId]));
  }

  async #projectIds(
    organizationId: string,
    focus: Focus | null,
    projectIdsByAgent: ReadonlyMap<string, string>,
  ): Promise<readonly string[]> {
    const named = [...projectIdsByAgent.values(), ...(focus?.projectIds ?? [])];
    if (focus !== null) return [...new Set(named)];
    const { projects } = this.#collections;
    const recorded = await projects.find({ organizationId }, { projection: { _id: 1 } }).toArray();
    return [...new Set([...recorded.map(({ _id }) => _id), ...named])];
  }

  countAgents(organizationId: string): Promise<number> {
    return this.#collections.agents.countDocuments({ organizationId });
  }

  async #agent(agentId: string, ledger: LedgerSource | "lost" | "silent"): Promise<AgentSources> {
    const actor = await this.#state(agentId);
    const account = typeof ledger === "string" ? "unknown" : (ledger.accounts.get(agentId) ?? "none");
    const { agents, approvals, transactions } = this.#collections;
    const [record, own] = await Promise.all([
      agents.findOne({ _id: agentId }),
      transactions.find({ agentId }).sort({ sequence: 1 }).toArray(),
    ]);
    const asked = own.map(({ approvalId }) => approvalId).filter((id) => id !== null);
    const found = [];
    for (let at = 0; at < asked.length; at += IDS_AT_ONCE)
      found.push(...(await approvals.find({ _id: { $in: asked.slice(at, at + IDS_AT_ONCE) } }).toArray()));
    const retainedSince = await approvalsRetainedSince(this.#db, new Date());
    return {
      agentId,
      actor,
      account,
      texts: typeof account === "string" ? new Map() : await this.#texts(account),
      record,
      transactions: own,
      approvals: found,
      approvalsRetainedSince: retainedSince,
    };
  }

  async #state(agentId: string): Promise<AgentStateView | "lost" | "silent"> {
    return this.#ask<AgentStateView>(agentWorkflowId(agentId), STATE_QUERY);
  }

  async #texts({ open }: AccountSnapshot): Promise<ReadonlyMap<string, PaymentTexts>> {
    const dropped = open.map(({ payment }) => payment).filter((payment) => !hasTexts(payment));
    const asked = await pLimit(ACTORS_AT_ONCE).map(dropped, async (payment) => {
      const id = waitingWorkflowId(payment);
      const state = await this.#ask<Pick<ApprovalStateView | SettlementStateView, "texts">>(id, STATE_QUERY);
      return typeof state === "string" ? [] : [[payment.request.transactionId, state.texts] as const];
    });
    return new Map(asked.flat());
  }

  async #ask<T>(workflowId: string, query: string, ...args: unknown[]): Promise<T | "lost" | "silent"> {
    const handle = this.#temporal.workflow.getHandle(workflowId);
    try {
      return await this.#temporal.withDeadline(Date.now() + ACTOR_TIMEOUT_MS, () =>
        queried<T>(handle, query, ...args),
      );
    } catch (error) {
      const isLost = error instanceof WorkflowNotFoundError || error instanceof QueryRejectedError;
      return isLost ? "lost" : "silent";
    }
  }

  /**
   * Reads all pages of a ledger. Starts again if an account was dropped in between, so that levels and accounts are
   * consistent.
   */
  async #ledger(projectId: string): Promise<LedgerSource | "lost" | "silent"> {
    for (let read = 1; ; read += 1) {
      const accounts = new Map<string, AccountSnapshot>();
      const dropped = new Set<number>();
      let page: SnapshotPage | null = null;
      let after: string | null = null;
      do {
        const query: SnapshotQueryInput = { after, limit: ACCOUNTS_AT_ONCE };
        const asked: SnapshotPage | "lost" | "silent" = await this.#ask<SnapshotPage>(
          ledgerWorkflowId(projectId),
          SNAPSHOT_QUERY,
          query,
        );
        if (typeof asked === "string") return asked;
        page = asked;
        dropped.add(page.droppedAccounts);
        for (const account of page.accounts) accounts.set(account.agentId, account);
        after = page.accounts.at(-1)?.agentId ?? null;
      } while (page.hasMore);
      if (dropped.size === 1 || read === READS_MAX) return { levels: page.levels, accounts };
    }
  }

  async #project(
    organizationId: string,
    projectId: string,
    ledger: LedgerSource | "lost" | "silent",
  ): Promise<ProjectSources> {
    const { projects, teams, transactions } = this.#collections;
    const accounts = typeof ledger === "string" ? new Map<string, AccountSnapshot>() : ledger.accounts;
    const [project, ofProject, spent] = await Promise.all([
      projects.findOne({ _id: projectId }),
      teams.find({ projectId }).toArray(),
      transactions
        .find<CountedRecord>(
          { organizationId, projectId, status: "approved", agentId: { $nin: [...accounts.keys()] } },
          { projection: COUNTED_FIELDS },
        )
        .toArray(),
    ]);
    const droppedMc = new Map<string, number>();
    for (const record of spent)
      droppedMc.set(record.teamId, (droppedMc.get(record.teamId) ?? 0) + moneyIn(record).spentMc);
    return { organizationId, projectId, ledger, droppedMc, project, teams: ofProject };
  }

  async #payments(agents: readonly AgentSources[], focus: Focus | null): Promise<PaymentEntry[]> {
    if (focus === null) return agents.flatMap(({ transactions }) => transactions.map(paymentEntry));
    const found = await this.#collections.transactions
      .find({ _id: { $in: [...focus.paymentIds] } })
      .toArray();
    return found.map(paymentEntry);
  }

  #onRails(
    organizationId: string,
    payments: readonly PaymentEntry[],
    focus: Focus | null,
  ): Promise<OrganizationSources["onRails"]> {
    const sources = {
      db: this.#db,
      collections: this.#collections,
      env: this.#env,
      pocketKeys: this.#pocketKeys,
      accessProofs: this.#accessProofs,
      cardConnections: this.#cardConnections,
      chainRpcUrl: this.#chainRpcUrl,
      organizationId,
      payments,
      paymentIds: focus === null ? null : focus.paymentIds,
    };
    const reconciliations = RAILS.flatMap((rail) => RAIL_FOLDERS[rail].reconciliations);
    return Promise.all(reconciliations.map(async (each) => [each, await each.findings(sources)] as const));
  }
}
