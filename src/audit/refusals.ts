import { createHash, randomBytes } from "node:crypto";
import type { AuditLog } from "./chain/appender.ts";
import { canonicalJson } from "../domain/audit/canonical.ts";
import { operations } from "../contract/registry.ts";
import type { AuditActor, AuditRecord } from "../domain/audit/entry.ts";

const MINUTE_MS = 60_000;

/**
 * Maximum counters of distinct refusals per organization, minute and group. Each group has its own, so that no number
 * of keys or strangers takes those of people who change roles or step up.
 */
const COUNTERS_MAX = 25;
/** Maximum counters of one actor within a group; its further refusals are counted by actor. */
const SHARE_MAX = 10;
/** Maximum actors per group and minute whose further refusals are counted separately; the rest share one count. */
const FURTHER_ACTORS_MAX = 10;
/** Maximum counters of all organizations. The oldest are evicted, and their counts written. */
const WINDOWS_MAX = 10_000;
/** Maximum counts waiting to be written. */
const UNWRITTEN_MAX = 10_000;

export interface RefusalsOptions {
  readonly log: AuditLog;
  readonly clock: () => Date;
  /** Reports a count that could not be written. It is retried, or dropped if too many are waiting. */
  readonly onWarning: (error: unknown) => void;
  readonly windowsMax?: number;
}

/** Groups of callers: unauthenticated; people changing accounts and rights; people doing anything else; keys. */
type Group = "strangers" | "accounts" | "people" | "keys";

interface Counter {
  readonly kind: string;
  readonly record: AuditRecord;
  /** Whether the counter records its first refusal at once; otherwise it only counts. */
  readonly isOwn: boolean;
  readonly quotas: readonly { readonly name: string; readonly max: number }[];
}

/** Refusals of one kind in one minute. */
interface Window {
  readonly minute: number;
  readonly counter: Counter;
  /** Resolves once the first refusal's entry is durable. */
  readonly first: Promise<void>;
  /** Number of refusals without an entry of their own. */
  count: number;
  lastAt: number;
}

/**
 * Records refusals in the audit log without letting a caller fill it. Of similar refusals (same actor, origin, action,
 * resource and reason) the first of a minute is recorded at once, and the number of further ones in one more entry
 * after the minute. All processes append the first under the same key, so that it is recorded once; each process has
 * its own count. A process that is killed loses its counts of the current minute, but never a first refusal.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  /** Oldest first. */
  readonly #windows = new Map<string, Window>();
  readonly #countersInUse = new Map<string, number>();
  readonly #process = randomBytes(6).toString("hex");
  #ended = 0;
  #unwritten: AuditRecord[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#windows.size;
  }

  /** Resolves once the refusal is in the log, or counted after one that is. Throws if that fails. */
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
      // The next refusal is a first one again.
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
    // A counter may be evicted and reopened within its minute; each use has its own count.
    const entryKey = `${record.entryKey}_${this.#process}_${this.#ended}`;
    const resource = { type: record.resource.type, id: idInKind(record) };
    this.#unwritten.push({ ...record, entryKey, at: lastAt, resource, after: { refusals: count } });
    if (this.#unwritten.length > UNWRITTEN_MAX) {
      this.#unwritten.shift();
      this.#options.onWarning(
        new Error("too many counts of refusals wait for the audit log; one was dropped"),
      );
    }
  }

  #endWhere(isOver: (window: Window) => boolean): void {
    for (const window of this.#windows.values()) if (isOver(window)) this.#end(window);
  }

  /** Writes the counts of past minutes. */
  async tick(): Promise<void> {
    const minute = Math.floor(this.#options.clock().getTime() / MINUTE_MS);
    this.#endWhere((window) => window.minute !== minute);
    await this.#write();
  }

  /** Writes every count, including those of the current minute. Counts that can't be written are lost. */
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

  /** Schedules a tick after the minute while anything is counted or waits to be written. */
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

/** Operations about who signs in and who may do what. */
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

/** Whether a caller tries an account without a session of it, and so is unauthenticated. */
const isStranger = ({ sessionId, type }: AuditActor): boolean => type === "user" && sessionId === undefined;

/** Returns what identifies a caller: for a stranger the address, since the account that was tried is only claimed. */
const sourceOf = ({ actor, from }: AuditRecord): readonly (string | null)[] =>
  isStranger(actor) ? ["address", from?.address ?? null] : [actor.type, actor.id];

/** Returns the id that is part of a kind. Unknown ids are made up by the caller, so they count as similar. */
const idInKind = ({ resource, result }: AuditRecord): string | null =>
  result.code === "NOT_FOUND" ? null : resource.id;

/** Returns the key that similar refusals share. */
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
  // Without the actor's session, key and address.
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

/** 128 bits, so that collisions can't be found. */
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
