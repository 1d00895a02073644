import type { LedgerCommand } from "../domain/ledger/commands.ts";
import type { Urgency } from "../lib/fair-queue.ts";
import { LEDGER_SUMMARIES_MAX } from "../messages/ledger.ts";

/** Properties by which a ledger's commands are queued and batched. */

/** Whether the command confirms effects; only a flush waits for it. */
export const isConfirmation = ({ kind }: LedgerCommand): boolean =>
  kind === "confirm" || kind === "confirm_records";

/** Returns the sender of a command; all commands about a project or a team count as one. */
export const senderOf = (command: LedgerCommand): string => ("agentId" in command ? command.agentId : "");

export function urgencyOf(command: LedgerCommand): Urgency {
  switch (command.kind) {
    case "pause":
    case "stop_accounts":
      return "stop";
    case "resume":
      return "start";
    case "follow_agent":
      return command.isArchived || command.keyId === null ? "stop" : "start";
    default:
      return "none";
  }
}

/** Maximum size of an account's summary in a reply. */
const SUMMARY_BYTES = 520;
/** Maximum size of a complete payment in a reply. */
const PAYMENT_BYTES = 2_000;

export function repliedBytesOf(command: LedgerCommand): number {
  switch (command.kind) {
    case "replace_team":
      return Math.min(command.agents.length, LEDGER_SUMMARIES_MAX) * SUMMARY_BYTES;
    case "stop_accounts":
      return LEDGER_SUMMARIES_MAX * SUMMARY_BYTES;
    // Fences name at most the 2,000 open payments of a project.
    case "pause":
    case "approve":
    case "deny":
    case "cancel":
    case "expire":
    case "read_payment":
      return PAYMENT_BYTES;
    default:
      return SUMMARY_BYTES;
  }
}
