import { isDeliverable } from "./access.ts";
import type { AgentState } from "./state.ts";

/** Caller of an archive: a person, or an organization key with the wallet's balance. */
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
 * Returns why an organization key may not archive the agent; null if it may. The first failing check, in the documented
 * order, decides: permanent reasons come before those that a retry may fix, except for the balance, which is checked
 * last. A person always may. An agent pays only after the first use of its key, so an unused one has no activity.
 */
export function machineArchiveRefusal(
  { access }: Pick<AgentState, "access">,
  by: MachineArchiver,
  now: number,
): ArchiveRefusalCode | null {
  const { authenticatedAt, bundled, touchedByPerson } = access;
  if (bundled.lineageId !== by.lineageId) return "MACHINE_ARCHIVE_DENIED";
  if (touchedByPerson || authenticatedAt !== null) return "MACHINE_ARCHIVE_DENIED";
  if (isDeliverable(bundled.deliverableUntil, now)) return "KEY_STILL_DELIVERABLE";
  if (bundled.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
  if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
  return by.balance === "zero" ? null : "MACHINE_ARCHIVE_DENIED";
}

export const isOfLineage = ({ access }: Pick<AgentState, "access">, lineageId: string): boolean =>
  access.bundled.lineageId === lineageId;
