import type { AgentAccess } from "./access.ts";
import { isDeliverable } from "./access.ts";
import type { AgentState } from "./state.ts";

/** Who archives an agent: a person, or an organization's key with what is in the wallet. */
export type Archiver =
  | { readonly type: "user" }
  | {
      readonly type: "organization_key";
      readonly lineageId: string;
      readonly balance: "zero" | "not_zero" | "unreadable";
    };

export type MachineArchiver = Extract<Archiver, { type: "organization_key" }>;

export type ArchiveRefusalCode =
  "MACHINE_ARCHIVE_DENIED" | "KEY_STILL_DELIVERABLE" | "KEY_DELIVERY_UNPROVEN" | "BALANCE_UNVERIFIABLE";

/**
 * Why an organization's key may not archive the agent; null: it may. In the order that callers are promised, the first
 * that fails answers: what can never change comes before what a retry may mend, but for the balance, which is looked at
 * last. A person may always.
 */
export function machineArchiveRefusal(
  state: AgentState,
  by: MachineArchiver,
  now: number,
): ArchiveRefusalCode | null {
  const { access } = state;
  const bundled = access?.bundled ?? null;
  if (access === undefined || bundled === null || bundled.lineageId !== by.lineageId) {
    return "MACHINE_ARCHIVE_DENIED";
  }
  if (access.touchedByPerson || isActive(state, access)) return "MACHINE_ARCHIVE_DENIED";
  if (isDeliverable(bundled.deliverableUntil, now)) return "KEY_STILL_DELIVERABLE";
  if (bundled.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
  if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
  return by.balance === "zero" ? null : "MACHINE_ARCHIVE_DENIED";
}

const isActive = ({ sequence }: AgentState, { authenticatedAt }: AgentAccess): boolean =>
  authenticatedAt !== null || sequence > 0;

/** Whether the agent was created by this lineage. */
export const isOfLineage = ({ access }: AgentState, lineageId: string): boolean =>
  access?.bundled?.lineageId === lineageId;
