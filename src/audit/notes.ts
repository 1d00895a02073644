import type { ClientSession } from "mongodb";
import type { AuditActor, AuditRecord } from "../domain/audit/entry.ts";

/** The account that a request without a credential is about. */
export interface AffectedAccount {
  readonly organizationId: string;
  readonly userId: string;
  readonly name: string;
  /** The session that begins or continues. */
  readonly sessionId?: string;
  /** Set if the organization may not learn the request's origin. */
  readonly isOriginHidden?: true;
}

/** Notes an account that a sign-in or a refresh is about, before the credential is checked. */
export type NoteAffected = (account: AffectedAccount) => void;

/** Details of a write in addition to its request. Never contain a secret. */
export interface EntryDetails {
  /** State before and after, of everything that decides who may do what. */
  readonly before?: unknown;
  readonly after?: unknown;
  /** Resource, if the route's path does not name it, as for created records. */
  readonly on?: AuditRecord["resource"];
  /** Author, if no credential names one. */
  readonly by?: AffectedAccount;
  /** Result, if not the operation's usual success. */
  readonly result?: AuditRecord["result"];
}

/** Result of a transaction, with the entry written in it; null for no entry. */
export interface Outcome<T> {
  readonly value: T;
  readonly entry: EntryDetails | null;
}

/** Wraps the value of a change, with its entry. */
export const changed = <T>(value: T, entry: EntryDetails = {}): Outcome<T> => ({ value, entry });
/** Wraps the value of a transaction without a change. The request leaves an entry like every refusal. */
export const unchanged = <T>(value: T): Outcome<T> => ({ value, entry: null });

/**
 * Runs work in a transaction together with the request's entry: either all of its writes and the entry are committed,
 * or none. The work may run several times, as in every transaction. A request has one entry, so at most one of its
 * transactions changes something.
 */
export type AuditedTransaction = <T>(work: (session: ClientSession) => Promise<Outcome<T>>) => Promise<T>;

/** Audited writes of a request: the only transactions that a handler can get. */
export interface AuditedWrites {
  readonly transaction: AuditedTransaction;
}

export interface AuditNotes extends AuditedWrites {
  /**
   * Records a change before another system, such as an actor, decides it. Durable once resolved, so that there is an
   * entry whatever dies afterwards. `change` records the outcome.
   */
  begin(expected: Pick<EntryDetails, "before" | "after">): Promise<void>;
  /** Records the outcome of a begun change. The last call wins. */
  change(before: unknown, after: unknown): void;
  /** Names the account whose log gets the entry, if no credential does. */
  readonly noteAffected: NoteAffected;
}

/** Returns the actor for an account that a sign-in names; unproven if the sign-in was refused. */
export const actorOfAccount = ({ name, sessionId, userId }: AffectedAccount): AuditActor => ({
  type: "user",
  id: userId,
  ...(sessionId === undefined ? {} : { sessionId }),
  name,
});
