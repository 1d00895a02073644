import type { ClientSession } from "mongodb";
import type { AuditedWrites, EntryDetails } from "../../audit/notes.ts";
import type { Parent } from "../../containers/containers.ts";
import type { Refusal } from "../../domain/errors.ts";
import type { ManagementPrincipal } from "../../identity/principals.ts";
import type { Deadline } from "../../lib/deadline.ts";

/** Record that a create writes when all else is done. */
export interface Committable {
  readonly _id: string;
}

/** Create of any kind, as its handler describes it. */
export interface Create<R extends Committable, M extends { readonly record: R }> {
  readonly kind: "agent" | "project" | "team";
  readonly principal: ManagementPrincipal;
  /** The record is written with its entry in the audit log. */
  readonly audit: AuditedWrites;
  readonly idempotencyKey: string | undefined;
  /** Moved where another call is found at the same create, and where only the response shows the outcome. */
  readonly deadline: Deadline;
  /** Payload that a replay must repeat, defaults spelt out. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** The container that it is for, as the pipeline found it. */
  readonly parent: Parent | null;
  readonly find: (id: string) => Promise<R | null>;
  /**
   * Does all that goes before the record. Repeatable: a create that died half-way is begun again under the same id,
   * and `begunAt` is when that id was first set to work. Returns a refusal if it exceeds a limit.
   */
  readonly prepare: (id: string, begunAt: Date) => Promise<M | Refusal>;
  /**
   * A refusal where the container is full; missing: it never is. Checked beforehand, and in the transaction that writes the
   * record, once the container is entered.
   */
  readonly capacityRefusal?: (session?: ClientSession) => Promise<Refusal | null>;
  /** Writes the record, which commits the create, and says what its entry says of it. */
  readonly insert: (made: M, session: ClientSession) => Promise<Pick<EntryDetails, "after">>;
  /** Detects and discards a create that was not committed after some time. */
  readonly discarding?: Discarding;
}

interface Discarding {
  /** Whether a create that was begun then is to be discarded, unless it was committed. */
  readonly isDue: (begunAt: Date) => boolean;
  /** Discards it, unless it was committed: afterwards nothing can be committed under the id any more. */
  readonly discard: (id: string) => Promise<"committed" | "discarded">;
  /** Whether it was discarded meanwhile. */
  readonly isDiscarded: (id: string) => Promise<boolean>;
}

/** Result of a create, or else the record that an earlier call, or one at the same time, has made. */
export type Created<R, M> =
  { readonly replayed: false; readonly made: M } | { readonly replayed: true; readonly record: R };

export type Committed = "committed" | "there" | "archived" | "abandoned" | "slot_lost" | Refusal;

/** The id that a create is executed under, and since when. */
export interface CreateRun {
  readonly id: string;
  readonly begunAt: Date;
  /**
   * Called just before the commit: whether the call will be answered without its end, and no replay will ever find what it makes.
   * If not, its answer waits for the commit.
   */
  readonly isAbandoned?: () => boolean;
}

/** A create that this call executes under a lease. */
export interface LeasedCreate extends CreateRun {
  readonly reservationId: string;
  readonly leaseHolder: string;
}
