import { recordedBooks } from "../../../src/store/stored-books.ts";
import { type Client, QueryRejectedError, WorkflowNotFoundError } from "@temporalio/client";
import pLimit from "p-limit";
import {
  type AgentDocument,
  type ContainerDocument,
  type ProjectDocument,
  type RuledDocument,
  rulesRevisionOf,
  type TransactionDocument,
} from "../../../src/store/documents.ts";
import { MongoLedgerRevisions } from "../../../src/store/ledger-revisions.ts";
import { paymentIn } from "../../../src/store/payment-records.ts";
import {
  PaymentsOfRecords,
  type RecordedAccount,
  type RecordedLevel,
  type RecordedProject,
} from "../../../src/domain/ledger/restore.ts";
import { queried } from "../../../src/actors/calls.ts";
import { zoneAround } from "../../../src/actors/calendar-zone.ts";
import { type Calendar, UTC_CALENDAR } from "../../../src/domain/ledger/calendar.ts";
import { usedCents } from "../../../src/domain/money.ts";
import { NO_CAP } from "../../../src/domain/ledger/state.ts";
import { type AgentStateView, agentWorkflowId, STATE_QUERY } from "../../../src/messages/agent.ts";
import { type Collections, collectionsOf } from "../../../src/store/collections.ts";
import type { Connections } from "../../../src/store/connections.ts";
import { AdminError } from "../connecting.ts";
import { type AccessRecord, compareAccess } from "../reconcile/access.ts";
import { ACTORS_AT_ONCE } from "../reconcile/actors-at-once.ts";
import type { RecordProofs } from "../reconcile/proofs.ts";
import { plural } from "../reconcile/text.ts";

/** Timeout of one call to an actor. An actor that no worker has cached is replayed from its history first. */
const ACTOR_TIMEOUT_MS = 20_000;
/** Maximum ids in one query. */
const IDS_AT_ONCE = 1_000;

/**
 * A record written within this time before the newest one may not have been published. Such records are published
 * again, which is idempotent, up to the newest `UNCONFIRMED_MAX`.
 */
const UNCONFIRMED_MS = 60_000;
const UNCONFIRMED_MAX = 500;
/** Maximum names in a message. */
const NAMED_MAX = 10;

export interface RecordsRead {
  readonly recorded: RecordedProject;
  readonly notes: readonly string[];
}

/**
 * Reads a project's records. Throws `AdminError` if they lack facts that a ledger needs, or if something other than the
 * service has changed them; without `proofs`, as in a dry run without the master key, a note says that this was not
 * checked.
 */
export async function readRecords(
  { db, temporal }: Pick<Connections, "db" | "temporal">,
  project: ProjectDocument,
  proofs: RecordProofs | null,
): Promise<RecordsRead> {
  const collections = collectionsOf(db);
  const { _id: projectId, organizationId } = project;
  const [agents, teams] = await Promise.all([
    collections.agents.find({ projectId }).toArray(),
    collections.teams.find({ projectId }).toArray(),
  ]);
  const ruled = await collections.ruled.agent.find({ organizationId }).toArray();
  if (proofs !== null) refuseAltered(proofs, { agents, project, ruled, teams });
  const rulesVersions = new Map(ruled.map((level) => [level._id, rulesRevisionOf(level)]));
  const actors = await askActors(temporal, agents);
  const payments = await readPayments(collections, project, agents, proofs);
  const accounts: RecordedAccount[] = [];
  const others = new Map(payments.of);
  let droppedAccounts = 0;
  for (const agent of agents) {
    const own = payments.of.get(agent._id) ?? { teamId: agent.teamId, payments: new PaymentsOfRecords() };
    const rulesVersion = rulesVersions.get(agent._id) ?? 0;
    const account = accountOf(agent, rulesVersion, own.payments, actors.get(agent._id) ?? null);
    if (isDropped(agent, account)) {
      droppedAccounts += 1;
      continue;
    }
    accounts.push(account);
    others.delete(agent._id);
  }
  const notes = [...(proofs === null ? [UNCHECKED] : []), ...notesOn(agents, payments, actors)];
  return {
    recorded: {
      organizationId,
      projectId,
      revision: await new MongoLedgerRevisions(db).read(projectId),
      calendar: calendarOf(project),
      project: levelOf(project),
      teams: new Map(teams.map((team) => [team._id, levelOf(team)])),
      accounts,
      others: [...others.values()].map(({ payments: { all }, teamId }) => ({
        ...all,
        reservedMc: 0,
        teamId,
      })),
      droppedAccounts,
    },
    notes,
  };
}

const UNCHECKED =
  "MASTER_KEY is not set: whether something else than the service has changed the records was not checked.";

const levelOf = (container: ContainerDocument): RecordedLevel => ({
  cap: container.cap ?? NO_CAP,
  rulesVersion: rulesRevisionOf(container),
});

/** Computes the time zone's offsets anew, since those of the record may have expired. */
function calendarOf({ calendar = UTC_CALENDAR }: ProjectDocument): Calendar {
  return { ...calendar, ...zoneAround(calendar.timezone, new Date()) };
}

/** Whether an agent is finished and its record shows that. */
const isDropped = (
  { reservedCents, spentCents }: AgentDocument,
  { isArchived, payments: { open, ...sums } }: RecordedAccount,
): boolean =>
  isArchived &&
  open.length === 0 &&
  spentCents === usedCents(sums.spentMc) &&
  reservedCents === usedCents(sums.reservedMc);

/**
 * Returns an agent's account. Its name and key are the actor's, if the actor runs and is not behind the record (as in
 * an engine restored from a backup); otherwise the record's. An actor's key that its record lacks was revoked by a stop
 * that the actor has not learned of.
 */
function accountOf(
  agent: AgentDocument,
  rulesVersion: number,
  payments: PaymentsOfRecords,
  actor: AgentStateView | null,
): RecordedAccount {
  const { _id: agentId, accountRevision, accountStatus, key, name, policy, policyVersion, teamId } = agent;
  const newest = actor !== null && actor.revision >= agent.revision ? actor : null;
  const status = actor !== null && actor.statusRevision > accountRevision ? actor.status : accountStatus;
  const keyId = newest === null ? (key?.id ?? null) : newest.access.activeKeyId;
  const recorded = [key, ...(agent.candidateKeys ?? [])].flatMap((each) => each?.id ?? []);
  const isRevoked = keyId !== null && !recorded.includes(keyId);
  return {
    agentId,
    teamId,
    name: newest?.profile.name ?? name,
    keyId: isRevoked ? null : keyId,
    revokedKeyId: isRevoked ? keyId : null,
    status: status === "paused" ? "paused" : "active",
    isArchived: agent.archivedAt !== null || (actor !== null && actor.archivedAt !== null),
    agentRevision: actor?.revision ?? agent.revision,
    policy,
    policyVersion,
    rulesVersion,
    // A wallet is deployed with its first policy.
    isUnmirrored: agent.wallet !== null && policyVersion > 1,
    recordedRevision: accountRevision,
    knownRevision: Math.max(accountRevision, actor?.statusRevision ?? 0),
    updatedAt: agent.updatedAt.getTime(),
    payments: payments.all,
  };
}

/** Returns the state of the agents' actors, for agents that have one. */
async function askActors(
  temporal: Client,
  agents: readonly AgentDocument[],
): Promise<ReadonlyMap<string, AgentStateView>> {
  const withActor = agents.filter(({ archivedAt, walletDetached }) => archivedAt === null || !walletDetached);
  const answers = await pLimit(ACTORS_AT_ONCE).map(withActor, async ({ _id: agentId }) => {
    const handle = temporal.workflow.getHandle(agentWorkflowId(agentId));
    try {
      return await temporal.withDeadline(Date.now() + ACTOR_TIMEOUT_MS, () =>
        queried<AgentStateView>(handle, STATE_QUERY),
      );
    } catch (error) {
      if (error instanceof WorkflowNotFoundError || error instanceof QueryRejectedError) return null;
      throw new AdminError(
        `The actor of agent ${agentId} does not answer; does a worker run? Nothing was done.`,
      );
    }
  });
  return new Map(answers.flatMap((state) => (state === null ? [] : [[state.profile.agentId, state]])));
}

/** A payment's record that lacks the ledger's part. */
interface Unreadable {
  readonly _id: string;
  readonly ledgerState?: undefined;
}

interface OfAgent {
  readonly teamId: string;
  readonly payments: PaymentsOfRecords;
}

interface Payments {
  readonly of: ReadonlyMap<string, OfAgent>;
  /** Payments that are executed or published again. */
  readonly opened: readonly TransactionDocument[];
}

async function readPayments(
  collections: Collections,
  { _id: projectId, organizationId }: Pick<ProjectDocument, "_id" | "organizationId">,
  agents: readonly AgentDocument[],
  proofs: RecordProofs | null,
): Promise<Payments> {
  const of = new Map<string, OfAgent>();
  const openIds: string[] = [];
  const recent: { readonly id: string; readonly at: number }[] = [];
  const unreadable: string[] = [];
  const altered: string[] = [];
  // Of these agents or this project: a change of either takes no payment away.
  const filter = { organizationId, $or: [{ projectId }, { agentId: { $in: agents.map(({ _id }) => _id) } }] };
  for await (const record of collections.transactions.find<TransactionDocument | Unreadable>(filter)) {
    if (record.ledgerState === undefined) {
      unreadable.push(record._id);
      continue;
    }
    if (proofs !== null && !proofs.isPaymentGenuine(record)) altered.push(record._id);
    const { _id, agentId, approvalId, createdAt, ledgerState, recordedAt, teamId } = record;
    const own = of.get(agentId) ?? { teamId, payments: new PaymentsOfRecords() };
    of.set(agentId, own);
    own.payments.add({
      sequence: record.sequence,
      status: record.status,
      revision: record.revision,
      request: { amountMc: ledgerState.amountMc },
      books: recordedBooks(ledgerState),
      createdAt: createdAt.getTime(),
      day: ledgerState.day,
      ...(ledgerState.windowAt === undefined ? {} : { windowAt: ledgerState.windowAt.getTime() }),
      wasHeld: approvalId !== null,
    });
    if (ledgerState.phase !== "done") openIds.push(_id);
    else if (recordedAt !== undefined) recent.push({ id: _id, at: recordedAt.getTime() });
  }
  refuse("The records of these payments do not say what their ledger needs", unreadable);
  refuse(ALTERED, altered);
  const opened = await wholePayments(collections, [...openIds, ...unconfirmed(recent)], of);
  return { of, opened };
}

function unconfirmed(recent: readonly { readonly id: string; readonly at: number }[]): string[] {
  const last = recent.reduce((latest, { at }) => Math.max(latest, at), 0);
  return recent
    .filter(({ at }) => at >= last - UNCONFIRMED_MS)
    .toSorted((one, other) => other.at - one.at)
    .slice(0, UNCONFIRMED_MAX)
    .map(({ id }) => id);
}

/** Returns the unfinished payments with their approvals, and those of the finished ones whose approvals are still kept. */
async function wholePayments(
  { approvals, transactions }: Collections,
  ids: readonly string[],
  of: ReadonlyMap<string, OfAgent>,
): Promise<TransactionDocument[]> {
  const whole: TransactionDocument[] = [];
  const unapproved: string[] = [];
  for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
    const records = await transactions.find({ _id: { $in: ids.slice(at, at + IDS_AT_ONCE) } }).toArray();
    const approvalIds = records.flatMap(({ approvalId }) => approvalId ?? []);
    const found = await approvals.find({ _id: { $in: approvalIds } }).toArray();
    const approvalOf = new Map(found.map((approval) => [approval._id, approval]));
    for (const record of records) {
      const approval = record.approvalId === null ? null : (approvalOf.get(record.approvalId) ?? null);
      if (approval === null && record.approvalId !== null) {
        if (record.ledgerState?.phase !== "done") unapproved.push(record._id);
        continue;
      }
      of.get(record.agentId)?.payments.open(paymentIn(record, approval));
      whole.push(record);
    }
  }
  refuse("The approvals of these payments have no records", unapproved);
  return whole;
}

const ALTERED = "Something else than the service has changed these records";

interface Restorable {
  readonly agents: readonly AgentDocument[];
  readonly project: ProjectDocument;
  readonly ruled: readonly RuledDocument[];
  readonly teams: readonly ContainerDocument[];
}

/**
 * Throws if the proof of an agent, its policy or status, a container, its cap or calendar, or of rules and restrictions
 * is invalid.
 */
function refuseAltered(proofs: RecordProofs, { agents, project, ruled, teams }: Restorable): void {
  const { access } = proofs;
  const ruledIds = new Set(agents.map(({ _id }) => _id));
  const restrictions = ruled.filter(({ _id, restrictions: set }) => set !== undefined && ruledIds.has(_id));
  const records: AccessRecord[] = [
    ...levelsIn("project", project),
    ...teams.flatMap((team) => levelsIn("team", team)),
    ...restrictions.map((record) => ({ kind: "agentRestrictions", record }) as const),
  ];
  const altered = [
    ...compareAccess(records, access).map(({ id }) => id),
    ...agents.flatMap((agent) => proofs.compareAgent(agent).map(({ id }) => id)),
    ...agents.flatMap((agent) => (access.isGenuine("agentAccount", agent) ? [] : [agent._id])),
    ...teams.flatMap((team) => (access.isGenuine("teamCap", team) ? [] : [team._id])),
    ...(access.isGenuine("projectCap", project) ? [] : [project._id]),
    ...(access.isGenuine("projectCalendar", project) ? [] : [project._id]),
  ];
  refuse(ALTERED, [...new Set(altered)]);
}

const levelsIn = (kind: "project" | "team", record: ContainerDocument): AccessRecord[] => [
  { kind, record },
  ...(record.approvalRules === undefined ? [] : [{ kind: `${kind}Rules`, record } as const]),
  ...(record.restrictions === undefined ? [] : [{ kind: `${kind}Restrictions`, record } as const]),
];

/** Throws if open payments are missing: a ledger without them would let the same budget be spent again. */
function refuse(what: string, ids: readonly string[]): void {
  if (ids.length === 0) return;
  const named = ids.slice(0, NAMED_MAX).join(", ");
  const more = ids.length > NAMED_MAX ? ` and ${String(ids.length - NAMED_MAX)} more` : "";
  throw new AdminError(`${what}: ${named}${more}. Restore them from a backup. Nothing was done.`);
}

function notesOn(
  agents: readonly AgentDocument[],
  { of, opened }: Payments,
  actors: ReadonlyMap<string, AgentStateView>,
): string[] {
  const known = new Set(agents.map(({ _id }) => _id));
  const orphans = opened.filter(({ agentId }) => !known.has(agentId)).map(({ _id }) => _id);
  const behind = agents.filter(({ _id, revision }) => (actors.get(_id)?.revision ?? revision) < revision);
  const actorless = agents.filter(({ _id, archivedAt }) => archivedAt === null && !actors.has(_id));
  const lacking = [...of].filter(([, { payments }]) => payments.missing > 0);
  return [
    ...lacking.map(
      ([id, { payments }]) =>
        `Agent ${id} lacks the records of ${plural(payments.missing, "payment")}, which will not count.`,
    ),
    ...orphans.map(
      (id) => `${id} is open, and its agent has no record: nothing will execute it. Check its rail.`,
    ),
    ...behind.map(
      ({ _id }) => `Agent ${_id} has an actor that is behind its record, from a backup: mint a new key.`,
    ),
    ...actorless.map(
      ({ _id }) => `Agent ${_id} has no actor: it pays by the key that its record has, and can be paused.`,
    ),
  ];
}
