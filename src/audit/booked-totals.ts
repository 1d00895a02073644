import type { Collection, Db } from "mongodb";
import type { AuditSeal } from "../domain/audit/entry.ts";
import type { Booking } from "../domain/ledger/books.ts";
import { type AuditDocument, auditLogOf, isGenuine } from "../store/audit-documents.ts";

/** Amounts that a payment's network has reported so far. None ever falls. */
export type BookedAmounts = Pick<Booking, "capturedMc" | "creditedMc" | "recalledMc" | "disputedMc">;

const BOOKED = /\/booked\/(\d+)\/(\d+)\/(\d+)\/(\d+)\/\d+$/;

/**
 * Amounts that a payment's network has reported, by the audit log. An older version of the payment's record, put back
 * into MongoDB, has less.
 */
export class BookedTotals {
  readonly #log: Collection<AuditDocument>;
  readonly #seal: AuditSeal;

  constructor(db: Db, seal: AuditSeal) {
    this.#log = auditLogOf(db);
    this.#seal = seal;
  }

  /** Whether an amount in the log exceeds the one that is recorded. */
  async exceed(organizationId: string, transactionId: string, recorded: BookedAmounts): Promise<boolean> {
    const about = { organizationId, "resource.id": transactionId, action: "bookPayment" };
    const entries = await this.#log.find(about).toArray();
    return entries
      .filter((entry) => isGenuine(entry, organizationId, this.#seal))
      .some(({ entryKey }) => {
        const [, ...amounts] = BOOKED.exec(entryKey) ?? [];
        const { capturedMc, creditedMc, disputedMc, recalledMc } = recorded;
        const known = [capturedMc, creditedMc, recalledMc, disputedMc];
        return amounts.some((amount, at) => Number(amount) > (known[at] ?? 0));
      });
  }
}
