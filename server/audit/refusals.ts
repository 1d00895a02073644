import { createHash, randomBytes } from "node:crypto";
import type { AuditLog } from "../../activities/audit/appender.ts";
import { canonicalJson } from "../../src/domain/audit/canonical.ts";
import type { AuditRecord } from "../../src/domain/audit/entry.ts";

const MINUTE_MS = 60_000;

/** Different refusals of one organization that have entries of their own in one minute; further ones are only counted. */
const KINDS_MAX = 100;
/** Kinds of refusals that are counted at once, of all organizations; the oldest give way, and their counts are written. */
const WINDOWS_MAX = 10_000;
/** Counts that could not be written yet. */
const UNWRITTEN_MAX = 10_000;

export interface RefusalsOptions {
  readonly log: AuditLog;
  readonly clock: () => Date;
  /** A count could not be written; it is tried again, or given up where too many are waiting. */
  readonly onTrouble: (error: unknown) => void;
  readonly kindsMax?: number;
  readonly windowsMax?: number;
}

/** One kind of refusal in one minute. */
interface Window {
  readonly minute: number;
  /** What its count is told with. */
  readonly record: AuditRecord;
  /** Done when the first one's entry is safe. */
  readonly first: Promise<void>;
  /** Those that have no entry of their own. */
  count: number;
  lastAt: number;
}

/**
 * Keeps refusals in the audit log so that nobody can fill it with them: of those that are alike (who, from where, what, on
 * what, why) the first of a minute at once, and how many followed in one more entry when the minute is over. All processes
 * tell the first under one key, so that it is there once; each has a count of its own. A process that is killed loses its
 * counts of the running minute, and never a first one.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  /** Oldest first. */
  readonly #windows = new Map<string, Window>();
  readonly #kinds = new Map<string, number>();
  readonly #process = randomBytes(6).toString("hex");
  #ended = 0;
  #unwritten: AuditRecord[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  /** Kinds of refusals that are being counted. */
  get size(): number {
    return this.#windows.size;
  }

  /** Done when it is in the log, or counted behind one that is. Throws when that can't be had. */
  async keep(record: AuditRecord): Promise<void> {
    const minute = Math.floor(record.at / MINUTE_MS);
    this.#endWhere((window) => window.minute !== minute);
    const own = kindOf(record);
    const { kindsMax = KINDS_MAX } = this.#options;
    const isFurther = !this.#windows.has(own) && (this.#kinds.get(record.organizationId) ?? 0) >= kindsMax;
    const kind = isFurther ? furtherOf(record) : own;
    const window = this.#windows.get(kind);
    if (window !== undefined) {
      window.count += 1;
      window.lastAt = record.at;
      return window.first;
    }
    if (isFurther) this.#open(kind, minute, furtherRecord(record, minute), Promise.resolve(), 1);
    else await this.#tellFirst(kind, minute, { ...record, entryKey: `refused_${kind}_${minute}` });
  }

  async #tellFirst(kind: string, minute: number, record: AuditRecord): Promise<void> {
    const first = this.#options.log.append(record);
    const window = this.#open(kind, minute, record, first, 0);
    try {
      await first;
    } catch (error) {
      // The next one is a first one again.
      if (this.#windows.get(kind) === window) this.#close(kind, window);
      throw error;
    }
  }

  #open(kind: string, minute: number, record: AuditRecord, first: Promise<void>, count: number): Window {
    const { windowsMax = WINDOWS_MAX } = this.#options;
    const [oldest] = this.#windows;
    if (this.#windows.size >= windowsMax && oldest !== undefined) this.#end(...oldest);
    const { at, organizationId } = record;
    const window: Window = { minute, record, first, count, lastAt: at };
    this.#windows.set(kind, window);
    this.#kinds.set(organizationId, (this.#kinds.get(organizationId) ?? 0) + 1);
    this.#arm();
    return window;
  }

  #close(kind: string, { record }: Window): void {
    this.#windows.delete(kind);
    const left = (this.#kinds.get(record.organizationId) ?? 1) - 1;
    if (left === 0) this.#kinds.delete(record.organizationId);
    else this.#kinds.set(record.organizationId, left);
  }

  #end(kind: string, window: Window): void {
    this.#close(kind, window);
    const { count, lastAt, record } = window;
    if (count === 0) return;
    this.#ended += 1;
    // A kind may give way and come again within its minute: each time has its count.
    const entryKey = `${record.entryKey}_${this.#process}_${this.#ended}`;
    this.#unwritten.push({ ...record, entryKey, at: lastAt, after: { refusals: count } });
    if (this.#unwritten.length > UNWRITTEN_MAX) {
      this.#unwritten.shift();
      this.#options.onTrouble(new Error("too many counts of refusals wait for the audit log: one is lost"));
    }
  }

  #endWhere(isOver: (window: Window) => boolean): void {
    for (const [kind, window] of this.#windows) if (isOver(window)) this.#end(kind, window);
  }

  /** Writes the counts of minutes that are over. */
  async tick(): Promise<void> {
    const minute = Math.floor(this.#options.clock().getTime() / MINUTE_MS);
    this.#endWhere((window) => window.minute !== minute);
    await this.#write();
  }

  /** Writes every count, also those of the running minute. What can't be written is lost. */
  async end(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#endWhere(() => true);
    await this.#write();
  }

  async #write(): Promise<void> {
    const records = this.#unwritten;
    this.#unwritten = [];
    const told = records.map(async (record) => {
      try {
        await this.#options.log.append(record, "soon");
      } catch (error) {
        this.#options.onTrouble(error);
        this.#unwritten.push(record);
      }
    });
    await Promise.all(told);
  }

  /** Looks again when the minute is over, as long as anything is counted or waits to be written. */
  #arm(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = null;
        void this.tick().finally(() => {
          if (this.#windows.size > 0 || this.#unwritten.length > 0) this.#arm();
        });
      },
      MINUTE_MS - (this.#options.clock().getTime() % MINUTE_MS),
    ).unref();
  }
}

/** What two refusals have in common that are alike. */
const kindOf = ({ action, actor, from, organizationId, resource, result }: AuditRecord): string =>
  digestOf([organizationId, actor.type, actor.id, actor.keyId ?? null, from, action, resource, result]);

const furtherOf = ({ organizationId }: AuditRecord): string => digestOf([organizationId]);

const digestOf = (parts: readonly unknown[]): string =>
  createHash("sha256").update(canonicalJson(parts)).digest("hex").slice(0, DIGEST_CHARACTERS);

/** 128 bits: nobody finds two refusals with one. */
const DIGEST_CHARACTERS = 32;

/** What is told of refusals of more kinds than have entries of their own: how many, of the organization as a whole. */
const furtherRecord = ({ at, organizationId }: AuditRecord, minute: number): AuditRecord => ({
  organizationId,
  entryKey: `refused_further_${minute}`,
  at,
  action: "furtherRefusals",
  actor: { type: "system", id: "refusals" },
  resource: { type: "organization", id: organizationId },
  from: null,
  result: { status: null, code: null },
  before: null,
  after: null,
  decision: null,
});
