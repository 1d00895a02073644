import { isDeliverable } from "./access.ts";
import { isOfLineage } from "./archive.ts";
import { type Command, type Decided, none, one } from "./decided.ts";
import type { AgentEvent } from "./evolve.ts";
import type { AgentState } from "./state.ts";

/** An agent's keys as its actor decides about them: by their ids. */

/**
 * The first use of a key and the archive of its agent are decided here, one after the other, so exactly one of them
 * comes first. Using it again changes nothing.
 */
export function decideAuthenticate(state: AgentState, { keyId }: Command<"authenticate">): Decided {
  const { access, lifecycle } = state;
  if (lifecycle === "archived" || !isActiveKey(state, keyId))
    return none({ kind: "authenticated", accepted: false });
  const reply = { kind: "authenticated", accepted: true } as const;
  const isFirst = access === undefined || access.authenticatedAt === null;
  return isFirst ? one({ type: "authenticated", keyId }, reply) : none(reply);
}

export function decideMintKey(state: AgentState, command: Command<"mint_key">): Decided {
  const { keyId, recordedKeyId } = command;
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  const active = activeKeyOf(state, recordedKeyId);
  // Told twice: an update that the engine repeats after a roll-over is a new one to it.
  if (active === keyId) return none({ kind: "key", keyId });
  if (active !== null) return none({ kind: "key_exists" });
  return one({ type: "key_changed", keyId }, { kind: "key", keyId });
}

export function decideRevokeKey(state: AgentState, { recordedKeyId }: Command<"revoke_key">): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  const keyId = activeKeyOf(state, recordedKeyId);
  if (keyId === null) return none({ kind: "no_key" });
  const revoked: AgentEvent = { type: "key_changed", keyId: null };
  // Together they are the emergency stop: what the key has asked for, and was not sent, is not sent any more.
  const isStop = state.lifecycle === "paused";
  return {
    events: isStop ? [revoked, { type: "payments_withdrawn" }] : [revoked],
    reply: { kind: "key", keyId },
  };
}

/**
 * Stamps the proof that the key that came with the create can't be delivered any more: once, after the window, and for
 * the lineage that created the agent. The actor's time decides whether the window is over.
 */
export function decideProveNonDelivery(
  state: AgentState,
  { lineageId }: Command<"prove_non_delivery">,
  now: number,
): Decided {
  const bundled = state.access?.bundled ?? null;
  const windowOver = bundled === null || !isDeliverable(bundled.deliverableUntil, now);
  if (bundled === null || !windowOver || !isOfLineage(state, lineageId)) {
    return none({ kind: "non_delivery", windowOver, proven: false });
  }
  const reply = { kind: "non_delivery", windowOver, proven: true } as const;
  return bundled.provenAt === null ? one({ type: "non_delivery_proven" }, reply) : none(reply);
}

/** Whether this is the agent's key; an actor that does not know of keys believes who has looked it up. */
export const isActiveKey = ({ access }: AgentState, keyId: string): boolean =>
  access === undefined || access.activeKeyId === keyId;

const activeKeyOf = ({ access }: AgentState, recordedKeyId: string | null): string | null =>
  access === undefined ? recordedKeyId : access.activeKeyId;
