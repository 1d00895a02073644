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

/** What an entry has of a write besides its request. Never a secret. */
export interface EntryDetails {
  /** What was changed, as it was and as it is: of everything that decides who may do what. */
  readonly before?: unknown;
  readonly after?: unknown;
  /** What it was done on, where the route's path does not say so: of everything that is created. */
  readonly on?: AuditRecord["resource"];
  /** Who did it, where no credential says so. */
  readonly by?: AffectedAccount;
  /** How it is answered, where that is not the operation's success. */
  readonly result?: AuditRecord["result"];
}

/** What a transaction came to, and the entry that is written with it; null: it changes nothing that leaves one. */
export interface Outcome<T> {
  readonly value: T;
  readonly entry: EntryDetails | null;
}

/** Something was written, and this is its entry. */
export const changed = <T>(value: T, entry: EntryDetails = {}): Outcome<T> => ({ value, entry });
/** Nothing was done, such as where it is refused: its request leaves what every refusal leaves. */
export const unchanged = <T>(value: T): Outcome<T> => ({ value, entry: null });

/**
 * Runs work in a transaction, with the request's entry in it: all of its writes and the entry, or none of it. The work may run several
 * times, as in every transaction. A request has one entry, so one of its transactions changes something.
 */
export type AuditedTransaction = <T>(work: (session: ClientSession) => Promise<Outcome<T>>) => Promise<T>;

/** What changes the database on behalf of a request: there is no other transaction for it to be given. */
export interface AuditedWrites {
  readonly transaction: AuditedTransaction;
}

/** What a handler does its writes with, so that each of them has its entry in the audit log. */
export interface AuditNotes extends AuditedWrites {
  /**
   * Before something is begun that this database does not decide, such as an actor's command: what it is going to change. Safe when
   * done, so that whatever dies after it, there is an entry. What became of it is said by `change`.
   */
  begin(expected: Pick<EntryDetails, "before" | "after">): Promise<void>;
  /** What was changed in the end by what was begun. The last call wins. */
  change(before: unknown, after: unknown): void;
  /** Whose log it belongs to, where no credential says so. */
  readonly noteAffected: NoteAffected;
}

/** The user of an account that a sign-in names; unproven where it was refused. */
export const actorOfAccount = ({ name, sessionId, userId }: AffectedAccount): AuditActor => ({
  type: "user",
  id: userId,
  ...(sessionId === undefined ? {} : { sessionId }),
  name,
});
