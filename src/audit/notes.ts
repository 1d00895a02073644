import type { ClientSession } from "mongodb";
import type { AuditActor, AuditRecord } from "../domain/audit/entry.ts";

/** A person's account that a request without a credential is about. */
export interface AffectedAccount {
  readonly organizationId: string;
  readonly userId: string;
  readonly name: string;
  /** The session that begins or goes on. */
  readonly sessionId?: string;
  /** Whether its organization may learn where the request came from; missing: it may. */
  readonly isOriginHidden?: true;
}

/** Takes each account that a sign-in or a refresh is about, before the credential is checked. */
export type NoteAffected = (account: AffectedAccount) => void;

/** Details of a write besides its request. Never a secret. */
export interface EntryDetails {
  /** State before and after, of everything that decides who may do what. */
  readonly before?: unknown;
  readonly after?: unknown;
  /** Resource, if the route's path does not name it, as for everything that is created. */
  readonly on?: AuditRecord["resource"];
  /** Author, if no credential names one. */
  readonly by?: AffectedAccount;
  /** Result, if it is not the operation's success. */
  readonly result?: AuditRecord["result"];
}

/** Result of a transaction with the entry that is written in it; null without an entry. */
export interface Outcome<T> {
  readonly value: T;
  readonly entry: EntryDetails | null;
}

/** Something was written, and this is its entry. */
export const changed = <T>(value: T, entry: EntryDetails = {}): Outcome<T> => ({ value, entry });
/** Nothing was changed, for example because it was refused: the request leaves an entry like every refusal. */
export const unchanged = <T>(value: T): Outcome<T> => ({ value, entry: null });

/**
 * Runs work in a transaction, with the request's entry in it: all of its writes and the entry, or none of it. The work may run several
 * times, as in every transaction. A request has one entry, so one of its transactions changes something.
 */
export type AuditedTransaction = <T>(work: (session: ClientSession) => Promise<Outcome<T>>) => Promise<T>;

/** Writes on behalf of a request: the only transactions that a handler can get. */
export interface AuditedWrites {
  readonly transaction: AuditedTransaction;
}

/** Writes of a handler, each with its entry in the audit log. */
export interface AuditNotes extends AuditedWrites {
  /**
   * Records a change before another system decides it, such as an actor's command. Durable when it resolves, so there
   * is an entry whatever dies afterwards. `change` records the outcome.
   */
  begin(expected: Pick<EntryDetails, "before" | "after">): Promise<void>;
  /** Records the outcome of a change that was begun. The last call wins. */
  change(before: unknown, after: unknown): void;
  /** Names the account whose log gets the entry, if no credential does. */
  readonly noteAffected: NoteAffected;
}

/** The user of an account that a sign-in names; unproven where it was refused. */
export const actorOfAccount = ({ name, sessionId, userId }: AffectedAccount): AuditActor => ({
  type: "user",
  id: userId,
  ...(sessionId === undefined ? {} : { sessionId }),
  name,
});
