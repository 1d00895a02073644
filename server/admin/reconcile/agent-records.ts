import type { AgentDocument } from "../../../src/store/documents.ts";
import { followedOf, summarize } from "../../../src/domain/agent/state.ts";
import type { AgentStateView } from "../../../src/messages/agent.ts";
import type { AccountSnapshot } from "../../../src/messages/ledger.ts";
import type { AgentSources } from "./sources.ts";
import { ADVICE, type Difference } from "./difference.ts";

/** Agents' records, against their actors and accounts. */

/** A finding about an agent, without the fields that all findings of the agent share. */
export type Found = Pick<Difference, "kind" | "of" | "id" | "what" | "expected" | "found" | "advice"> &
  Partial<Pick<Difference, "repair" | "mayBeInFlight" | "steady">>;

/** Whether its actor has nothing left to do: it has ended, and the record answers for the agent. */
const isEnded = ({ archivedAt, walletDetached }: AgentDocument): boolean =>
  archivedAt !== null && walletDetached;

/** An agent's actor, with its record and its account. */
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

/** Compares the agent's lifecycle in its record with its actor. */
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
      // A record that does not show the first use has the next one ask the actor again.
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

/** Compares the money in the agent's record with the ledger. */
export function compareAccountRecord(account: AccountSnapshot, record: AgentDocument): Found[] {
  const { policy, policyVersion, reservedCents, revision, spentCents, status } = account;
  const isOpen = status !== "closed" && record.archivedAt === null;
  return compareAgentRecord({
    record,
    of: "account",
    revision,
    recordedRevision: record.accountRevision,
    confirmedRevision: account.confirmedRevision,
    target: {
      policy: flat(policy),
      policyVersion,
      spentCents,
      reservedCents,
      ...(isOpen ? { lifecycle: status } : {}),
    },
    shown: {
      policy: flat(record.policy),
      policyVersion: record.policyVersion,
      spentCents: record.spentCents,
      reservedCents: record.reservedCents,
      ...(isOpen ? { lifecycle: record.lifecycle } : {}),
    },
    repair: { kind: "agent_record", agentId: record._id, agent: null, account },
  });
}

interface ComparedRecord {
  readonly record: AgentDocument;
  readonly of: "actor" | "account";
  readonly revision: number;
  readonly recordedRevision: number;
  readonly confirmedRevision: number;
  readonly target: Readonly<Record<string, unknown>>;
  readonly shown: Readonly<Record<string, unknown>>;
  readonly repair: Difference["repair"];
}

/** The record is never below what is known to be written, and the same at the same revision. */
function compareAgentRecord(compared: ComparedRecord): Found[] {
  const { confirmedRevision, of, record, recordedRevision, repair, revision, shown, target } = compared;
  const found = { kind: "agent_record_differs", of: "agent", id: record._id } as const;
  const revisions = {
    what: `the revision of the agent's ${of} in its record`,
    expected: String(revision),
    found: String(recordedRevision),
    steady: String(recordedRevision),
  };
  // A busy agent's record is of another revision at the next look; one that stays ahead has no known cause.
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

/** The ledger follows the agent's actor in name, key and end. */
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

/** With its fields in one order, independent of the writer. */
export const flat = (fields: object): string =>
  JSON.stringify(Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1)));

/** The fields that are not as they should be, with both. */
export function differing(
  expected: Readonly<Record<string, unknown>>,
  actual: Readonly<Record<string, unknown>>,
): [field: string, expected: string, actual: string][] {
  return Object.entries(expected)
    .filter(([field, value]) => actual[field] !== value)
    .map(([field, value]) => [field, String(value), String(actual[field])]);
}
