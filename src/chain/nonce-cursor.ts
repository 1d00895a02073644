import type { Collection, Db, Document } from "mongodb";
import { COLLECTIONS } from "../store/documents.ts";

/** Nonce below which the user of each is known. Among the deposit cursors, under a separate name. */
interface NonceCursorDocument extends Document {
  readonly _id: string;
  readonly nonce: number;
}

/**
 * Position up to which a key's nonces were checked. It may be too low, which costs a second check, and goes back when
 * the chain has lost blocks. Concurrent processes share it.
 */
export class NonceCursor {
  readonly #collection: Collection<NonceCursorDocument>;
  readonly #id: string;
  #lookedBelow = 0;

  constructor(db: Db, id: string) {
    this.#collection = db.collection(COLLECTIONS.chainCursors);
    this.#id = id;
  }

  /** Returns the first nonce to check, below the final one; the final one itself if nothing is new. */
  async begin(finalBelow: number): Promise<number> {
    if (this.#lookedBelow === finalBelow) return finalBelow;
    const stored = (await this.#collection.findOne({ _id: this.#id }))?.nonce ?? 0;
    if (stored > finalBelow) await this.#store(finalBelow);
    this.#lookedBelow = Math.min(finalBelow, Math.max(this.#lookedBelow, stored));
    return this.#lookedBelow;
  }

  /** Records that all nonces below `to` were checked; those in `open` are checked again after a restart. */
  async advance(to: number, open: readonly number[]): Promise<void> {
    this.#lookedBelow = to;
    await this.#store(Math.min(to, ...open));
  }

  async #store(nonce: number): Promise<void> {
    await this.#collection.updateOne({ _id: this.#id }, { $set: { nonce } }, { upsert: true });
  }
}
