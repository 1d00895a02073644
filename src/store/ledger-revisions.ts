import type { Collection, Db, Document } from "mongodb";
import { BulkWriter } from "./bulk-writer.ts";
import { COLLECTIONS } from "./documents.ts";

/** Revision of a project's ledger when a response last depended on it. */
export interface LedgerRevisionDocument extends Document {
  /** The project's id. */
  _id: string;
  revision: number;
}

export interface LedgerRevisionRecords {
  /** Returns 0 if no response has depended on the ledger yet. */
  read(projectId: string): Promise<number>;
  /** Writes a revision; an older one never replaces a newer one. */
  write(projectId: string, revision: number): Promise<void>;
}

/** Records in MongoDB, acknowledged by the journals of a majority. */
export class MongoLedgerRevisions implements LedgerRevisionRecords {
  readonly #revisions: Collection<LedgerRevisionDocument>;
  readonly #writes: BulkWriter<LedgerRevisionDocument>;

  constructor(db: Db) {
    this.#revisions = db.collection<LedgerRevisionDocument>(COLLECTIONS.ledgerRevisions);
    this.#writes = new BulkWriter(this.#revisions);
  }

  async read(projectId: string): Promise<number> {
    // Reads from the primary: another server may have written the revision a moment ago.
    const found = await this.#revisions.findOne({ _id: projectId }, { readPreference: "primary" });
    return found?.revision ?? 0;
  }

  async write(projectId: string, revision: number): Promise<void> {
    const updateOne = { filter: { _id: projectId }, update: { $max: { revision } }, upsert: true } as const;
    // After a concurrent insert the update finds a document to compare with.
    if ((await this.#writes.write({ updateOne })) === "duplicate") await this.#writes.write({ updateOne });
  }
}
