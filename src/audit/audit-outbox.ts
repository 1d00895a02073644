import { notRecent } from "../lib/stamps.ts";
import type { ClientSession, Collection, Db, Document, Filter } from "mongodb";
import { z } from "zod";
import type { AuditLog } from "./chain/appender.ts";
import { BulkWriter } from "../store/bulk-writer.ts";
import { canonicalJson } from "../domain/audit/canonical.ts";
import { type AuditRecord, type AuditSeal, isMac } from "../domain/audit/entry.ts";
import type { Indexes } from "../store/indexes.ts";

/** `committed`: written with its change. `begun`: before another system decides, so it may have been made. */
export type OutboxKind = "committed" | "begun";

/** A record to be appended to its organization's chain. Its id is the key of its entry, which is unique there. */
export interface AuditOutboxDocument extends Document {
  readonly _id: string;
  readonly kind: OutboxKind;
  readonly insertedAt: Date;
  /** The record in canonical form, so that exactly what was sealed is read. */
  readonly content: string;
  /** Prevents an intruder who can only write to the database from having an entry sealed. */
  readonly mac: string;
}

export const AUDIT_OUTBOX = "audit_outbox";

/**
 * Age of a committed record that its server has left behind: a live server appends its own entries well within this.
 */
const COMMITTED_OLD_MS = 15_000;
/** Minimum age of a begun record: no request with an actor takes longer. */
const BEGUN_OLD_MS = 60_000;
/** Maximum records per round of a sweep, and rounds per sweep. */
const ROUND_MAX = 500;
const ROUNDS_MAX = 200;
/** Time that appended records linger before their batched removal, which no response waits for. */
const LINGER_MS = 50;

export interface AuditOutboxOptions {
  readonly db: Db;
  readonly log: AuditLog;
  readonly seal: AuditSeal;
  readonly clock: () => Date;
  /** Reports records left for a later sweep, and records that this service did not write. */
  readonly onWarning: (message: string, error: unknown) => void;
}

export interface SweepResult {
  /** Entries that are now in their chains, appended by this sweep or another process. */
  readonly appended: number;
  /** Records that remain: they could not be appended, or are not this service's. */
  readonly left: number;
}

/**
 * Outbox between a write and its chain. The record is inserted in the write's own transaction; its server appends it
 * before the response and then removes it. A sweep on any server appends the records of servers that died. An entry's
 * key is unique in its chain, so sweeps may run concurrently.
 */
export class AuditOutbox {
  readonly #options: AuditOutboxOptions;
  readonly #records: Collection<AuditOutboxDocument>;
  readonly #removals: BulkWriter<AuditOutboxDocument>;
  readonly #removing = new Set<Promise<unknown>>();

  constructor(options: AuditOutboxOptions) {
    this.#options = options;
    // Reads from the primary whatever the connection says, so that committed records are seen.
    this.#records = options.db.collection(AUDIT_OUTBOX, { readPreference: "primary" });
    this.#removals = new BulkWriter(this.#records, { lingerMs: LINGER_MS });
  }

  /** Inserts a record in the transaction of the write that it describes. */
  async put(record: AuditRecord, session: ClientSession): Promise<void> {
    await this.#records.insertOne(this.#documentOf(record, "committed"), { session });
  }

  /** Inserts the record of something that is about to begin; resolves once it is durable. */
  async begin(record: AuditRecord): Promise<void> {
    await this.#records.insertOne(this.#documentOf(record, "begun"));
  }

  /** Whether the outbox holds a record, which tells whether a transaction with an unknown outcome was committed. */
  async holds({ entryKey }: AuditRecord): Promise<boolean> {
    return (await this.#records.findOne({ _id: entryKey }, { projection: { _id: 1 } })) !== null;
  }

  /** Appends a record to its chain; resolves once it is durable. If this throws, a sweep appends the record. */
  async settle(record: AuditRecord): Promise<void> {
    await this.#options.log.append(record);
    this.forget(record);
  }

  /** Removes, a little later, a record that needs no entry any more. If that fails, a sweep removes it. */
  forget({ entryKey }: AuditRecord): void {
    const removing = this.#removals
      .write({ deleteOne: { filter: { _id: entryKey } } })
      .catch((error: unknown) =>
        this.#options.onWarning("a record of the audit outbox was not removed", error),
      )
      .finally(() => this.#removing.delete(removing));
    this.#removing.add(removing);
  }

  /** Resolves once all appended records are removed. */
  async flush(): Promise<void> {
    this.#removals.flush();
    await Promise.all(this.#removing);
  }

  /**
   * Appends what servers that died have left, oldest first. `from: "start"` appends every committed record, even one
   * that another server is about to append itself, which then finds the entry there.
   */
  async sweep(from: "start" | "age" = "age"): Promise<SweepResult> {
    const now = this.#options.clock().getTime();
    const due: Filter<AuditOutboxDocument> = {
      $or: [
        { kind: "committed", insertedAt: notRecent(now, from === "start" ? 0 : COMMITTED_OLD_MS) },
        { kind: "begun", insertedAt: notRecent(now, BEGUN_OLD_MS) },
      ],
    };
    let appended = 0;
    let left = 0;
    let after: Filter<AuditOutboxDocument> = {};
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const found = await this.#records
        .find({ $and: [due, after] })
        .sort({ insertedAt: 1, _id: 1 })
        .limit(ROUND_MAX)
        .toArray();
      const done = await this.#appendAll(found);
      if (done.length > 0) await this.#records.deleteMany({ _id: { $in: done } });
      appended += done.length;
      left += found.length - done.length;
      const last = found.at(-1);
      if (last === undefined || found.length < ROUND_MAX) break;
      const { _id, insertedAt } = last;
      after = { $or: [{ insertedAt: { $gt: insertedAt } }, { insertedAt, _id: { $gt: _id } }] };
    }
    return { appended, left };
  }

  /** Appends all concurrently, so that each chain gets one ordered insert; returns the ids that are in chains. */
  async #appendAll(documents: readonly AuditOutboxDocument[]): Promise<string[]> {
    const done = await Promise.all(
      documents.map(async (document) => {
        try {
          await this.#options.log.append(this.#recordIn(document));
          return [document._id];
        } catch (error) {
          this.#options.onWarning("a record was left in the audit outbox", error);
          return [];
        }
      }),
    );
    return done.flat();
  }

  #documentOf(record: AuditRecord, kind: OutboxKind): AuditOutboxDocument {
    const content = canonicalJson(record);
    const insertedAt = this.#options.clock();
    const { seal } = this.#options;
    const unsealed = { _id: record.entryKey, kind, insertedAt, content };
    return { ...unsealed, mac: seal.mac(this.#hashOf(unsealed)) };
  }

  /** Hashes a form that differs from an entry's, so that the hash is useless in a chain. */
  #hashOf({ _id, content, insertedAt, kind }: Omit<AuditOutboxDocument, "mac">): string {
    const insertedIso = insertedAt.toISOString();
    return this.#options.seal.hash(canonicalJson({ auditOutbox: [_id, kind, insertedIso, content] }));
  }

  #isSealed(document: AuditOutboxDocument): boolean {
    const { insertedAt, mac } = document;
    return isMac(this.#options.seal, this.#hashOf(document), mac, insertedAt.toISOString());
  }

  #recordIn(document: AuditOutboxDocument): AuditRecord {
    const isOurs = isStored(document) && this.#isSealed(document);
    const record: unknown = isOurs ? JSON.parse(document.content) : null;
    if (!isRecord(record) || record.entryKey !== document._id) {
      throw new Error(`outbox record ${document._id} was not written by this service`);
    }
    return record;
  }
}

/** Indexes behind sweeps. Their creation also creates the collection. */
export const AUDIT_OUTBOX_INDEXES: Indexes = {
  [AUDIT_OUTBOX]: [
    { key: { insertedAt: 1, _id: 1 }, name: "oldest", reader: "entries to append, the oldest first" },
  ],
};

const stored = z.object({
  _id: z.string(),
  kind: z.enum(["committed", "begun"]),
  insertedAt: z.date(),
  content: z.string(),
  mac: z.string(),
});
const isStored = (document: unknown): boolean => stored.safeParse(document).success;

const text = z.string();
const textOrNull = text.nullable();
const recordContent = z.strictObject({
  organizationId: text,
  entryKey: text,
  at: z.number(),
  action: text,
  actor: z.strictObject({
    type: z.enum(["user", "organization_key", "agent", "system"]),
    id: text,
    keyId: text.optional(),
    lineageId: text.optional(),
    sessionId: text.optional(),
    name: text.optional(),
  }),
  resource: z.strictObject({ type: text, id: textOrNull }),
  from: z
    .strictObject({ address: textOrNull, surface: z.enum(["rest", "mcp", "admin", "service"]), via: text })
    .nullable(),
  result: z.strictObject({ status: z.number().nullable(), code: textOrNull }),
  before: z.json(),
  after: z.json(),
  decision: z.json(),
});
const isRecord = (value: unknown): value is AuditRecord => recordContent.safeParse(value).success;
