import type { AuditRecord } from "../domain/audit/entry.ts";
import type { Deadline } from "../lib/deadline.ts";
import { newId } from "../lib/ids.ts";
import { TimeoutError } from "../lib/with-timeout.ts";
import type { Transaction } from "../store/transactions.ts";
import {
  type AuditedTransaction,
  type AuditNotes,
  type AffectedAccount,
  type NoteAffected,
  type EntryDetails,
} from "./notes.ts";
import type { AuditOutbox } from "./audit-outbox.ts";
import {
  type Call,
  type AuditPrincipal,
  auditPrincipalOf,
  auditPrincipalOfAccount,
  recordOf,
  successStatusOf,
} from "./record.ts";

export interface RequestAuditDependencies {
  readonly outbox: AuditOutbox;
  readonly transaction: Transaction;
  readonly clock: () => Date;
}

type Change = Pick<EntryDetails, "before" | "after">;

const NOTHING: Change = { before: null, after: null };

const isReplacing = (entry: EntryDetails | null): boolean => (entry?.before ?? null) !== null;

/** A request's entry, from the start of its handler until it is appended. */
export class RequestAudit implements AuditNotes {
  readonly #dependencies: RequestAuditDependencies;
  readonly #call: Call;
  readonly #params: unknown;
  readonly #deadline: Pick<Deadline, "isOver">;
  readonly #entryKey = newId("req");
  readonly accounts: AffectedAccount[] = [];
  /** Entry of a transaction whose outcome may be unknown. */
  attempted: AuditRecord | null = null;
  /** Entry of a committed transaction, which is appended whatever the response. */
  committed: AuditRecord | null = null;
  /** Entry written before an actor decides. */
  begun: AuditRecord | null = null;
  /** Change that the handler recorded as the outcome. */
  changed: Change | null = null;

  constructor(
    dependencies: RequestAuditDependencies,
    call: Call,
    params: unknown,
    deadline: Pick<Deadline, "isOver">,
  ) {
    this.#dependencies = dependencies;
    this.#call = call;
    this.#params = params;
    this.#deadline = deadline;
  }

  readonly transaction: AuditedTransaction = async (work) => {
    if (this.committed !== null || this.begun !== null) throw new Error("a request has one entry");
    const { outbox, transaction } = this.#dependencies;
    const status = successStatusOf(this.#call.id);
    const done = await transaction(async (session) => {
      const { entry, value } = await work(session);
      // A process that stalled does not replace what was changed and answered since its caller was refused. Later
      // changes of the same record wait for this commit.
      if (isReplacing(entry) && this.#deadline.isOver)
        throw new TimeoutError("the change was not made in time");
      const record = entry === null ? null : this.#recordOf(entry, { status, code: null });
      if (record !== null) {
        this.attempted = record;
        await outbox.put(record, session);
      }
      return { record, value };
    });
    this.committed = done.record;
    return done.value;
  };

  async begin(expected: Change): Promise<void> {
    if (this.attempted !== null || this.begun !== null) throw new Error("a request has one entry");
    const record = this.#recordOf(expected, { status: null, code: null });
    // Set before the insert: if the insert gets no response its outcome is unknown, and the final entry uses this key
    // in any case.
    this.begun = record;
    await this.#dependencies.outbox.begin(record);
  }

  change(before: unknown, after: unknown): void {
    this.changed = { before, after };
  }

  readonly noteAffected: NoteAffected = (account) => {
    this.accounts.push(account);
  };

  /** Returns the change for an entry; after a 5xx the intended change, which may have been made. */
  changeBehind(status: number): Change {
    if (this.changed !== null) return this.changed;
    return status >= 500 && this.begun !== null ? this.begun : NOTHING;
  }

  #recordOf(
    { after = null, before = null, by, on, result }: EntryDetails,
    usual: AuditRecord["result"],
  ): AuditRecord {
    return recordOf(this.#call, this.#params, {
      entryKey: this.#entryKey,
      at: this.#dependencies.clock().getTime(),
      result: result ?? usual,
      principal: this.#principal(by),
      on: on ?? null,
      answered: null,
      before,
      after,
    });
  }

  #principal(by: AffectedAccount | undefined): AuditPrincipal {
    const { principal } = this.#call.requester;
    if (principal !== null) return auditPrincipalOf(principal);
    if (by === undefined) throw new Error("a write without a principal");
    return auditPrincipalOfAccount(by);
  }
}
