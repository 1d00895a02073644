import { setTimeout as sleep } from "node:timers/promises";
import { type Collection, type Db, type Document, MongoBulkWriteError, MongoServerError } from "mongodb";
import { type Address, type Hash, type Hex, keccak256 } from "viem";
import { COLLECTIONS } from "../documents.ts";
import type { Clock } from "../ports.ts";
import { caip2Of, type ChainPlace, type Fees, type Signer } from "./config.ts";
import type { ChainRpc } from "./rpc.ts";

/**
 * One thing that was to be done on a chain, decided once: by a signed transaction, or by a refusal in its place. It
 * never changes. Whether a transaction was mined is not kept: the chain says so, as of now.
 */
export interface ChainTransactionDocument extends Document {
  /** `eip155:1/spend/txn_…/1`: the purpose is unique, so what is decided once is decided for everybody. */
  _id: string;
  chain: string;
  from: string;
  /** Null for a refusal. Unique with `chain` and `from`: no nonce is ever signed for two things. */
  nonce: number | null;
  hash: string | null;
  raw: string | null;
  /** The wallet that it spends from or changes. */
  wallet: string | null;
  /** What it takes out of the wallet, in cents; below zero: what it brings. */
  amountCents: number;
  /** Of a limit that it sets: the version of the policy that it mirrors; 0: raised for one payment. */
  limitVersion: number | null;
  refusal: { code: "INSUFFICIENT_FUNDS" | "RAIL_UNAVAILABLE" | "WITHHELD"; reason: string } | null;
  createdAt: Date;
}

interface Purposed {
  /** Unique on the chain, for good. */
  readonly purpose: string;
  readonly wallet: Address | null;
}

/** A call to be signed, recorded and sent. */
export interface Call extends Purposed {
  readonly kind: "call";
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly amountCents?: number;
  readonly limitVersion?: number;
}

/** The decision that something is never done. */
export interface Refused extends Purposed {
  readonly kind: "refusal";
  readonly refusal: NonNullable<ChainTransactionDocument["refusal"]>;
}

export type Entry = Call | Refused;

/** A decision as it stands. */
export type Recorded =
  | {
      readonly kind: "transaction";
      readonly purpose: string;
      readonly nonce: number;
      readonly hash: Hash;
      readonly raw: Hex;
      readonly limitVersion: number | null;
      readonly amountCents: number;
      readonly wallet: string | null;
      readonly createdAt: Date;
    }
  | {
      readonly kind: "refusal";
      readonly purpose: string;
      readonly refusal: NonNullable<ChainTransactionDocument["refusal"]>;
    };

export type RecordedTransaction = Extract<Recorded, { kind: "transaction" }>;

export interface Moved {
  readonly takenCents: number;
  readonly broughtCents: number;
}

/** What a refusal has none of. */
const NO_TRANSACTION = { nonce: null, hash: null, raw: null, amountCents: 0, limitVersion: null } as const;

const DUPLICATE_KEY = 11_000;
/** Rounds against other processes that record at the same time; in each of them one gets its entries in. */
const ROUNDS_MAX = 200;
/** Who has lost a round waits so long at the most before the next, at random: so nobody loses all of them. */
const AFTER_LOST_ROUND_MAX_MS = 20;

export interface OutboxDependencies {
  readonly db: Db;
  readonly place: ChainPlace;
  readonly rpc: ChainRpc;
  readonly signer: Signer;
  readonly clock: Clock;
}

/**
 * The transactions of the service's key on one chain. Each is signed and recorded, journaled, before it may be sent, and
 * nonces are given out by that record alone: entries go in one after another, so there is never a gap, whatever number of
 * processes record and die. What is recorded will be sent, by this process or another one's keeper.
 */
export class ChainOutbox {
  readonly #collection: Collection<ChainTransactionDocument>;
  readonly #dependencies: OutboxDependencies;
  readonly #chain: string;
  readonly #from: Address;
  /** The next nonce as this process knows it; null: to be looked up. Wrong ones are refused by the unique index. */
  #next: number | null = null;
  #usedUpAtFirst: Promise<number> | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(dependencies: OutboxDependencies) {
    this.#dependencies = dependencies;
    // What a fallen primary alone had recorded may be signed otherwise after it; nobody may have read it and sent it.
    const options = { readConcern: { level: "majority" } } as const;
    this.#collection = dependencies.db.collection(COLLECTIONS.chainTransactions, options);
    this.#chain = caip2Of(dependencies.place.chainId);
    this.#from = dependencies.signer.address;
  }

  static async ensureIndexes(db: Db): Promise<void> {
    const numbered = { nonce: { $gte: 0 } } as const;
    await db
      .collection(COLLECTIONS.chainTransactions)
      .createIndexes([
        { key: { chain: 1, from: 1, nonce: 1 }, unique: true, partialFilterExpression: numbered },
        { key: { wallet: 1, nonce: 1 } },
      ]);
  }

  /**
   * Records entries in their order, each once: one whose purpose was decided before, by anybody, keeps that decision.
   * Answers each purpose's decision. In turns, so that entries of one call get nonces that follow each other, unless
   * another process comes between. `behind the first`: if somebody else has decided the first one, the others are left.
   */
  record(
    entries: readonly Entry[],
    rule: "each" | "behind the first" = "each",
  ): Promise<ReadonlyMap<string, Recorded>> {
    const recording = this.#turn.then(() => this.#record(entries, rule));
    this.#turn = recording.catch(() => undefined);
    return recording;
  }

  /**
   * Decides that something is never done on a chain that may be another than this process's. False if it was decided
   * otherwise before: then a transaction was signed for it, and what became of that only its own chain says.
   */
  async refuseOn(chain: string, { purpose, refusal, wallet }: Refused): Promise<boolean> {
    const common = { chain, from: this.#from, wallet, createdAt: this.#dependencies.clock() };
    const _id = `${chain}/${purpose}`;
    try {
      await this.#collection.insertOne({ _id, ...common, ...NO_TRANSACTION, refusal });
      return true;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      const before = await this.#collection.findOne({ _id });
      return before !== null && before.refusal !== null;
    }
  }

  /** The decisions under these purposes, as far as there are any. */
  async find(purposes: readonly string[]): Promise<ReadonlyMap<string, Recorded>> {
    const ids = purposes.map((purpose) => this.#id(purpose));
    const found = await this.#collection.find({ _id: { $in: ids } }).toArray();
    return new Map(found.map((document) => [this.#purposeOf(document), this.#recorded(document)]));
  }

  /** The decisions whose purposes begin so, such as a payment's attempts, in their order. */
  async under(prefix: string): Promise<readonly Recorded[]> {
    const from = this.#id(prefix);
    const found = await this.#collection.find({ _id: { $gte: from, $lt: `${from}\u{10ffff}` } }).toArray();
    return found.map((document) => this.#recorded(document)).toSorted(byTrailingNumber);
  }

  /** Transactions from a nonce on, lowest first. */
  async from(nonce: number, limit: number): Promise<readonly RecordedTransaction[]> {
    const own = { chain: this.#chain, from: this.#from, nonce: { $gte: nonce } };
    const found = await this.#collection.find(own).sort({ nonce: 1 }).limit(limit).toArray();
    return found.map((document) => this.#recorded(document)).filter(isTransaction);
  }

  /** What transactions from a nonce on take out of each of these wallets, and bring to it, in cents. */
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
            takenCents: { $sum: { $max: [0, "$amountCents"] } },
            broughtCents: { $sum: { $max: [0, { $multiply: [-1, "$amountCents"] }] } },
          },
        },
      ])
      .toArray();
    return new Map(sums.map(({ _id, ...moved }) => [_id, moved]));
  }

  async #record(
    entries: readonly Entry[],
    rule: "each" | "behind the first",
  ): Promise<ReadonlyMap<string, Recorded>> {
    const fees = entries.some(({ kind }) => kind === "call") ? await this.#dependencies.rpc.fees() : null;
    const decided = new Map<string, Recorded>();
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const open = entries.filter(({ purpose }) => !decided.has(purpose));
      if (open.length === 0) return decided;
      const documents = await this.#sign(open, fees);
      try {
        await this.#collection.insertMany(documents, { ordered: true });
        this.#advance(documents);
        for (const document of documents) decided.set(this.#purposeOf(document), this.#recorded(document));
      } catch (error) {
        this.#next = null;
        if (!isDuplicate(error)) throw error;
        for (const [purpose, recorded] of await this.find(open.map(purposeOf))) {
          decided.set(purpose, recorded);
        }
        const [first] = open;
        const noneIsOurs = open.length === entries.length && insertedBefore(error) === 0;
        if (rule === "behind the first" && noneIsOurs && first !== undefined) {
          const recorded = decided.get(first.purpose);
          if (recorded !== undefined) return new Map([[first.purpose, recorded]]);
        }
        await sleep(Math.random() * AFTER_LOST_ROUND_MAX_MS);
      }
    }
    throw new Error("transactions could not be recorded against other processes");
  }

  async #sign(entries: readonly Entry[], fees: Fees | null): Promise<ChainTransactionDocument[]> {
    const { clock, place, signer } = this.#dependencies;
    const createdAt = clock();
    const common = { chain: this.#chain, from: this.#from, createdAt };
    const documents: ChainTransactionDocument[] = [];
    let nonce = fees === null ? 0 : await this.#nextNonce();
    for (const entry of entries) {
      const own = { ...common, _id: this.#id(entry.purpose), wallet: entry.wallet };
      if (entry.kind === "refusal") {
        documents.push({ ...own, ...NO_TRANSACTION, refusal: entry.refusal });
        continue;
      }
      if (fees === null) throw new Error("a call is signed without fees");
      const { amountCents = 0, data, gas, limitVersion = null, to } = entry;
      const raw = await signer.sign({ chainId: place.chainId, nonce, to, data, gas, ...fees });
      documents.push({ ...own, nonce, hash: keccak256(raw), raw, amountCents, limitVersion, refusal: null });
      nonce += 1;
    }
    return documents;
  }

  /**
   * One more than the highest that is recorded; but never one that the chain had used up when this process first asked it,
   * as it has where the records are of an earlier time (a restored backup).
   */
  async #nextNonce(): Promise<number> {
    if (this.#next !== null) return this.#next;
    const own = { chain: this.#chain, from: this.#from, nonce: { $gte: 0 } };
    const [last] = await this.#collection.find(own).sort({ nonce: -1 }).limit(1).toArray();
    return Math.max((last?.nonce ?? -1) + 1, await this.#usedUp());
  }

  #usedUp(): Promise<number> {
    this.#usedUpAtFirst ??= this.#askForNonce().catch((error: unknown) => {
      this.#usedUpAtFirst = null;
      throw error;
    });
    return this.#usedUpAtFirst;
  }

  async #askForNonce(): Promise<number> {
    const { rpc } = this.#dependencies;
    // Another chain's number would leave a gap for good.
    await rpc.check();
    return rpc.nonceAt(this.#from, "latest");
  }

  #advance(documents: readonly ChainTransactionDocument[]): void {
    const nonces = documents.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]));
    if (nonces.length > 0) this.#next = Math.max(...nonces) + 1;
  }

  #id(purpose: string): string {
    return `${this.#chain}/${purpose}`;
  }

  #purposeOf({ _id }: ChainTransactionDocument): string {
    return _id.slice(this.#chain.length + 1);
  }

  #recorded(document: ChainTransactionDocument): Recorded {
    const purpose = this.#purposeOf(document);
    const { amountCents, createdAt, hash, limitVersion, nonce, raw, refusal, wallet } = document;
    if (refusal !== null) return { kind: "refusal", purpose, refusal };
    if (nonce === null || !isHex(hash) || !isHex(raw)) throw new Error(`${document._id} is no transaction`);
    return { kind: "transaction", purpose, nonce, hash, raw, limitVersion, amountCents, wallet, createdAt };
  }
}

const purposeOf = ({ purpose }: Entry): string => purpose;

const isHex = (text: string | null): text is Hex => text !== null && /^0x[0-9a-f]*$/.test(text);

export const isTransaction = (recorded: Recorded): recorded is RecordedTransaction =>
  recorded.kind === "transaction";

const trailingNumber = ({ purpose }: Recorded): number => Number(/\d+$/.exec(purpose)?.[0] ?? 0);
const byTrailingNumber = (one: Recorded, other: Recorded): number =>
  trailingNumber(one) - trailingNumber(other);

/** How many of the documents went in before the one that did not. */
const insertedBefore = (error: unknown): number =>
  error instanceof MongoBulkWriteError ? error.insertedCount : 0;

const isDuplicate = (error: unknown): boolean =>
  (error instanceof MongoBulkWriteError || error instanceof MongoServerError) && error.code === DUPLICATE_KEY;
