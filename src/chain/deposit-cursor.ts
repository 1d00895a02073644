import type { Collection, Db, Document } from "mongodb";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { COLLECTIONS } from "../store/documents.ts";

/** A block up to which all deposits were published; its hash identifies the chain. */
export interface Checkpoint {
  readonly block: number;
  /** Null: nothing was published yet, so it holds on any chain. */
  readonly hash: string | null;
}

/** Position up to which one token's deposits on one chain were published. */
export interface DepositCursor extends Document, Checkpoint {
  /** `eip155:1/0x…`. */
  readonly _id: string;
  /** The block behind which it began. */
  readonly beganAt: number;
  /** Earlier positions, lowest first, to return to after a reorganization. */
  readonly checkpoints: readonly Checkpoint[];
}

/** Keeps a cursor. Any number of processes may move it: each state of it is true of the chain that its hash names. */
export class DepositCursors {
  readonly #collection: Collection<DepositCursor>;

  constructor(db: Db) {
    this.#collection = db.collection(COLLECTIONS.chainCursors);
  }

  /** The cursor, which begins after the given block where there is none yet. */
  async read(id: string, beginsAt: () => Promise<number>): Promise<DepositCursor> {
    const found = await this.#collection.findOne({ _id: id });
    if (found !== null) return found;
    const block = await beginsAt();
    const first = { _id: id, block, hash: null, beganAt: block, checkpoints: [] };
    try {
      await this.#collection.insertOne(first);
      return first;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return this.read(id, beginsAt);
    }
  }

  /** Moves it on, unless another process has moved it. */
  async advance(from: DepositCursor, to: Checkpoint): Promise<void> {
    const { block, checkpoints, hash } = from;
    const before = hash === null ? checkpoints : [...checkpoints, { block, hash }];
    await this.#move(from, to, thinned(before, to.block));
  }

  /** Sets it back to one of its checkpoints, or to its beginning (null), unless another process has moved it. */
  async goBack(from: DepositCursor, to: Checkpoint | null): Promise<void> {
    const { beganAt, checkpoints } = from;
    const target = to ?? { block: beganAt, hash: null };
    const before = checkpoints.filter(({ block }) => block < target.block);
    await this.#move(from, target, before);
  }

  async #move(from: DepositCursor, { block, hash }: Checkpoint, checkpoints: readonly Checkpoint[]) {
    const { _id, block: seenBlock, hash: seenHash } = from;
    await this.#collection.updateOne(
      { _id, block: seenBlock, hash: seenHash },
      { $set: { block, hash, checkpoints } },
    );
  }
}

/**
 * Keeps the oldest position of each power of two of distance, so they are few, and one is never much further back
 * than the reorganization went.
 */
function thinned(checkpoints: readonly Checkpoint[], newestBlock: number): readonly Checkpoint[] {
  const byBlock = new Map<number, Checkpoint>();
  for (const checkpoint of checkpoints) {
    const distance = Math.floor(Math.log2(newestBlock - checkpoint.block));
    if (!byBlock.has(distance)) byBlock.set(distance, checkpoint);
  }
  return [...byBlock.values()];
}
