import { createHash, randomBytes } from "node:crypto";
import type { AuditLog } from "./chain/appender.ts";
import { canonicalJson } from "../domain/audit/canonical.ts";
import { operations } from "../contract/registry.ts";
import type { AuditActor, AuditRecord } from "../domain/audit/entry.ts";

const MINUTE_MS = 60_000;

/**
 * Counters of distinct refusals of one organization in one minute, for each group. A group's counters are reserved for it: no
 * number of keys, nor strangers, takes those of people who change roles or step up.
 */
const COUNTERS_MAX = 25;
/** The share of one actor in a group's counters; its refusals beyond that are counted by actor. */
const SHARE_MAX = 10;
/** Actors of each group whose further refusals are counted apart in one minute; those of others are one count. */
const FURTHER_ACTORS_MAX = 10;
/** Kinds of refusals that are counted at once, of all organizations; the oldest give way, and their counts are written. */
const WINDOWS_MAX = 10_000;
/** Counts that could not be written yet. */
const UNWRITTEN_MAX = 10_000;

export interface RefusalsOptions {
  readonly log: AuditLog;
  readonly clock: () => Date;
  /** A count could not be written; it is tried again, or given up where too many are waiting. */
  readonly onWarning: (error: unknown) => void;
  readonly windowsMax?: number;
}

/** Groups of callers: anonymous, people about accounts and rights, people about all else, keys. */
type Group = "strangers" | "accounts" | "people" | "keys";

/** A counter of refusals. */
interface Counter {
  readonly kind: string;
  /** Entry to append. */
  readonly record: AuditRecord;
  /** Whether it records one refusal at once; else it only counts. */
  readonly isOwn: boolean;
  /** Quotas of counters in a minute. */
  readonly quotas: readonly { readonly name: string; readonly max: number }[];
}

/** Refusals of one kind in one minute. */
interface Window {
  readonly minute: number;
  readonly counter: Counter;
  /** Done when the first one's entry is safe. */
  readonly first: Promise<void>;
  /** Number of refusals without an entry of their own. */
  count: number;
  lastAt: number;
}

/**
 * Keeps refusals in the audit log so that no caller can fill it with them: of those that are alike (who, from where, what, on what,
 * why) the first of a minute at once, and how many followed in one more entry when the minute is over. All processes append the
 * first under one key, so that it is there once; each has a count of its own. A process that is killed loses its counts of the
 * running minute, and never a first one.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  /** Oldest first. */
  readonly #windows = new Map<string, Window>();
  /** Counters in use, by quota. */
  readonly #countersInUse = new Map<string, number>();
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

  /** Done when it is in the log, or counted behind one that is. Throws when that fails. */
  async record(record: AuditRecord): Promise<void> {
    const minute = Math.floor(record.at / MINUTE_MS);
    this.#endWhere((window) => window.minute !== minute);
    const counter = this.#counterFor(record, minute);
    const window = this.#windows.get(counter.kind);
    if (window !== undefined) {
      window.count += 1;
      window.lastAt = record.at;
      return window.first;
    }
    if (counter.isOwn) await this.#recordFirst(counter, minute);
    else this.#open(counter, minute, Promise.resolve(), 1);
  }

  /** Returns the kind's counter, else its actor's, else the common one. */
  #counterFor(record: AuditRecord, minute: number): Counter {
    const isFree = ({ quotas }: Counter): boolean =>
      quotas.every(({ max, name }) => (this.#countersInUse.get(name) ?? 0) < max);
    const preferred = [ownCounter(record, minute), counterOfActor(record, minute)];
    const found = preferred.find((counter) => this.#windows.has(counter.kind) || isFree(counter));
    return found ?? counterOfAll(record, minute);
  }

  async #recordFirst(counter: Counter, minute: number): Promise<void> {
    const first = this.#options.log.append(counter.record);
    const window = this.#open(counter, minute, first, 0);
    try {
      await first;
    } catch (error) {
      // The next one is a first one again.
      if (this.#windows.get(counter.kind) === window) this.#close(window);
      throw error;
    }
  }

  #open(counter: Counter, minute: number, first: Promise<void>, count: number): Window {
    const { windowsMax = WINDOWS_MAX } = this.#options;
    const [oldest] = this.#windows.values();
    if (this.#windows.size >= windowsMax && oldest !== undefined) this.#end(oldest);
    const window: Window = { minute, counter, first, count, lastAt: counter.record.at };
    this.#windows.set(counter.kind, window);
    for (const { name } of counter.quotas)
      this.#countersInUse.set(name, (this.#countersInUse.get(name) ?? 0) + 1);
    this.#arm();
    return window;
  }

  #close({ counter }: Window): void {
    this.#windows.delete(counter.kind);
    for (const { name } of counter.quotas) {
      const left = (this.#countersInUse.get(name) ?? 1) - 1;
      if (left === 0) this.#countersInUse.delete(name);
      else this.#countersInUse.set(name, left);
    }
  }

  #end(window: Window): void {
    this.#close(window);
    const { count, lastAt, counter } = window;
    const { record } = counter;
    if (count === 0) return;
    this.#ended += 1;
    // A counter may be evicted and opened again within its minute: each has its own count.
    const entryKey = `${record.entryKey}_${this.#process}_${this.#ended}`;
    const resource = { type: record.resource.type, id: idInKind(record) };
    this.#unwritten.push({ ...record, entryKey, at: lastAt, resource, after: { refusals: count } });
    if (this.#unwritten.length > UNWRITTEN_MAX) {
      this.#unwritten.shift();
      this.#options.onWarning(new Error("too many counts of refusals wait for the audit log: one is lost"));
    }
  }

  #endWhere(isOver: (window: Window) => boolean): void {
    for (const window of this.#windows.values()) if (isOver(window)) this.#end(window);
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
    const appended = records.map(async (record) => {
      try {
        await this.#options.log.append(record, "soon");
      } catch (error) {
        this.#options.onWarning(error);
        this.#unwritten.push(record);
      }
    });
    await Promise.all(appended);
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

/** Operations about who signs in, and who may do what. */
const ACCOUNT_TAGS: ReadonlySet<string> = new Set([
  "Authentication",
  "Members",
  "Organization",
  "Organization keys",
]);
const ACCOUNT_ACTIONS: ReadonlySet<string> = new Set(
  Object.entries(operations).flatMap(([id, { tag }]) => (ACCOUNT_TAGS.has(tag) ? [id] : [])),
);

function groupOf({ action, actor }: AuditRecord): Group {
  if (actor.type !== "user") return "keys";
  if (isStranger(actor)) return "strangers";
  return ACCOUNT_ACTIONS.has(action) ? "accounts" : "people";
}

/** A caller that tries an account without a session of it: unauthenticated. */
const isStranger = ({ sessionId, type }: AuditActor): boolean => type === "user" && sessionId === undefined;

/** A stranger is an address; the account that was tried is only what they say. */
const sourceOf = ({ actor, from }: AuditRecord): readonly (string | null)[] =>
  isStranger(actor) ? ["address", from?.address ?? null] : [actor.type, actor.id];

/**
 * Returns the id that is part of a kind. An id that was not found was made up by the caller, so those count as alike.
 */
const idInKind = ({ resource, result }: AuditRecord): string | null =>
  result.code === "NOT_FOUND" ? null : resource.id;

/** Returns the key of refusals that are alike. */
function kindOf(record: AuditRecord): string {
  const { action, actor, from, organizationId, resource, result } = record;
  const on = { type: resource.type, id: idInKind(record) };
  return digestOf([organizationId, actor.type, actor.id, actor.keyId ?? null, from, action, on, result]);
}

function ownCounter(record: AuditRecord, minute: number): Counter {
  const kind = kindOf(record);
  const group = `${record.organizationId}/${groupOf(record)}`;
  return {
    kind,
    record: { ...record, entryKey: `refused_${kind}_${minute}` },
    isOwn: true,
    quotas: [
      { name: group, max: COUNTERS_MAX },
      { name: `${group}/${digestOf(sourceOf(record))}`, max: SHARE_MAX },
    ],
  };
}

function counterOfActor(record: AuditRecord, minute: number): Counter {
  const { actor, from, organizationId } = record;
  const kind = digestOf([organizationId, "further", ...sourceOf(record)]);
  const { id, lineageId, name, type } = actor;
  // Regardless of the actor's session, key and address.
  const known: AuditActor = {
    type,
    id,
    ...(lineageId === undefined ? {} : { lineageId }),
    ...(name === undefined ? {} : { name }),
  };
  const stranger = { address: from?.address ?? null, surface: "service", via: "refusals" } as const;
  const source = isStranger(actor) ? { from: stranger } : { actor: known };
  return {
    kind,
    record: { ...furtherRecord(record, `${kind}_${minute}`), ...source },
    isOwn: false,
    quotas: [{ name: `${organizationId}/${groupOf(record)}/further`, max: FURTHER_ACTORS_MAX }],
  };
}

const counterOfAll = (record: AuditRecord, minute: number): Counter => ({
  kind: digestOf([record.organizationId]),
  record: furtherRecord(record, String(minute)),
  isOwn: false,
  quotas: [],
});

const digestOf = (parts: readonly unknown[]): string =>
  createHash("sha256").update(canonicalJson(parts)).digest("hex").slice(0, DIGEST_CHARACTERS);

/** 128 bits: collisions can't be found. */
const DIGEST_CHARACTERS = 32;

/** Returns the entry that counts refusals of further kinds. */
const furtherRecord = ({ at, organizationId }: AuditRecord, key: string): AuditRecord => ({
  organizationId,
  entryKey: `refused_further_${key}`,
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
