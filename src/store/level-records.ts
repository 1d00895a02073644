import type { AnyBulkWriteOperation, Collection, Db, Document, Filter } from "mongodb";
import type { AgentSummary } from "../domain/agent/state.ts";
import type { Calendar } from "../domain/ledger/calendar.ts";
import type { RecordedCap } from "../domain/ledger/commands.ts";
import type { AccountSummary, Cap } from "../domain/ledger/state.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import {
  type AgentDocument,
  COLLECTIONS,
  type ContainerDocument,
  type ProjectDocument,
} from "./documents.ts";

/** Writes of what actors and ledgers decide about agents and containers, with its proofs. */

export type LevelProofs = Pick<AccessProofs, "make">;

/** Updates a project's calendar if the recorded one is older. Written together with the project's cap. */
export function calendarWrite(
  proofs: LevelProofs,
  _id: string,
  calendar: Calendar,
): AnyBulkWriteOperation<ProjectDocument> {
  const project = { _id, calendar };
  const filter = {
    _id,
    $or: [{ calendar: { $exists: false } }, { "calendar.version": { $lt: calendar.version } }],
  };
  const calendarProof = proofs.make("projectCalendar", project);
  return { updateOne: { filter, update: { $set: { calendar, calendarProof } } } };
}

export const capWrite = (
  proofs: LevelProofs,
  level: "project" | "team",
  _id: string,
  cap: Cap,
): AnyBulkWriteOperation<ContainerDocument> => ({
  updateOne: {
    filter: { _id, $or: [{ cap: { $exists: false } }, { "cap.version": { $lt: cap.version } }] },
    update: { $set: provenCap(proofs, level, _id, cap) },
  },
});

function provenCap(proofs: LevelProofs, level: "project" | "team", _id: string, cap: Cap) {
  const capped = { _id, cap };
  return { cap, capProof: proofs.make(`${level}Cap`, capped) };
}

/** Returns a new container's record with the proofs of its place, and that it has no cap and no calendar. */
export const provenContainer = <T extends { readonly _id: string }>(
  proofs: Pick<AccessProofs, "make" | "proven">,
  level: "project" | "team",
  record: T,
) => ({
  ...proofs.proven(level, record),
  capProof: proofs.make(`${level}Cap`, record),
  ...(level === "team" ? {} : { calendarProof: proofs.make("projectCalendar", record) }),
});

/**
 * Writes an agent's record as its actor and its ledger have it, also over one of the same revisions, never over a later
 * one, nor over one that lacks the actor's key. Returns whether both parts were written.
 */
export async function overwriteAgent(
  agents: Collection<AgentDocument>,
  proofs: LevelProofs,
  agent: AgentSummary | null,
  account: AccountSummary | null,
): Promise<boolean> {
  const written = await Promise.all([
    agent === null ||
      agents.updateOne({ _id: agent.agentId, revision: { $lte: agent.revision }, ...having(agent.keyId) }, [
        { $set: { ...agentFields(agent), ...literal(firstUseOf(agent)) } },
      ]),
    account === null ||
      agents.updateOne({ _id: account.agentId, accountRevision: { $lte: account.revision } }, [
        { $set: accountFields(proofs, account) },
      ]),
  ]);
  return written.every((each) => each === true || each.matchedCount > 0);
}

/** Likewise for the cap of a project or of one of its teams, by the cap's version. */
export async function overwriteCap(
  db: Db,
  proofs: LevelProofs,
  projectId: string,
  { cap, teamId }: RecordedCap,
): Promise<boolean> {
  const name = teamId === null ? COLLECTIONS.projects : COLLECTIONS.teams;
  const _id = teamId ?? projectId;
  const written = await db
    .collection<ContainerDocument>(name)
    .updateOne(
      { _id, $or: [{ cap: { $exists: false } }, { "cap.version": { $lte: cap.version } }] },
      { $set: provenCap(proofs, teamId === null ? "project" : "team", _id, cap) },
    );
  return written.matchedCount > 0;
}

const having = (keyId: string | null): Filter<AgentDocument> =>
  keyId === null ? {} : { $or: [{ "key.id": keyId }, { "candidateKeys.id": keyId }] };

const literal = (fields: object): Document =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { $literal: value }] as const));

/** Keeps a newer `updatedAt`: people change parts of the record that no actor knows. */
const notBefore = (updatedAt: number): Document => ({
  $max: ["$updatedAt", { $literal: new Date(updatedAt) }],
});

/**
 * Returns a pipeline's `$set`, since the key is chosen from the record's candidates; all other values are literals.
 * Only these fields are set, whatever else a summary contains: summaries come through Temporal, while an agent's
 * organization, place, wallet and key hashes are written once, by the server, at its creation.
 */
export function agentFields(summary: AgentSummary): Document {
  const { archivedAt, keyId, name, revision, updatedAt, walletDetached } = summary;
  const { authenticatedAt } = firstUseOf(summary);
  return {
    ...literal({ name, walletDetached, revision, archivedAt: dateOrNull(archivedAt) }),
    // Keeps a first use that is recorded: a first use raises no revision, so this summary may predate it.
    authenticatedAt: { $ifNull: ["$authenticatedAt", { $literal: authenticatedAt }] },
    ...(archivedAt === null ? {} : { lifecycle: { $literal: "archived" } }),
    ...keyFields(keyId),
    updatedAt: notBefore(updatedAt),
  };
}

/** Returns the `$set` of the fields that the ledger decides. An archived agent stays archived. */
export function accountFields(proofs: LevelProofs, summary: AccountSummary): Document {
  const { policy, policyVersion, reservedCents, revision, revokedKeyId, spentCents, status, updatedAt } =
    summary;
  const isOpen = status !== "closed";
  const decided = { policy, policyVersion, accountRevision: revision, accountStatus: status };
  const account = { _id: summary.agentId, ...decided };
  const accountProof = proofs.make("agentAccount", account);
  return {
    ...literal({ ...decided, accountProof, spentCents, reservedCents }),
    ...(isOpen
      ? { lifecycle: { $cond: [{ $eq: ["$lifecycle", "archived"] }, "archived", { $literal: status }] } }
      : {}),
    ...(revokedKeyId === null ? {} : withoutKey(revokedKeyId)),
    updatedAt: notBefore(updatedAt),
  };
}

/** Removes a key, also from the candidates, in case the record does not show yet that the actor chose it. */
const withoutKey = (keyId: string): Document => ({
  key: { $cond: [{ $eq: ["$key.id", { $literal: keyId }] }, null, "$key"] },
  candidateKeys: otherCandidates(keyId),
});

const candidates = { $ifNull: ["$candidateKeys", []] };

const candidatesWith = (cond: Document): Document => ({ $filter: { input: candidates, cond } });

const otherCandidates = (keyId: string | null): Document => candidatesWith({ $ne: ["$$this.id", keyId] });

/** Returns the key that the actor names: the record's own, or the candidate with its id. */
function keyFields(keyId: string | null): Document {
  if (keyId === null) return { key: { $literal: null }, candidateKeys: candidates };
  const chosen = { $ifNull: [{ $first: candidatesWith({ $eq: ["$$this.id", keyId] }) }, null] };
  return {
    key: { $cond: [{ $eq: ["$key.id", keyId] }, "$key", chosen] },
    candidateKeys: otherCandidates(keyId),
  };
}

const firstUseOf = ({ authenticatedAt }: AgentSummary) => ({ authenticatedAt: dateOrNull(authenticatedAt) });

const dateOrNull = (at: number | null): Date | null => (at === null ? null : new Date(at));
