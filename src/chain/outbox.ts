import { setTimeout as sleep } from "node:timers/promises";
import { type Collection, type Db, MongoBulkWriteError, MongoServerError } from "mongodb";
import { type Address, keccak256 } from "viem";
import { COLLECTIONS } from "../store/documents.ts";
import type { Clock } from "../payments/ports.ts";
import { caip2Of, type ChainConfig, type Fees, type Signer } from "./config.ts";
import { GAS } from "./contracts.ts";
import {
  type Call,
  type ChainTransactionDocument,
  type Entry,
  isTransaction,
  type Replacement,
  noTransaction,
  retryPurpose,
  type Recorded,
  recordedOf,
  type RecordedTransaction,
  type Signing,
  type Refused,
} from "./recorded.ts";
import type { ChainRpc } from "./rpc.ts";
import { signedCallIn } from "./signed-call.ts";

export {
  type Call,
  type ChainTransactionDocument,
  type Entry,
  isTransaction,
  type Recorded,
  type RecordedTransaction,
  type Refused,
} from "./recorded.ts";

export interface Moved {
  readonly debitCents: number;
  readonly creditCents: number;
}

const DUPLICATE_KEY = 11_000;
/** Rounds against other processes that record at the same time; in each of them one gets its entries in. */
const ROUNDS_MAX = 200;
/** Who has lost a round waits so long at the most before the next, at random: so no process loses all of them. */
const AFTER_LOST_ROUND_MAX_MS = 20;

export interface OutboxDependencies {
  readonly db: Db;
  readonly config: ChainConfig;
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
  /** Every nonce below is in final blocks, ours or not. */
  #finalBelow = 0;
  #lowestSinceRead = Infinity;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(dependencies: OutboxDependencies) {
    this.#dependencies = dependencies;
    // What a fallen primary alone had recorded may be signed otherwise after it; no process may have read it and sent it.
    const options = { readConcern: { level: "majority" } } as const;
    this.#collection = dependencies.db.collection(COLLECTIONS.chainTransactions, options);
    this.#chain = caip2Of(dependencies.config.chainId);
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
   * Records entries in their order, each once: one whose purpose was decided before, by any process, keeps that decision.
   * Answers each purpose's decision, and none for what is not wanted any more. In turns, so that entries of one call get nonces
   * that follow each other, unless another process comes between. `behind the first`: if another process has decided the first one, the others are left.
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
      await this.#collection.insertOne({ _id, ...common, ...noTransaction(), refusal });
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

  /**
   * Signs the same call under the same nonce for a higher fee, and remembers that for good: only then may it be sent. Null
   * where another process was first, or where it was found replaced meanwhile.
   */
  async raise(transaction: RecordedTransaction, fees: Fees): Promise<RecordedTransaction | null> {
    const { clock, config, signer } = this.#dependencies;
    const { nonce, purpose, signings } = transaction;
    const raw = await signer.sign({
      chainId: config.chainId,
      nonce,
      ...(await this.#callIn(transaction)),
      ...fees,
    });
    const hash = keccak256(raw);
    const at = clock();
    const asRead = {
      _id: this.#id(purpose),
      nonce,
      replacedBy: null,
      raised: { $size: signings.length - 1 },
    };
    const all = [...signings, { hash, raw, at }];
    // Signings are only ever added, so as many as were read are those that were read.
    const { matchedCount } = await this.#collection.updateOne(asRead, { $set: { raised: all.slice(1) } });
    return matchedCount === 0 ? null : { ...transaction, hash, raw, signings: all };
  }

  /** Records what has a transaction's nonce for good, once. Nothing is proven where more was signed under the nonce than the proof knew of. */
  async markReplaced(
    { nonce, purpose, signings }: RecordedTransaction,
    replacement: Replacement,
  ): Promise<"marked" | "known before" | "not proven"> {
    const _id = this.#id(purpose);
    const asRead = { _id, nonce, replacedBy: null, raised: { $size: signings.length - 1 } };
    const { matchedCount } = await this.#collection.updateOne(asRead, { $set: { replacedBy: replacement } });
    if (matchedCount > 0) return "marked";
    const now = await this.#collection.findOne({ _id, nonce });
    return now === null || now.replacedBy === null ? "not proven" : "known before";
  }

  /** Records the call of a replaced transaction under another nonce: once, by whichever process and however often. */
  async repeat(transaction: RecordedTransaction): Promise<Recorded> {
    const { amountCents, limitVersion, wallet } = transaction;
    const purpose = retryPurpose(transaction);
    const about = { wallet, amountCents, isRepeated: true };
    const version = limitVersion === null ? {} : { limitVersion };
    const call: Call = { kind: "call", purpose, ...(await this.#callIn(transaction)), ...about, ...version };
    const recorded = (await this.record([call])).get(purpose);
    if (recorded === undefined) throw new Error(`${purpose} was not recorded`);
    return recorded;
  }

  /** The decision under a purpose, as it was repeated last where it was replaced; null: there is none. */
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

  /**
   * Takes a nonce under which nothing is recorded for a transaction that does nothing, since all behind it wait for it. Null
   * where it is taken by now.
   */
  async recordNoop(nonce: number): Promise<Recorded | null> {
    const purpose = `noop/${String(nonce)}`;
    const call: Call = { kind: "call", purpose, wallet: null, to: this.#from, data: "0x", gas: GAS.nothing };
    const [document] = await this.#sign([call], await this.#dependencies.rpc.fees(), nonce);
    if (document === undefined) return null;
    try {
      await this.#collection.insertOne(document);
      return this.#recorded(document);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return null;
    }
  }

  /**
   * What is sent under a replaced transaction's nonce where the chain has lost the other one again: a transaction that does nothing,
   * decided once. The replaced call may have been sent again under a later nonce since, or be over without it, so it is not sent itself any more.
   */
  async noopFor({ nonce, purpose }: RecordedTransaction): Promise<Signing> {
    const { clock, config, rpc, signer } = this.#dependencies;
    const call = { chainId: config.chainId, nonce, to: this.#from, data: "0x", gas: GAS.nothing } as const;
    const raw = await signer.sign({ ...call, ...(await rpc.fees()) });
    const noop = { hash: keccak256(raw), raw, at: clock() };
    const _id = this.#id(purpose);
    const isReplaced = { _id, nonce, replacedBy: { $ne: null }, noop: { $exists: false } };
    const { matchedCount } = await this.#collection.updateOne(isReplaced, { $set: { noop } });
    if (matchedCount > 0) return noop;
    const known = (await this.find([purpose])).get(purpose);
    if (known === undefined || !isTransaction(known) || known.noop === null)
      throw new Error(`${purpose} was not replaced`);
    return known.noop;
  }

  /** The lowest nonce that this process has recorded anything under since the last call; Infinity: none. */
  lowestSinceRead(): number {
    const lowest = this.#lowestSinceRead;
    this.#lowestSinceRead = Infinity;
    return lowest;
  }

  /** Below this nonce all are in final blocks, whichever sender used them: none of those is given out. */
  isFinalBelow(nonce: number): void {
    this.#finalBelow = nonce;
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
            debitCents: { $sum: { $max: [0, "$amountCents"] } },
            creditCents: { $sum: { $max: [0, { $multiply: [-1, "$amountCents"] }] } },
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
    let candidates = entries;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      // Calls to the chain come before the last check whether each entry may still be signed.
      if (fees !== null) await this.#nextNonce();
      candidates = await signable(candidates.filter(({ purpose }) => !decided.has(purpose)));
      const open = candidates;
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

  #callIn(transaction: RecordedTransaction): Promise<Pick<Call, "to" | "data" | "gas">> {
    return signedCallIn(transaction, { from: this.#from, chainId: this.#dependencies.config.chainId });
  }

  async #sign(
    entries: readonly Entry[],
    fees: Fees | null,
    at?: number,
  ): Promise<ChainTransactionDocument[]> {
    const { clock, config, signer } = this.#dependencies;
    const createdAt = clock();
    const common = { chain: this.#chain, from: this.#from, createdAt };
    const documents: ChainTransactionDocument[] = [];
    let nonce = at ?? (fees === null ? 0 : await this.#nextNonce());
    for (const entry of entries) {
      const own = { ...common, _id: this.#id(entry.purpose), wallet: entry.wallet };
      if (entry.kind === "refusal") {
        documents.push({ ...own, ...noTransaction(), refusal: entry.refusal });
        continue;
      }
      if (fees === null) throw new Error("a call is signed without fees");
      const { amountCents = 0, data, gas, isRepeated = false, limitVersion = null, to } = entry;
      const raw = await signer.sign({ chainId: config.chainId, nonce, to, data, gas, ...fees });
      const about = { amountCents, limitVersion, isRepeated, refusal: null };
      documents.push({ ...own, ...noTransaction(), ...about, nonce, hash: keccak256(raw), raw });
      nonce += 1;
    }
    return documents;
  }

  /**
   * One more than the highest that is recorded; but never one that the chain had used when this process first queried it, as it
   * has where the records are of an earlier time (a restored backup), nor one that is known to be used in a final block, as it is
   * where a foreign sender uses the same key.
   */
  async #nextNonce(): Promise<number> {
    this.#next ??= await this.#findNext();
    return Math.max(this.#next, this.#finalBelow);
  }

  async #findNext(): Promise<number> {
    const own = { chain: this.#chain, from: this.#from, nonce: { $gte: 0 } };
    const [last] = await this.#collection.find(own).sort({ nonce: -1 }).limit(1).toArray();
    return Math.max((last?.nonce ?? -1) + 1, await this.#usedUp());
  }

  #usedUp(): Promise<number> {
    this.#usedUpAtFirst ??= this.#readNonce().catch((error: unknown) => {
      this.#usedUpAtFirst = null;
      throw error;
    });
    return this.#usedUpAtFirst;
  }

  async #readNonce(): Promise<number> {
    const { rpc } = this.#dependencies;
    // Another chain's number would leave a gap for good.
    await rpc.check();
    return rpc.nonceAt(this.#from, "latest");
  }

  #advance(documents: readonly ChainTransactionDocument[]): void {
    const nonces = documents.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]));
    if (nonces.length === 0) return;
    this.#next = Math.max(...nonces) + 1;
    this.#lowestSinceRead = Math.min(this.#lowestSinceRead, ...nonces);
  }

  #id(purpose: string): string {
    return `${this.#chain}/${purpose}`;
  }

  #purposeOf({ _id }: ChainTransactionDocument): string {
    return _id.slice(this.#chain.length + 1);
  }

  #recorded(document: ChainTransactionDocument): Recorded {
    return recordedOf(this.#purposeOf(document), document);
  }
}

const purposeOf = ({ purpose }: Entry): string => purpose;

async function signable(entries: readonly Entry[]): Promise<readonly Entry[]> {
  const are = await Promise.all(
    entries.map(async (entry) => entry.kind === "refusal" || (await entry.mayBeSigned?.()) !== false),
  );
  return entries.filter((_entry, at) => are[at]);
}

const trailingNumber = ({ purpose }: Recorded): number => Number(/\d+$/.exec(purpose)?.[0] ?? 0);
const byTrailingNumber = (one: Recorded, other: Recorded): number =>
  trailingNumber(one) - trailingNumber(other);

/** How many of the documents went in before the one that did not. */
const insertedBefore = (error: unknown): number =>
  error instanceof MongoBulkWriteError ? error.insertedCount : 0;

const isDuplicate = (error: unknown): boolean =>
  (error instanceof MongoBulkWriteError || error instanceof MongoServerError) && error.code === DUPLICATE_KEY;
