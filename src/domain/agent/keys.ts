import { isDeliverable } from "./access.ts";
import { isOfLineage } from "./archive.ts";
import { changeForLedger } from "./changes.ts";
import type { AgentCommandOf, AgentReply } from "./commands.ts";
import type { AgentState } from "./state.ts";

/** An agent's keys, as decided by its actor: by their ids. */

/**
 * Decides on the first use of a key. The actor decides it and the agent's archive one after the other, so exactly one
 * comes first. Repeated uses change nothing. The caller writes the time into the record; until then each use asks
 * again.
 */
export function authenticate(
  state: AgentState,
  { keyId }: AgentCommandOf<"authenticate">,
  now: number,
): AgentReply {
  const { access, archivedAt } = state;
  if (archivedAt !== null || access.activeKeyId !== keyId)
    return { kind: "authenticated", firstUsedAt: null };
  access.authenticatedAt ??= now;
  return { kind: "authenticated", firstUsedAt: access.authenticatedAt };
}

export function mintKey(state: AgentState, { keyId }: AgentCommandOf<"mint_key">, now: number): AgentReply {
  const { access, archivedAt } = state;
  if (archivedAt !== null) return { kind: "archived" };
  // Repeated: Temporal may deliver an update again after a roll-over, as a new one.
  if (access.activeKeyId === keyId || access.revokedKeyId === keyId) return { kind: "key", keyId };
  if (access.activeKeyId !== null) return { kind: "key_exists" };
  setKey(state, keyId, now);
  return { kind: "key", keyId };
}

/** Revokes the active key; with `only`, just that one. */
export function revokeKey(state: AgentState, now: number, only?: string): AgentReply {
  const { access, archivedAt } = state;
  if (archivedAt !== null) return { kind: "archived" };
  const keyId = access.activeKeyId;
  // Repeated: Temporal may deliver an update again after a roll-over, as a new one.
  if (only !== undefined && access.revokedKeyId === only) return { kind: "key", keyId: only };
  if (keyId === null || (only !== undefined && keyId !== only)) return { kind: "no_key" };
  state.access.revokedKeyId = keyId;
  setKey(state, null, now);
  return { kind: "key", keyId };
}

function setKey(state: AgentState, keyId: string | null, now: number): void {
  state.access.activeKeyId = keyId;
  state.access.touchedByPerson = true;
  changeForLedger(state, now);
}

/**
 * Records the proof that the key that came with the create can't be delivered any more: once, after the window, and for
 * the lineage that created the agent. The actor's time decides whether the window is over.
 */
export function proveNonDelivery(
  state: AgentState,
  { lineageId }: AgentCommandOf<"prove_non_delivery">,
  now: number,
): AgentReply {
  const { bundled } = state.access;
  const windowOver = !isDeliverable(bundled.deliverableUntil, now);
  const proven = windowOver && isOfLineage(state, lineageId);
  if (proven) bundled.provenAt ??= now;
  return { kind: "non_delivery", windowOver, proven };
}
