import type { StaleBackup } from "../../domain/ledger/stale-backup.ts";
import { AGENT_COMMAND_KINDS, isAgentCommand } from "./agent-commands.ts";
import { isLedgerCommand, LEDGER_COMMAND_KINDS } from "./ledger-commands.ts";
import { SUBMIT_BATCH_MAX } from "../agent.ts";
import { LEDGER_BATCH_MAX, LEDGER_CONFIRMATIONS_MAX } from "../ledger.ts";
import { type Guard, isArrayOf, isCount, isFields, isOneOf, isRecord } from "./guards.ts";

/** Under which type a workflow refuses what it does not take; nothing was decided then. */
export const REFUSED = "Refused";

/** Under which types a ledger refuses to decide, by what is from a backup. */
export const STALE: Readonly<Record<StaleBackup, string>> = {
  ledger: "StaleLedger",
  records: "StaleRecords",
};

/** A command of a batch that its actor does not take. */
export interface RefusedCommand {
  /** Index in the batch. */
  readonly index: number;
  /** The actor's worker knows of no such command, perhaps not yet; or it is not as such a command is. */
  readonly why: "unknown" | "malformed";
}

/** Why a batch is refused as a whole: nothing of it was decided. Without commands: it is no batch. */
export interface Refusal {
  readonly commands: readonly RefusedCommand[];
}

const LEDGER_UPDATE_MAX = LEDGER_BATCH_MAX + LEDGER_CONFIRMATIONS_MAX;

export const isRefusal = isRecord<Refusal>({
  commands: isArrayOf(
    isRecord<RefusedCommand>({ index: isCount, why: isOneOf(["unknown", "malformed"]) }),
    Math.max(SUBMIT_BATCH_MAX, LEDGER_UPDATE_MAX),
  ),
});

/** Why an agent's actor does not take a batch; null: it takes it. */
export const agentRefusal = (batch: unknown): Refusal | null =>
  refusalOf(batch, SUBMIT_BATCH_MAX, isAgentCommand, AGENT_COMMAND_KINDS);

/** Checks a batch for a project's ledger. */
export const ledgerRefusal = (batch: unknown): Refusal | null =>
  refusalOf(batch, LEDGER_UPDATE_MAX, isLedgerCommand, LEDGER_COMMAND_KINDS);

function refusalOf(
  batch: unknown,
  max: number,
  isCommand: Guard<unknown>,
  kinds: ReadonlySet<string>,
): Refusal | null {
  if (!Array.isArray(batch) || batch.length > max) return { commands: [] };
  const commands: RefusedCommand[] = [];
  for (const [index, command] of batch.entries()) {
    if (isCommand(command)) continue;
    const kind: unknown = isFields(command) ? command["kind"] : null;
    commands.push({ index, why: typeof kind === "string" && !kinds.has(kind) ? "unknown" : "malformed" });
  }
  return commands.length === 0 ? null : { commands };
}
