import { setTimeout as sleep } from "node:timers/promises";
import { type AnyBulkWriteOperation, type Collection, type Db, MongoBulkWriteError } from "mongodb";
import type { Address } from "viem";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import { COLLECTIONS } from "../store/documents.ts";
import { FenceWriter } from "../store/fence-writer.ts";
import type { Clock } from "../payments/ports.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import { caip2Of, type ChainConfig, type Fees, type Signer } from "./config.ts";
import { NextNonce } from "./next-nonce.ts";
import {
  type Call,
  type ChainTransactionDocument,
  type Entry,
  isSendable,
  type Replacement,
  isTransaction,
  noTransaction,
  retryPurpose,
  type Recorded,
  recordedOf,
  type RecordedTransaction,
  type Sendable,
  type Signing,
  type Refused,
  unprovenOf,
} from "./recorded.ts";
import type { ChainRpc } from "./rpc.ts";
import { ChainSigning } from "./signing.ts";
import type { Indexes } from "../store/indexes.ts";

export {
  type Call,
  type ChainTransactionDocument,
  type Entry,
  isTransaction,
  type Recorded,
  type RecordedRefusal,
  type RecordedTransaction,
  type Refused,
  type Sendable,
} from "./recorded.ts";

export type ChainProofs = Pick<AccessProofs, "changed" | "genuine" | "proven">;

export interface Moved {
  readonly debitCents: number;
  readonly creditCents: number;
}

export interface FencedPurpose {
  readonly purpose: string;
  readonly fence: number;
}

/** Maximum rounds against processes that record concurrently; in each round one process succeeds. */
const ROUNDS_MAX = 200;
/** Maximum jitter after losing a race, so that no process loses every race. */
const AFTER_LOST_ROUND_MAX_MS = 20;

export interface OutboxDependencies {
  readonly db: Db;
  readonly config: ChainConfig;
  readonly rpc: ChainRpc;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly proofs: ChainProofs;
}

export const CHAIN_INDEXES: Indexes = {
  [COLLECTIONS.chainTransactions]: [
    {
      key: { chain: 1, from: 1, nonce: 1 },
      unique: true,
      partialFilterExpression: { nonce: { $gte: 0 } },
      reader: "a nonce is assigned once; the keeper's missing transactions",
    },
    { key: { wallet: 1, nonce: 1 }, reader: "what recorded transactions still take out of a wallet" },
  ],
};

/**
 * The transactions of the service's key on one chain. Each is signed and recorded, journaled, before it may be sent.
 * Nonces come only from these records: entries are inserted one after another, so there is never a gap, however many
 * processes record and die. A recorded transaction will be sent, by this process or another's keeper. A record with an
 * invalid proof keeps its place, and is neither a transaction nor a refusal.
 */
export class ChainOutbox {
  /** Source of nonces; the reader of blocks reports the used ones. */
  readonly nonces: NextNonce;
  readonly #collection: Collection<ChainTransactionDocument>;
  readonly #fences: FenceWriter;
  readonly #dependencies: OutboxDependencies;
  readonly #chain: string;
  readonly #from: Address;
  readonly #signing: ChainSigning;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(dependencies: OutboxDependencies) {
    this.#dependencies = dependencies;
    // Majority reads: a record that only a failed primary had could later be signed differently, so no process may have
    // sent it.
    const options = { readConcern: { level: "majority" } } as const;
    this.#collection = dependencies.db.collection(COLLECTIONS.chainTransactions, options);
    this.#fences = new FenceWriter(dependencies.db.collection(COLLECTIONS.chainTransactions));
    this.#chain = caip2Of(dependencies.config.chainId);
    this.#from = dependencies.signer.address;
    this.#signing = new ChainSigning(dependencies);
    this.nonces = new NextNonce({
      collection: this.#collection,
      chain: this.#chain,
      from: this.#from,
      rpc: dependencies.rpc,
    });
  }

  /**
   * Records entries in order, each once: a purpose decided earlier, by any process, keeps that decision. Returns each
   * purpose's decision, and none for a fenced call. Calls take turns, so that the entries of one call get consecutive
   * nonces unless another process intervenes. `behind the first`: if another process has decided the first entry, the
   * others are not recorded.
   */
  record(
    entries: readonly Entry[],
    rule: "each" | "behind the first" = "each",
  ): Promise<ReadonlyMap<string, Recorded>> {
    const recording = this.#turn.then(() => this.#record(entries, rule));
    this.#turn = recording.catch(() => undefined);
    return recording;
  }

  /** Lays fences in the places of calls. Returns the purposes whose places were not empty. */
  async fence(places: readonly FencedPurpose[]): Promise<string[]> {
    const common = {
      chain: this.#chain,
      from: this.#from,
      wallet: null,
      createdAt: this.#dependencies.clock(),
    };
    const laid = await Promise.all(
      places.map(async ({ fence, purpose }) => {
        const document = { _id: this.#id(purpose), ...common, ...noTransaction(), refusal: null, fence };
        return (await this.#fences.lay(document)) ? [] : [purpose];
      }),
    );
    return laid.flat();
  }

  /** Whether a fence above the permit is in a call's place. */
  async isFenced({ permit = 0, purpose }: Call): Promise<boolean> {
    return (await this.#collection.findOne({ _id: this.#id(purpose), fence: { $gt: permit } })) !== null;
  }

  /**
   * Decides that an action is never done on a chain, possibly another than this process's. False if it was decided
   * otherwise earlier: a transaction was signed for it then, and only its own chain knows the outcome.
   */
  async refuseOn(chain: string, { purpose, refusal, wallet }: Refused): Promise<boolean> {
    const { clock, proofs } = this.#dependencies;
    const _id = `${chain}/${purpose}`;
    const own = { _id, chain, from: this.#from, wallet, createdAt: clock(), ...noTransaction(), refusal };
    const { _id: _same, ...document } = proofs.proven("chainTransaction", own);
    try {
      await this.#collection.replaceOne({ _id, fence: { $exists: true } }, document, { upsert: true });
      return true;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      const before = proofs.genuine("chainTransaction", await this.#collection.findOne({ _id }));
      return before !== null && before.refusal !== null;
    }
  }

  /** Returns the decisions under these purposes, if any. */
  async find(purposes: readonly string[]): Promise<ReadonlyMap<string, Recorded>> {
    if (purposes.length === 0) return new Map();
    const ids = purposes.map((purpose) => this.#id(purpose));
    const found = await this.#collection.find({ _id: { $in: ids }, ...DECIDED }).toArray();
    return new Map(found.map((document) => [this.#purposeOf(document), this.#recorded(document)]));
  }

  /** Returns the decisions under purposes with this prefix, such as a payment's attempts, in order. */
  async under(prefix: string): Promise<readonly Recorded[]> {
    const from = this.#id(prefix);
    const range = { _id: { $gte: from, $lt: `${from}\u{10ffff}` } };
    const found = await this.#collection.find({ ...range, ...DECIDED }).toArray();
    return found.map((document) => this.#recorded(document)).toSorted(byTrailingNumber);
  }

  /** Returns what is recorded from a nonce on, lowest first. */
  async from(nonce: number, limit: number): Promise<readonly Sendable[]> {
    const own = { chain: this.#chain, from: this.#from, nonce: { $gte: nonce } };
    const found = await this.#collection.find(own).sort({ nonce: 1 }).limit(limit).toArray();
    return found.map((document) => this.#recorded(document)).filter(isSendable);
  }

  /**
   * Signs the same call under the same nonce for a higher fee, and records the signing for good, after which it may be
   * sent. Null if another process was first, or if the transaction was found replaced meanwhile.
   */
  async raise(transaction: RecordedTransaction, fees: Fees): Promise<RecordedTransaction | null> {
    const signing = await this.#signing.again(transaction, fees);
    const { hash, raw } = signing;
    const all = [...transaction.signings, signing];
    const isRaised = await this.#change(transaction, (document) =>
      isAsRead(transaction, document) ? { raised: all.slice(1) } : null,
    );
    return isRaised ? { ...transaction, hash, raw, signings: all } : null;
  }

  /** Records once the transaction that has a nonce for good, unless more was signed than the proof covered. */
  async markReplaced(
    transaction: RecordedTransaction,
    replacement: Replacement,
  ): Promise<"marked" | "known before" | "not proven"> {
    const isMarked = await this.#change(transaction, (document) =>
      isAsRead(transaction, document) ? { replacedBy: replacement } : null,
    );
    if (isMarked) return "marked";
    const now = await this.#genuine(transaction);
    return now === null || now.replacedBy === null ? "not proven" : "known before";
  }

  /** Records a replaced transaction's call under another nonce: once, however often and wherever called. */
  async repeat(transaction: RecordedTransaction): Promise<Recorded> {
    const { amountCents, limitVersion, wallet } = transaction;
    const purpose = retryPurpose(transaction);
    const about = { wallet, amountCents, isRepeated: true };
    const version = limitVersion === null ? {} : { limitVersion };
    const call: Call = {
      kind: "call",
      purpose,
      ...(await this.#signing.callIn(transaction)),
      ...about,
      ...version,
    };
    const recorded = (await this.record([call])).get(purpose);
    if (recorded === undefined) throw new Error(`${purpose} was not recorded`);
    return recorded;
  }

  /** Returns the decision under a purpose, or its last repetition if it was replaced; null if there is none. */
  async newest(purpose: string): Promise<Recorded | null> {
    let found = (await this.find([purpose])).get(purpose) ?? null;
    while (found !== null && isTransaction(found) && found.replacedBy !== null) {
      const again = retryPurpose(found);
      const repeated = (await this.find([again])).get(again);
      if (repeated === undefined) return found;
      found = repeated;
    }
    return found;
  }

  /** Uses up a nonce without a record, since later transactions wait for it. Null if it is taken by now. */
  async recordNoop(nonce: number): Promise<Recorded | null> {
    const fees = await this.#dependencies.rpc.fees();
    const [document] = await this.#signing.documents([this.#signing.noopCall(nonce)], fees, nonce);
    if (document === undefined) return null;
    try {
      await this.#collection.insertOne(document);
      return this.#recorded(document);
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return null;
    }
  }

  /**
   * Returns the no-op to send under a replaced transaction's nonce if the chain has lost the other transaction, decided
   * once. The replaced call may have been sent under a later nonce or be over, so it is not sent.
   */
  async noopFor(transaction: RecordedTransaction): Promise<Signing> {
    const { nonce, purpose } = transaction;
    const noop = await this.#signing.noop(nonce, await this.#dependencies.rpc.fees());
    const isNew = await this.#change(transaction, (document) =>
      document.replacedBy !== null && document.noop === undefined ? { noop } : null,
    );
    if (isNew) return noop;
    const known = (await this.find([purpose])).get(purpose);
    if (known === undefined || !isTransaction(known) || known.noop === null)
      throw new Error(`${purpose} was not replaced`);
    return known.noop;
  }

  /** Returns, per wallet in cents, what transactions from a nonce on take out and bring in. */
  async movedBy(wallets: readonly string[], nonce: number): Promise<ReadonlyMap<string, Moved>> {
    const match = {
      wallet: { $in: [...wallets] },
      chain: this.#chain,
      from: this.#from,
      nonce: { $gte: nonce },
    };
    const sums = await this.#collection
      .aggregate<{ _id: string } & Moved>([
        { $match: match },
        {
          $group: {
            _id: "$wallet",
            debitCents: { $sum: { $max: [0, "$amountCents"] } },
            creditCents: { $sum: { $max: [0, { $multiply: [-1, "$amountCents"] }] } },
          },
        },
      ])
      .toArray();
    return new Map(sums.map(({ _id, ...moved }) => [_id, moved]));
  }

  async #record(
    requested: readonly Entry[],
    rule: "each" | "behind the first",
  ): Promise<ReadonlyMap<string, Recorded>> {
    const fees = requested.some(({ kind }) => kind === "call") ? await this.#dependencies.rpc.fees() : null;
    const entries = await Promise.all(requested.map((entry) => this.#withGas(entry)));
    const decided = new Map<string, Recorded>();
    const fences = new Map<string, number>();
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const open = entries.filter(
        (entry) => !decided.has(entry.purpose) && permitOf(entry) >= (fences.get(entry.purpose) ?? 0),
      );
      if (open.length === 0) return decided;
      const nonce = fees === null ? 0 : await this.nonces.next();
      const documents = await this.#signing.documents(open, fees, nonce);
      try {
        const writes = documents.map((document, at) => {
          const entry = open[at];
          const isFenced = entry !== undefined && fences.has(entry.purpose);
          return isFenced ? replacingFence(document, permitOf(entry)) : { insertOne: { document } };
        });
        await this.#collection.bulkWrite(writes, { ordered: true });
        this.nonces.given(documents);
        for (const document of documents) {
          const purpose = this.#purposeOf(document);
          decided.set(purpose, recordedOf(purpose, document));
        }
      } catch (error) {
        this.nonces.forget();
        if (!isDuplicateKey(error)) throw error;
        for (const document of await this.#inPlacesOf(open)) {
          const purpose = this.#purposeOf(document);
          if (document.fence === undefined) decided.set(purpose, this.#recorded(document));
          else fences.set(purpose, document.fence);
        }
        const [first] = open;
        const noneIsOurs = open.length === entries.length && recordedBefore(error) === 0;
        if (rule === "behind the first" && noneIsOurs && first !== undefined) {
          const recorded = decided.get(first.purpose);
          if (recorded !== undefined) return new Map([[first.purpose, recorded]]);
        }
        await sleep(Math.random() * AFTER_LOST_ROUND_MAX_MS);
      }
    }
    throw new Error("transactions could not be recorded: other processes always came first");
  }

  /** Adds gas to an entry. A payment has its own gas, from an earlier simulation. */
  async #withGas(entry: Entry): Promise<Entry> {
    if (entry.kind === "refusal" || entry.permit !== undefined) return entry;
    return { ...entry, gas: await this.#dependencies.rpc.gasFor(entry, this.#from) };
  }

  /** Returns the decisions and fences in the places of entries. */
  #inPlacesOf(entries: readonly Entry[]): Promise<ChainTransactionDocument[]> {
    const ids = entries.map(({ purpose }) => this.#id(purpose));
    return this.#collection.find({ _id: { $in: ids } }).toArray();
  }

  #id(purpose: string): string {
    return `${this.#chain}/${purpose}`;
  }

  #purposeOf({ _id }: ChainTransactionDocument): string {
    return _id.slice(this.#chain.length + 1);
  }

  #recorded(document: ChainTransactionDocument): Recorded {
    const purpose = this.#purposeOf(document);
    const genuine = this.#dependencies.proofs.genuine("chainTransaction", document);
    return genuine === null ? unprovenOf(purpose, document) : recordedOf(purpose, genuine);
  }

  /** Returns a transaction's record; null if it is gone or its proof is invalid. */
  async #genuine({ nonce, purpose }: RecordedTransaction): Promise<ChainTransactionDocument | null> {
    const found = await this.#collection.findOne({ _id: this.#id(purpose), nonce });
    return this.#dependencies.proofs.genuine("chainTransaction", found);
  }

  /** Changes a transaction's record with its proof. False if `changeOf` has no change, or another process was first. */
  async #change(
    transaction: RecordedTransaction,
    changeOf: (document: ChainTransactionDocument) => Partial<ChainTransactionDocument> | null,
  ): Promise<boolean> {
    const document = await this.#genuine(transaction);
    const change = document === null ? null : changeOf(document);
    if (document === null || change === null) return false;
    const { _id, proof } = document;
    const $set = this.#dependencies.proofs.changed("chainTransaction", document, change);
    return (await this.#collection.updateOne({ _id, proof }, { $set })).matchedCount > 0;
  }
}

/** Whether a transaction is neither signed again nor replaced since it was read. Signings are only ever added. */
const isAsRead = ({ signings }: RecordedTransaction, now: ChainTransactionDocument): boolean =>
  now.replacedBy === null && now.raised.length === signings.length - 1;

/** Matches decisions, not fences. */
const DECIDED = { fence: { $exists: false } } as const;

/** A refusal sends nothing, so no fence excludes it. */
const permitOf = (entry: Entry): number => (entry.kind === "refusal" ? Infinity : (entry.permit ?? 0));

/** Replaces a fence. Fails like an insert if a decision or a higher fence is in the place by now. */
function replacingFence(
  { _id, ...replacement }: ChainTransactionDocument,
  permit: number,
): AnyBulkWriteOperation<ChainTransactionDocument> {
  return { replaceOne: { filter: { _id, fence: { $lte: permit } }, replacement, upsert: true } };
}

const trailingNumber = ({ purpose }: Recorded): number => Number(/\d+$/.exec(purpose)?.[0] ?? 0);
const byTrailingNumber = (one: Recorded, other: Recorded): number =>
  trailingNumber(one) - trailingNumber(other);

/** Returns the number of documents inserted before the failing one. */
const recordedBefore = (error: unknown): number =>
  error instanceof MongoBulkWriteError ? error.insertedCount + error.matchedCount : 0;
