import type { Collection, Db, Document } from "mongodb";
import { BulkWriter } from "./bulk-writer.ts";
import { COLLECTIONS } from "./documents.ts";

/** The revision of a project's ledger when a response last depended on it. */
export interface LedgerRevisionDocument extends Document {
  /** The project's id. */
  _id: string;
  revision: number;
}

/** Records of how far ledgers have come. */
export interface LedgerRevisionRecords {
  /** 0: no response has depended on it yet. */
  read(projectId: string): Promise<number>;
  /** An older revision never replaces a newer one. */
  write(projectId: string, revision: number): Promise<void>;
}

/** Records in MongoDB, acknowledged by the journal of a majority. */
export class MongoLedgerRevisions implements LedgerRevisionRecords {
  readonly #revisions: Collection<LedgerRevisionDocument>;
  readonly #writes: BulkWriter<LedgerRevisionDocument>;

  constructor(db: Db) {
    this.#revisions = db.collection<LedgerRevisionDocument>(COLLECTIONS.ledgerRevisions);
    this.#writes = new BulkWriter(this.#revisions);
  }

  async read(projectId: string): Promise<number> {
    // The primary is read: another server may have written it a moment ago.
    const found = await this.#revisions.findOne({ _id: projectId }, { readPreference: "primary" });
    return found?.revision ?? 0;
  }

  async write(projectId: string, revision: number): Promise<void> {
    const updateOne = { filter: { _id: projectId }, update: { $max: { revision } }, upsert: true } as const;
    // A concurrent insert has left a document to compare with.
    if ((await this.#writes.write({ updateOne })) === "duplicate") await this.#writes.write({ updateOne });
  }
}
