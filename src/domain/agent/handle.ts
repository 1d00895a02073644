import { lifecycleEventId } from "../events.ts";
import { type Archiver, isOfLineage, machineArchiveRefusal } from "./archive.ts";
import { changeForLedger, changeForRecord } from "./changes.ts";
import type { AgentCommand, AgentCommandOf, AgentReply } from "./commands.ts";
import { authenticate, mintKey, proveNonDelivery, revokeKey } from "./keys.ts";
import type { AgentState } from "./state.ts";

/**
 * Decides one command about an agent's lifecycle and applies it. `now` is the actor's time in epoch milliseconds.
 * Refusals are replies and change nothing.
 */
export function handle(state: AgentState, command: AgentCommand, now: number): AgentReply {
  switch (command.kind) {
    case "rename":
      return rename(state, command, now);
    case "authenticate":
      return authenticate(state, command, now);
    case "mint_key":
      return mintKey(state, command, now);
    case "revoke_key":
      return revokeKey(state, now, command.keyId);
    case "prove_non_delivery":
      return proveNonDelivery(state, command, now);
    case "archive":
      return archive(state, command.by, now);
    case "confirm_detached":
      return confirmDetached(state, now);
    case "confirm_record":
      return confirmRecord(state, command);
    case "confirm_followed":
      state.followedRevision = Math.max(state.followedRevision, Math.min(command.revision, state.revision));
      return CONFIRMED;
    case "follow_status":
      return followStatus(state, command, now);
  }
}

const CONFIRMED: AgentReply = { kind: "confirmed" };

function rename(state: AgentState, { name }: AgentCommandOf<"rename">, now: number): AgentReply {
  if (state.archivedAt !== null) return { kind: "archived" };
  if (state.profile.name === name) return { kind: "renamed" };
  state.profile = { ...state.profile, name };
  changeForLedger(state, now);
  return { kind: "renamed" };
}

/** Archives the agent for good and revokes its key. An organization key may only under the conditions in archive.ts. */
function archive(state: AgentState, by: Archiver, now: number): AgentReply {
  if (state.archivedAt !== null) return archivedBefore(state, by);
  const code = by.type === "user" ? null : machineArchiveRefusal(state, by, now);
  if (code !== null) return { kind: "archive_refused", code };
  state.archivedAt = now;
  state.access.activeKeyId = null;
  changeForLedger(state, now);
  const { revision } = state;
  const id = lifecycleEventId(state.profile.agentId, "agent", revision);
  state.outbox = [...state.outbox, { id, type: "agent.archived", at: now, revision }];
  return { kind: "archive", changed: true };
}

function archivedBefore(state: AgentState, by: Archiver): AgentReply {
  const mayKnow = by.type === "user" || isOfLineage(state, by.lineageId);
  if (mayKnow) return { kind: "archive", changed: false };
  return { kind: "archive_refused", code: "MACHINE_ARCHIVE_DENIED" };
}

function confirmDetached(state: AgentState, now: number): AgentReply {
  if (state.archivedAt === null || state.walletDetached) return CONFIRMED;
  state.walletDetached = true;
  changeForRecord(state, now);
  return CONFIRMED;
}

function confirmRecord(state: AgentState, { revision }: AgentCommandOf<"confirm_record">): AgentReply {
  state.confirmedRevision = Math.max(state.confirmedRevision, Math.min(revision, state.revision));
  state.outbox = state.outbox.filter((event) => event.revision > state.confirmedRevision);
  return CONFIRMED;
}

/** Follows the ledger's account status; the agent's record follows the ledger itself. */
function followStatus(
  state: AgentState,
  { revision, revokedKeyId, status }: AgentCommandOf<"follow_status">,
  now: number,
): AgentReply {
  // Only if no other key was minted since.
  if (revokedKeyId !== null && state.access.activeKeyId === revokedKeyId) revokeKey(state, now);
  if (revision <= state.statusRevision) return CONFIRMED;
  state.statusRevision = revision;
  state.status = status;
  return CONFIRMED;
}
