import type { AuditActor, AuditRecord } from "../../src/domain/audit/entry.ts";
import { type AuditValue, auditValue } from "../../src/domain/audit/canonical.ts";

/** A person's account, as far as a request that carries no credential turned out to be about one. */
export interface ConcernedAccount {
  readonly organizationId: string;
  readonly userId: string;
  readonly name: string;
}

/** Told whose account a sign-in or a refresh is about, before it is known whether it is good. */
export type Concerns = (account: ConcernedAccount) => void;

/** What a handler may say for its request's entry in the audit log; saying nothing is fine. Never a secret. */
export interface AuditNotes {
  /** What it changed, as it was and as it is: of everything that decides who may do what. The last word stands. */
  change(before: unknown, after: unknown): void;
  /** What it was done on, where its route does not say so. */
  on(resource: AuditRecord["resource"]): void;
  /** Whose log it belongs to, where no credential says so. */
  readonly concerns: Concerns;
}

/** What was said while a request was carried out. */
export class NotesTaken implements AuditNotes {
  before: AuditValue = null;
  after: AuditValue = null;
  account: ConcernedAccount | null = null;
  resource: AuditRecord["resource"] | null = null;

  change(before: unknown, after: unknown): void {
    this.before = auditValue(before);
    this.after = auditValue(after);
  }

  on(resource: AuditRecord["resource"]): void {
    this.resource = resource;
  }

  readonly concerns: Concerns = (account) => {
    this.account = account;
  };
}

/** Whoever is behind an account that a sign-in names; not proved, where it was refused. */
export const actorOfAccount = ({ name, userId }: ConcernedAccount): AuditActor => ({
  type: "user",
  id: userId,
  name,
});
