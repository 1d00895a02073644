import type { ClientSession } from "mongodb";
import type { AuditedWrites, EntryDetails } from "../../audit/notes.ts";
import type { Parent } from "../../containers/containers.ts";
import type { Refusal } from "../../domain/errors.ts";
import type { ManagementPrincipal } from "../../identity/principals.ts";
import type { Deadline } from "../../lib/deadline.ts";

/** Record that a create writes as its last step. */
export interface Committable {
  readonly _id: string;
}

export interface Create<R extends Committable, M extends { readonly record: R }> {
  readonly kind: "agent" | "project" | "team";
  readonly principal: ManagementPrincipal;
  /** Writes the record together with its audit entry. */
  readonly audit: AuditedWrites;
  readonly idempotencyKey: string | undefined;
  /** Extended while the call waits for another call's create, and if only the response can show the outcome. */
  readonly deadline: Deadline;
  /** Payload that a replay must repeat, with defaults filled in. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** Container of the create, as the pipeline found it. */
  readonly parent: Parent | null;
  readonly find: (id: string) => Promise<R | null>;
  /**
   * Does everything that precedes the record. Repeatable: a create that died half-way is restarted under the same id,
   * and `begunAt` is when that id was first used. Returns a refusal if it exceeds a limit.
   */
  readonly prepare: (id: string, begunAt: Date) => Promise<M | Refusal>;
  /**
   * Returns a refusal if the container is full; missing if it can't be. Called beforehand, and again in the transaction
   * that writes the record, after the container's counter is written.
   */
  readonly capacityRefusal?: (session?: ClientSession) => Promise<Refusal | null>;
  /** Writes the record, which commits the create, and returns what the audit entry contains. */
  readonly insert: (made: M, session: ClientSession) => Promise<Pick<EntryDetails, "after">>;
  /** Detects and discards a create that was not committed after some time. */
  readonly discarding?: Discarding;
}

interface Discarding {
  /** Whether a create that was begun at this time is to be discarded, unless it was committed. */
  readonly isDue: (begunAt: Date) => boolean;
  /** Discards the create unless it was committed; afterwards nothing can be committed under the id. */
  readonly discard: (id: string) => Promise<"committed" | "discarded">;
  readonly isDiscarded: (id: string) => Promise<boolean>;
}

/** Result of a create, or the record that an earlier or concurrent call has made. */
export type Created<R, M> =
  { readonly replayed: false; readonly made: M } | { readonly replayed: true; readonly record: R };

export type Committed = "committed" | "there" | "archived" | "abandoned" | "slot_lost" | Refusal;

export interface CreateRun {
  readonly id: string;
  readonly begunAt: Date;
  /**
   * Called just before the commit. Returns whether the call will be answered without the outcome, and no replay can
   * find the record. If it returns false, the response waits for the commit.
   */
  readonly isAbandoned?: () => boolean;
}

export interface LeasedCreate extends CreateRun {
  readonly reservationId: string;
  readonly leaseHolder: string;
}
