import type { Unavailable } from "../lib/unavailable.ts";
import { WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import { STALE, isBatchRefusal, type BatchRefusal, REFUSED } from "../messages/guards/batch-refusals.ts";
import { StaleLedger, StaleRecords } from "./actor-unavailable.ts";

/**
 * An actor refused a batch of commands and decided none of them: its worker is older than this process and does not
 * know one of the commands yet.
 */
export class CommandsRefused extends Error implements Unavailable {
  override readonly name = "CommandsRefused";
  readonly isUnavailable = true;
  /** Batch indexes of the refused commands. The other commands may be submitted again without them. */
  readonly indexes: ReadonlySet<number>;

  constructor({ indexes }: BatchRefusal, options: ErrorOptions) {
    super("the actor refused a command that it does not know, perhaps not yet", options);
    this.indexes = new Set(indexes);
  }
}

/** Returns the refusal that caused an update's failure, or the error itself. */
export function refusalIn(error: unknown): unknown {
  if (!(error instanceof WorkflowUpdateFailedError)) return error;
  const { cause } = error;
  if (!(cause instanceof ApplicationFailure)) return error;
  if (cause.type === STALE.ledger) return new StaleLedger(cause.message, { cause: error });
  if (cause.type === STALE.records) return new StaleRecords(cause.message, { cause: error });
  if (cause.type !== REFUSED) return error;
  const [refusal]: readonly unknown[] = cause.details ?? [];
  return new CommandsRefused(isBatchRefusal(refusal) ? refusal : { indexes: [] }, { cause: error });
}
