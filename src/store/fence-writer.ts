import type { Collection, Document } from "mongodb";
import { BulkWriter } from "./bulk-writer.ts";

/** A fence in the place of a payment's trace, until a trace replaces it. */
export interface FenceDocument extends Document {
  readonly _id: string;
  readonly fence: number;
  readonly createdAt: Date;
}

/**
 * Lays fences in a rail's collection. A place is empty, then has a fence that only rises, then a trace, and is never empty again. So
 * an insert followed by a raise leaves no moment at which an earlier permit gets through.
 */
export class FenceWriter {
  readonly #writes: BulkWriter<FenceDocument>;

  /** Takes a queue of its own: a stop does not wait behind payments. */
  constructor(collection: Collection<FenceDocument>) {
    this.#writes = new BulkWriter(collection);
  }

  /** Whether the place was empty; else it has a trace, or a fence that is at least as high now. */
  async lay(document: FenceDocument): Promise<boolean> {
    const { _id, fence } = document;
    if ((await this.#writes.write({ insertOne: { document } })) === "written") return true;
    await this.#writes.write({
      updateOne: { filter: { _id, fence: { $lt: fence } }, update: { $set: { fence } } },
    });
    return false;
  }
}
