import { isDuplicateKey } from "../../lib/duplicate-key.ts";
import type { Unavailable } from "../../lib/unavailable.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { type Collection, type Db, MongoBulkWriteError } from "mongodb";
import { type AuditHead, type AuditRecord, type AuditSeal, linkAll } from "../../domain/audit/entry.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import {
  type AuditDocument,
  auditDocument,
  auditLogOf,
  ENTRY_KEY_INDEX,
  headOf,
  isGenuine,
} from "../../store/audit-documents.ts";

/** The audit log can't accept an entry now. The operation may have been executed; the append can be repeated. */
export class AuditLogUnavailable extends Error implements Unavailable {
  override readonly name = "AuditLogUnavailable";
  readonly isUnavailable = true;
}

export interface AuditLog {
  /**
   * Appends a record to its organization's chain, at most once per `entryKey`; resolves once it is in the journals of a
   * majority. `soon` allows a short wait for a larger batch. Throws otherwise; the same record may then be appended
   * again.
   */
  append(record: AuditRecord, when?: "now" | "soon"): Promise<void>;
}

/** Maximum entries per insert, and waiting calls per chain. */
const BATCH_MAX = 500;
const WAITING_MAX = 5_000;
/**
 * Maximum delay of entries that are not urgent, and the number of entries that ends it early. An insert costs as much
 * as a dozen entries, but a payment stays open in its ledger until its entry is appended.
 */
const LINGER_MS = 250;
const LINGERING_MAX = 25;
/** Maximum rounds against other processes that append to the same chain; one process wins each round. */
const ROUNDS_MAX = 200;
/** Maximum jitter after losing a race, so that no process loses every race. */
const AFTER_LOST_ROUND_MAX_MS = 20;
/** Timeout of a batch; waiting calls have been answered by then. */
const BATCH_MS = 10_000;
/** Maximum chains with a cached head; others cost a read. */
const CACHED_HEADS_MAX = 10_000;
/** Entries known to be appended: a payment's are published again with each of its changes, mostly within minutes. */
const KNOWN_ENTRIES = { max: 10_000, ttl: 600_000 };

/** A caller that waits until all of its records are in the chain. */
interface Waiting {
  /** Creates the records when they are appended, to save memory while waiting. */
  readonly records: () => readonly AuditRecord[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A record to append, and the caller that waits for it. */
interface Open {
  readonly record: AuditRecord;
  readonly waiter: Waiting;
}

interface Chain {
  readonly organizationId: string;
  waiting: Waiting[];
  /** Whether a waiting caller does not want to wait for a larger batch. */
  isUrgent: boolean;
  /** Null if it has to be read. Only a guess: the unique index on places refuses an insert behind a wrong head. */
  head: AuditHead | null;
  /** Whether other processes append too, so that the head is read before each insert, not after a refusal. */
  isShared: boolean;
  timer: NodeJS.Timeout | null;
  running: Promise<void> | null;
}

/**
 * Appends to the chains from any number of processes concurrently, without locks. Waiting entries are linked in memory
 * to the last known head and inserted in one ordered batch. Each entry's id is its unique position in the chain. On a
 * conflict the appender reads the chain's head and links the remaining entries again. An ordered insert stops at its
 * first refusal, so the entries before it extend the chain without a gap or a fork, wherever a process dies.
 */
export class AuditAppender implements AuditLog {
  readonly #log: Collection<AuditDocument>;
  readonly #seal: AuditSeal;
  readonly #lingerMs: number;
  readonly #chains = new Map<string, Chain>();
  readonly #known = new LRUCache<string, true>(KNOWN_ENTRIES);

  constructor(db: Db, seal: AuditSeal, { lingerMs = LINGER_MS }: { readonly lingerMs?: number } = {}) {
    this.#log = auditLogOf(db);
    this.#seal = seal;
    this.#lingerMs = lingerMs;
  }

  get waiting(): number {
    let waiting = 0;
    for (const chain of this.#chains.values()) waiting += chain.waiting.length;
    return waiting;
  }

  append(record: AuditRecord, when: "now" | "soon" = "now"): Promise<void> {
    return this.appendAll(record.organizationId, () => [record], when);
  }

  /**
   * Appends like `append`, for entries of one organization that are created when their turn comes, the same each time.
   */
  appendAll(
    organizationId: string,
    records: () => readonly AuditRecord[],
    when: "now" | "soon",
  ): Promise<void> {
    const chain = this.#chainOf(organizationId);
    if (chain.waiting.length >= WAITING_MAX) {
      return Promise.reject(new AuditLogUnavailable("too many entries wait for the audit log"));
    }
    return new Promise((resolve, reject) => {
      chain.waiting.push({ records, resolve, reject });
      if (when === "now") chain.isUrgent = true;
      this.#schedule(chain);
    });
  }

  /** Appends everything that waits now; resolves once none of it waits. */
  async flush(): Promise<void> {
    await Promise.all([...this.#chains.values()].map((chain) => this.#flushChain(chain)));
  }

  async #flushChain(chain: Chain): Promise<void> {
    const last = chain.waiting.at(-1);
    const waits = () => last !== undefined && chain.waiting.includes(last);
    while (waits()) {
      chain.isUrgent = true;
      this.#schedule(chain);
      await chain.running;
    }
    await chain.running;
  }

  #chainOf(organizationId: string): Chain {
    const known = this.#chains.get(organizationId);
    if (known !== undefined) return known;
    this.#evictIdle();
    const chain: Chain = {
      organizationId,
      waiting: [],
      isUrgent: false,
      head: null,
      isShared: false,
      timer: null,
      running: null,
    };
    this.#chains.set(organizationId, chain);
    return chain;
  }

  #evictIdle(): void {
    if (this.#chains.size < CACHED_HEADS_MAX) return;
    for (const [id, { running, waiting }] of this.#chains) {
      if (running === null && waiting.length === 0) return void this.#chains.delete(id);
    }
  }

  #schedule(chain: Chain): void {
    if (chain.running !== null || chain.waiting.length === 0) return;
    if (chain.isUrgent || chain.waiting.length >= LINGERING_MAX) this.#run(chain);
    else chain.timer ??= setTimeout(() => this.#run(chain), this.#lingerMs);
  }

  #run(chain: Chain): void {
    if (chain.timer !== null) clearTimeout(chain.timer);
    chain.timer = null;
    const batch = chain.waiting.splice(0, BATCH_MAX);
    if (chain.waiting.length === 0) chain.isUrgent = false;
    // Never rejects: it settles every caller.
    chain.running = this.#insert(chain, batch).finally(() => {
      chain.running = null;
      this.#schedule(chain);
    });
  }

  async #insert(chain: Chain, batch: readonly Waiting[]): Promise<void> {
    try {
      await withTimeout(BATCH_MS, this.#append(chain, batch));
    } catch (error) {
      chain.head = null;
      for (const { reject } of batch) reject(error);
    }
  }

  async #append(chain: Chain, batch: readonly Waiting[]): Promise<void> {
    let open = withoutThose(batch.flatMap(recordsOf), ({ record }) => this.#known.has(keyOf(record)));
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      if (open.length === 0) return;
      const head = await this.#headOf(chain);
      const records = open.map(({ record }) => record);
      const entries = linkAll(records, head, this.#seal);
      try {
        await this.#log.insertMany(entries.map(auditDocument), { ordered: true });
        chain.head = entries.at(-1) ?? head;
        for (const record of records) this.#known.set(keyOf(record), true);
        for (const { waiter } of open) waiter.resolve();
        return;
      } catch (error) {
        chain.head = null;
        if (!isDuplicate(error)) throw error;
        const inserted = insertedBeforeRepeat(error);
        // Entries before a repeated one extend the chain; otherwise another process has taken the place.
        if (inserted === null) chain.isShared = true;
        else chain.head = entries[inserted - 1] ?? head;
        open = await this.#withoutThoseThere(chain.organizationId, open);
        if (inserted === null) await sleep(Math.random() * AFTER_LOST_ROUND_MAX_MS);
      }
    }
    throw new AuditLogUnavailable("the append kept losing to other processes");
  }

  async #headOf(chain: Chain): Promise<AuditHead> {
    const { head: own, isShared, organizationId } = chain;
    if (own !== null && !isShared) return own;
    const head = await headOf(this.#log, organizationId);
    if (own?.sequence === head.sequence) chain.isShared = false;
    return head;
  }

  /**
   * Removes entries that are already in the chain, inserted by this batch's first part or by another process. Only a
   * genuine entry in its place counts: keys are predictable, and an intruder with write access to the database could
   * keep an entry out of the log with a document under its key. The caller then gets an error and appends again.
   */
  async #withoutThoseThere(organizationId: string, open: readonly Open[]): Promise<Open[]> {
    const entryKey = { $in: open.map(({ record }) => record.entryKey) };
    const there = await this.#log.find({ organizationId, entryKey }).toArray();
    const genuine = new Map(
      there.map((entry) => [entry.entryKey, isGenuine(entry, organizationId, this.#seal)]),
    );
    for (const { record, waiter } of open) {
      if (genuine.get(record.entryKey) !== false) continue;
      waiter.reject(
        new AuditLogUnavailable(`the document under ${record.entryKey} is not an entry of this service`),
      );
    }
    return withoutThose(open, ({ record }) => genuine.has(record.entryKey));
  }
}

const keyOf = ({ entryKey, organizationId }: AuditRecord): string => `${organizationId} ${entryKey}`;

/** Returns the records that are left, after resolving callers of whose records none is left. */
function withoutThose(open: readonly Open[], isDone: (each: Open) => boolean): Open[] {
  const left = open.filter((each) => !isDone(each));
  const waiters = new Set(left.map(({ waiter }) => waiter));
  for (const { waiter } of open) if (!waiters.has(waiter)) waiter.resolve();
  return left;
}

/** Returns the number of entries inserted before one whose key the chain has; null if it was a place that was taken. */
const insertedBeforeRepeat = (error: unknown): number | null =>
  error instanceof MongoBulkWriteError && error.message.includes(ENTRY_KEY_INDEX)
    ? error.insertedCount
    : null;

/** Returns a caller's records to append. Invalid ones are rejected for that caller only. */
function recordsOf(waiter: Waiting): Open[] {
  try {
    const records = waiter.records();
    if (records.length === 0) waiter.resolve();
    return records.map((record) => ({ record, waiter }));
  } catch (error) {
    waiter.reject(error);
    return [];
  }
}

/** Whether the only error is a taken place or entry key. An unmet write concern does not count as one. */
function isDuplicate(error: unknown): boolean {
  if (!isDuplicateKey(error)) return false;
  return !(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError() === undefined;
}
