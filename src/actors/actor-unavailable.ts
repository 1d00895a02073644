import type { Unavailable } from "../lib/unavailable.ts";

/** An actor, or Temporal itself, did not respond in time. The command may or may not have been decided. */
export class ActorUnavailable extends Error implements Unavailable {
  override readonly name: string = "ActorUnavailable";
  readonly isUnavailable = true;
}

/** The caller left before the command was sent to its actor: nothing was begun. */
export class CallerGone extends ActorUnavailable {
  override readonly name = "CallerGone";
}

/**
 * A project's ledger has ended, or was lost with its engine. It is never recreated empty, since that would reset used
 * limits; an operator restores it.
 */
export class LedgerLost extends ActorUnavailable {
  override readonly name = "LedgerLost";
}

/**
 * Either the ledger or its records were restored from an older backup. Nothing is decided until an operator restores
 * the ledger or accepts the records as they are.
 */
export class StaleLedger extends ActorUnavailable {
  override readonly name = "StaleLedger";
}

export class StaleRecords extends ActorUnavailable {
  override readonly name = "StaleRecords";
}
