import { type Archiver, isOfLineage, machineArchiveRefusal } from "./archive.ts";
import { type Decided, none, one } from "./decided.ts";
import type { AgentEvent } from "./evolve.ts";
import { endByArchive, isOnHold } from "./held.ts";
import type { AgentState } from "./state.ts";

/** Pause, resume and archive. What is so already changes nothing. */

export function decideLifecycle(state: AgentState, lifecycle: "active" | "paused"): Decided {
  if (state.lifecycle === "archived") return none({ kind: "archived" });
  if (state.lifecycle === lifecycle) return none({ kind: "lifecycle", lifecycle, changed: false });
  return one({ type: "lifecycle_changed", lifecycle }, { kind: "lifecycle", lifecycle, changed: true });
}

/**
 * Archives the agent for good: its key is revoked, what is on hold is denied, nothing is accepted any more. What was sent
 * goes on to its end. For an organization's key only under all the conditions in archive.ts.
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
  const ids = held.map(({ payment }) => payment.request.transactionId);
  return {
    events: [...ended, { type: "lifecycle_changed", lifecycle: "archived" }],
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
