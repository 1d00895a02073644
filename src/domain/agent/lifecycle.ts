import { type Archiver, isOfLineage, machineArchiveRefusal } from "./archive.ts";
import type { AgentReply } from "./commands.ts";
import { type Decided, none } from "./decided.ts";
import type { AgentEvent } from "./evolve.ts";
import { endByArchive, isOnHold } from "./held.ts";
import { hasLiveKey, quietAfterMs } from "./leave.ts";
import type { AgentState } from "./state.ts";

/** Pause, resume and archive. What is so already changes nothing. */

export function decideLifecycle(state: AgentState, lifecycle: "active" | "paused", now: number): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  const changed = state.lifecycle !== lifecycle;
  const quiet = lifecycle === "paused" ? quietAfterMs(state, now) : 0;
  const reply: AgentReply = {
    kind: "lifecycle",
    lifecycle,
    changed,
    ...(quiet > 0 ? { quietAfterMs: quiet } : {}),
  };
  if (!changed) return none(reply);
  const events: AgentEvent[] = [{ type: "lifecycle_changed", lifecycle }];
  // Its key was revoked before: that is the emergency stop, too.
  if (lifecycle === "paused" && !hasLiveKey(state)) events.push({ type: "payments_withdrawn" });
  return { events, reply };
}

/**
 * Archives the agent for good: its key is revoked, what is on hold is denied, nothing is accepted any more. What was sent
 * goes on to its end, and so does what was decided, unless the agent is paused: then that is released. For an organization's key only under all the conditions in archive.ts.
 */
export function decideArchive(state: AgentState, by: Archiver, now: number): Decided {
  if (state.lifecycle === "archived") return archivedBefore(state, by);
  const code = by.type === "user" ? null : machineArchiveRefusal(state, by, now);
  if (code !== null) return none({ kind: "archive_refused", code });
  const held = Object.values(state.open).filter(({ payment }) => isOnHold(payment));
  const ended: AgentEvent[] = held.map(({ payment }) => ({
    type: "payment_changed",
    payment: endByArchive(payment, now),
  }));
  const withdrawn: AgentEvent[] = state.lifecycle === "paused" ? [{ type: "payments_withdrawn" }] : [];
  const ids = held.map(({ payment }) => payment.request.transactionId);
  return {
    events: [...ended, ...withdrawn, { type: "lifecycle_changed", lifecycle: "archived" }],
    reply: { kind: "archive", changed: true, ...(ids.length > 0 ? { ended: ids } : {}) },
  };
}

function archivedBefore(state: AgentState, by: Archiver): Decided {
  const mayKnow = by.type === "user" || isOfLineage(state, by.lineageId);
  return none(
    mayKnow
      ? { kind: "archive", changed: false }
      : { kind: "archive_refused", code: "MACHINE_ARCHIVE_DENIED" },
  );
}
