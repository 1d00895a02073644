import type { StaleBackup } from "../../domain/ledger/stale-backup.ts";
import { AGENT_COMMAND_KINDS, isAgentCommand } from "./agent-commands.ts";
import { isLedgerCommand, LEDGER_COMMAND_KINDS } from "./ledger-commands.ts";
import { SUBMIT_BATCH_MAX } from "../agent.ts";
import { LEDGER_BATCH_MAX, LEDGER_CONFIRMATIONS_MAX } from "../ledger.ts";
import { type Guard, isArrayOf, isCount, isFields, isOneOf, isRecord } from "./guards.ts";

/** Failure type of a refused batch; nothing of it was decided. */
export const REFUSED = "Refused";

/** Failure types by which a ledger refuses to decide after a restore from a backup. */
export const STALE: Readonly<Record<StaleBackup, string>> = {
  ledger: "StaleLedger",
  records: "StaleRecords",
};

export interface RefusedCommand {
  readonly index: number;
  /** `unknown`: the actor's worker does not know the command, perhaps not yet. `malformed`: its fields are invalid. */
  readonly why: "unknown" | "malformed";
}

/** Reason for refusing a whole batch, of which nothing was decided. Without commands: the batch itself is invalid. */
export interface BatchRefusal {
  readonly commands: readonly RefusedCommand[];
}

const LEDGER_UPDATE_MAX = LEDGER_BATCH_MAX + LEDGER_CONFIRMATIONS_MAX;

export const isBatchRefusal = isRecord<BatchRefusal>({
  commands: isArrayOf(
    isRecord<RefusedCommand>({ index: isCount, why: isOneOf(["unknown", "malformed"]) }),
    Math.max(SUBMIT_BATCH_MAX, LEDGER_UPDATE_MAX),
  ),
});

/** Checks a batch for an agent's actor; null if it is accepted. */
export const agentRefusal = (batch: unknown): BatchRefusal | null =>
  refusalOf(batch, SUBMIT_BATCH_MAX, isAgentCommand, AGENT_COMMAND_KINDS);

/** Checks a batch for a project's ledger; null if it is accepted. */
export const ledgerRefusal = (batch: unknown): BatchRefusal | null =>
  refusalOf(batch, LEDGER_UPDATE_MAX, isLedgerCommand, LEDGER_COMMAND_KINDS);

function refusalOf(
  batch: unknown,
  max: number,
  isCommand: Guard<unknown>,
  kinds: ReadonlySet<string>,
): BatchRefusal | null {
  if (!Array.isArray(batch) || batch.length > max) return { commands: [] };
  const commands: RefusedCommand[] = [];
  for (const [index, command] of batch.entries()) {
    if (isCommand(command)) continue;
    const kind: unknown = isFields(command) ? command["kind"] : null;
    commands.push({ index, why: typeof kind === "string" && !kinds.has(kind) ? "unknown" : "malformed" });
  }
  return commands.length === 0 ? null : { commands };
}
