import type { AgentDocument } from "../../../src/store/documents.ts";
import { afterCharge } from "../../../src/domain/ledger/foreseen-charge.ts";
import { withoutEnded } from "../../../src/domain/ledger/increases.ts";
import { followedOf, summarize } from "../../../src/domain/agent/state.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot } from "../../../src/messages/ledger.ts";
import type { AgentSources } from "./sources.ts";
import { ADVICE, type Difference } from "./difference.ts";

/** Compares agents' records with their actors and accounts. */

/** A finding about an agent, without the fields common to all of its findings. */
export type Found = Pick<Difference, "kind" | "of" | "id" | "what" | "expected" | "found" | "advice"> &
  Partial<Pick<Difference, "repair" | "mayBeInFlight" | "steady">>;

/** Whether the agent's actor has ended, so that the record replaces it. */
const isEnded = ({ archivedAt, walletDetached }: AgentDocument): boolean =>
  archivedAt !== null && walletDetached;

/** Compares an agent's actor with its record and its account. */
export function compareLifecycle({ account, actor, agentId, record }: AgentSources): Found[] {
  const subject = { of: "agent", id: agentId, what: "the agent's actor", found: "none" } as const;
  if (actor === "silent") {
    const silent = { kind: "actor_silent", expected: "an answer", advice: ADVICE.silentActor } as const;
    return [{ ...subject, ...silent, mayBeInFlight: true }];
  }
  if (record === null) return [lostRecord(agentId)];
  if (actor === "lost") {
    if (isEnded(record)) return [];
    return [{ ...subject, kind: "actor_lost", expected: "running", advice: ADVICE.lostActor }];
  }
  return [
    ...compareLifecycleRecord(actor, record),
    ...(typeof account === "string" ? [] : compareFollowed(actor, account)),
  ];
}

const lostRecord = (agentId: string): Found => ({
  kind: "agent_record_lost",
  of: "agent",
  id: agentId,
  what: "the agent's record",
  expected: "one, since its actor runs or it has paid",
  found: "none",
  advice: ADVICE.lostAgent,
});

function compareLifecycleRecord(actor: AgentStateView, record: AgentDocument): Found[] {
  const summary = summarize(actor);
  const { archivedAt, authenticatedAt, keyId, name, revision, walletDetached } = summary;
  const firstUse = record.authenticatedAt?.getTime() ?? null;
  return compareAgentRecord({
    record,
    of: "actor",
    revision,
    recordedRevision: record.revision,
    confirmedRevision: actor.confirmedRevision,
    target: {
      name,
      archivedAt,
      // If the record lacks the first use, the next use asks the actor again.
      ...(firstUse === null ? {} : { authenticatedAt }),
      walletDetached,
      keyId,
      ...(archivedAt === null ? {} : { lifecycle: "archived" }),
    },
    shown: {
      name: record.name,
      archivedAt: record.archivedAt?.getTime() ?? null,
      authenticatedAt: firstUse,
      walletDetached: record.walletDetached,
      keyId: record.key?.id ?? null,
      ...(archivedAt === null ? {} : { lifecycle: record.lifecycle }),
    },
    repair: { kind: "agent_record", agentId: record._id, agent: summary, account: null },
  });
}

/** The part of an agent's record that the ledger decides. */
type AccountRecord = Pick<
  AgentDocument,
  | "_id"
  | "accountRevision"
  | "archivedAt"
  | "lifecycle"
  | "policy"
  | "policyVersion"
  | "reservedCents"
  | "spentCents"
>;

/** Compares the money in an agent's record with the ledger. */
export function compareAccountRecord(current: AccountSnapshot, record: AccountRecord): Found[] {
  // The record may show a charge that the ledger only foresees.
  const isAhead = record.accountRevision > current.revision;
  const account = isAhead ? { ...current, ...afterCharge(current) } : current;
  const { policy, policyVersion, reservedCents, revision, spentCents, status } = account;
  const now = Date.now();
  const isOpen = status !== "closed" && record.archivedAt === null;
  return compareAgentRecord({
    record,
    of: "account",
    revision,
    recordedRevision: record.accountRevision,
    confirmedRevision: account.confirmedRevision,
    target: {
      policy: flat(withoutEnded(policy, now)),
      policyVersion,
      spentCents,
      reservedCents,
      ...(isOpen ? { lifecycle: status } : {}),
    },
    shown: {
      policy: flat(withoutEnded(record.policy, now)),
      policyVersion: record.policyVersion,
      spentCents: record.spentCents,
      reservedCents: record.reservedCents,
      ...(isOpen ? { lifecycle: record.lifecycle } : {}),
    },
    repair: { kind: "agent_record", agentId: record._id, agent: null, account },
  });
}

interface ComparedRecord {
  readonly record: Pick<AgentDocument, "_id">;
  readonly of: "actor" | "account";
  readonly revision: number;
  readonly recordedRevision: number;
  readonly confirmedRevision: number;
  readonly target: Readonly<Record<string, unknown>>;
  readonly shown: Readonly<Record<string, unknown>>;
  readonly repair: Difference["repair"];
}

/**
 * Compares a record with its source. The record must be at least at the revision confirmed as written, and equal at the
 * same revision.
 */
function compareAgentRecord(compared: ComparedRecord): Found[] {
  const { confirmedRevision, of, record, recordedRevision, repair, revision, shown, target } = compared;
  const found = { kind: "agent_record_differs", of: "agent", id: record._id } as const;
  const revisions = {
    what: `the revision of the agent's ${of} in its record`,
    expected: String(revision),
    found: String(recordedRevision),
    steady: String(recordedRevision),
  };
  // A busy agent's record has another revision at the next look. A record that stays ahead has no known cause.
  if (recordedRevision > revision)
    return [{ ...found, ...revisions, advice: ADVICE.ahead, mayBeInFlight: true }];
  if (recordedRevision < revision) {
    const mayBeInFlight = recordedRevision >= confirmedRevision;
    return [{ ...found, ...revisions, advice: ADVICE.repair, repair, mayBeInFlight }];
  }
  return differing(target, shown).map(([field, expected, actual]) => {
    const what = `${field} in the agent's record`;
    return { ...found, what, expected, found: actual, advice: ADVICE.repair, repair };
  });
}

/** Compares the name, key and status in the ledger with those of the agent's actor. */
function compareFollowed(actor: AgentStateView, account: AccountSnapshot): Found[] {
  const { isArchived, keyId, name } = followedOf(actor);
  const target = { name, keyId: isArchived ? null : keyId, isClosed: isArchived };
  const { status } = account;
  const shown = { name: account.name, keyId: account.keyId, isClosed: status === "closed" };
  return differing(target, shown).map(([field, expected, found]) => ({
    kind: "account_differs",
    of: "agent",
    id: account.agentId,
    what: `${field} in the agent's account`,
    expected: `${expected}, as its actor says`,
    found,
    advice: ADVICE.account,
    // The actor changes first, and was read last.
    mayBeInFlight: true,
  }));
}

/** Returns fields as JSON sorted by name, independent of the writer's order. */
export const flat = (fields: object): string =>
  JSON.stringify(Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1)));

/** Returns the differing fields with the expected and the actual value. */
export function differing(
  expected: Readonly<Record<string, unknown>>,
  actual: Readonly<Record<string, unknown>>,
): [field: string, expected: string, actual: string][] {
  return Object.entries(expected)
    .filter(([field, value]) => actual[field] !== value)
    .map(([field, value]) => [field, String(value), String(actual[field])]);
}
