import type { Unavailable } from "../lib/unavailable.ts";

/** An actor, or the engine beneath it, did not respond in time: the command may or may not have been decided. */
export class ActorUnavailable extends Error implements Unavailable {
  override readonly name: string = "ActorUnavailable";
  readonly isUnavailable = true;
}

/** The caller left before the command was put to its actor: nothing was begun. */
export class CallerGone extends ActorUnavailable {
  override readonly name = "CallerGone";
}

/**
 * A project's ledger has ended, or was lost with its engine. It is never recreated empty, since that would reset used limits; an
 * operator restores it.
 */
export class LedgerLost extends ActorUnavailable {
  override readonly name = "LedgerLost";
}

/**
 * A ledger, or its records, were restored from a backup that is older than the other: nothing is decided until an operator has restored
 * the ledger, or taken the records as they are.
 */
export class StaleLedger extends ActorUnavailable {
  override readonly name = "StaleLedger";
}

export class StaleRecords extends ActorUnavailable {
  override readonly name = "StaleRecords";
}
