import type { Collection, Db, Document } from "mongodb";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { COLLECTIONS } from "../store/documents.ts";

/** A block up to which all deposits were published; its hash identifies the chain. */
export interface Checkpoint {
  readonly block: number;
  /** Null if nothing was published yet: the checkpoint is then valid on any chain. */
  readonly hash: string | null;
}

/** Position up to which one token's deposits on one chain were published. */
export interface DepositCursor extends Document, Checkpoint {
  /** For example `eip155:1/0x…`. */
  readonly _id: string;
  /** The block after which the cursor began. */
  readonly beganAt: number;
  /** Earlier positions, lowest first, to return to after a reorganization. */
  readonly checkpoints: readonly Checkpoint[];
}

/** Stores cursors. Any number of processes may move one: each state is valid for the chain that its hash identifies. */
export class DepositCursors {
  readonly #collection: Collection<DepositCursor>;

  constructor(db: Db) {
    this.#collection = db.collection(COLLECTIONS.chainCursors);
  }

  /** Returns the cursor, created after the given block if there is none. */
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

  /** Moves the cursor forward, unless another process has moved it. */
  async advance(from: DepositCursor, to: Checkpoint): Promise<void> {
    const { block, checkpoints, hash } = from;
    const before = hash === null ? checkpoints : [...checkpoints, { block, hash }];
    await this.#move(from, to, thinned(before, to.block));
  }

  /** Resets the cursor to one of its checkpoints, or to its beginning (null), unless another process has moved it. */
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
 * Keeps the oldest checkpoint per power of two of distance: there are few of them, and the nearest valid one is never
 * much further back than the reorganization.
 */
function thinned(checkpoints: readonly Checkpoint[], newestBlock: number): readonly Checkpoint[] {
  const byBlock = new Map<number, Checkpoint>();
  for (const checkpoint of checkpoints) {
    const distance = Math.floor(Math.log2(newestBlock - checkpoint.block));
    if (!byBlock.has(distance)) byBlock.set(distance, checkpoint);
  }
  return [...byBlock.values()];
}
