import type { StaleBackup } from "../../domain/ledger/stale-backup.ts";
import { isAgentCommand } from "./agent-commands.ts";
import { type Guard, isArrayOf, isCount, isRecord } from "./guards.ts";
import { isLedgerCommand } from "./ledger-commands.ts";

/** Failure type of a refused batch; nothing of it was decided. */
export const REFUSED = "Refused";

/** Failure types by which a ledger refuses to decide after a restore from a backup. */
export const STALE: Readonly<Record<StaleBackup, string>> = {
  ledger: "StaleLedger",
  records: "StaleRecords",
};

/** Refusal of a whole batch, of which nothing was decided. */
export interface BatchRefusal {
  /** Commands that the actor's version does not know, perhaps not yet; none if it does not know such a batch. */
  readonly indexes: readonly number[];
}

export const isBatchRefusal = isRecord<BatchRefusal>({ indexes: isArrayOf(isCount) });

/** Checks a batch for an agent's actor; null if it is accepted. */
export const agentRefusal = (batch: unknown): BatchRefusal | null => refusalOf(batch, isAgentCommand);

/** Checks a batch for a project's ledger; null if it is accepted. */
export const ledgerRefusal = (batch: unknown): BatchRefusal | null => refusalOf(batch, isLedgerCommand);

function refusalOf(batch: unknown, isCommand: Guard<unknown>): BatchRefusal | null {
  if (!Array.isArray(batch)) return { indexes: [] };
  const indexes = batch.flatMap((command: unknown, index) => (isCommand(command) ? [] : [index]));
  return indexes.length === 0 ? null : { indexes };
}
