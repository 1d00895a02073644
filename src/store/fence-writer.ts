import type { Collection, Document } from "mongodb";
import { BulkWriter } from "./bulk-writer.ts";

/** A fence in the place of a payment's trace, until a trace replaces it. */
export interface FenceDocument extends Document {
  readonly _id: string;
  readonly fence: number;
  readonly createdAt: Date;
}

/**
 * Lays fences in a rail's collection. A place is empty, then holds a fence that only rises, then a trace, and is never
 * empty again. An insert followed by a raise therefore leaves no gap for an earlier permit.
 */
export class FenceWriter {
  readonly #writes: BulkWriter<FenceDocument>;

  /** Uses a queue of its own, so that a stop does not wait behind payments. */
  constructor(collection: Collection<FenceDocument>) {
    this.#writes = new BulkWriter(collection);
  }

  /** Returns whether the place was empty. If not, it now holds a trace, or a fence at least as high. */
  async lay(document: FenceDocument): Promise<boolean> {
    const { _id, fence } = document;
    if ((await this.#writes.write({ insertOne: { document } })) === "written") return true;
    await this.#writes.write({
      updateOne: { filter: { _id, fence: { $lt: fence } }, update: { $set: { fence } } },
    });
    return false;
  }
}
