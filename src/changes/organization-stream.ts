import pLimit from "p-limit";
import type { ChangeKind } from "../contract/stream.ts";
import type { Change } from "./feed.ts";
import { eventText } from "./events.ts";
import { throttleOf } from "./kinds.ts";
import { before, type Position } from "./position.ts";
import type { Binding } from "../domain/binding.ts";
import type { EventData } from "./records.ts";

export interface Subscriber {
  readonly kinds: ReadonlySet<ChangeKind>;
  send(text: Buffer): void;
}

export interface OrganizationStreamDependencies {
  readonly organizationId: string;
  /** The part of the organization that the subscribers may see. */
  readonly binding: Binding;
  readonly dataOf: EventData;
  /** Returns the position up to which changes were read. */
  readonly position: () => Position;
  readonly onError: (error: unknown) => void;
}

/** Pending changes of a kind and their due time: each id with the position of its first change. */
interface Pending {
  readonly ids: Map<string, Position>;
  readonly dueAtMs: number;
}

/** Time within which due changes are coalesced. */
const COALESCE_MS = 20;
/** Maximum pending ids per kind; far more than one event names. */
const PENDING_MAX = 1_000;
/** Delay before records are read again after a failure. */
const AGAIN_AFTER_MS = 1_000;

/**
 * Events for the subscribers who may see the same part of an organization. Changes are coalesced and throttled by kind,
 * and read and serialized once for all subscribers. Events, and the positions in their ids, are in one order.
 */
export class OrganizationStream {
  readonly #dependencies: OrganizationStreamDependencies;
  readonly #subscribers = new Set<Subscriber>();
  readonly #sentAtMs = new Map<ChangeKind, number>();
  #pending = new Map<ChangeKind, Pending>();
  /** First position of the changes that are being sent. */
  #inFlight: Position | null = null;
  #timer: NodeJS.Timeout | null = null;
  readonly #serial = pLimit(1);

  constructor(dependencies: OrganizationStreamDependencies) {
    this.#dependencies = dependencies;
  }

  has(follower: Subscriber): boolean {
    return this.#subscribers.has(follower);
  }

  /** Position up to which everything was sent. */
  get sentUpTo(): Position {
    const firsts = [...this.#pending.values()].flatMap(({ ids }) => ids.values().next().value ?? []);
    if (this.#inFlight !== null) firsts.push(this.#inFlight);
    const [first] = firsts.toSorted();
    return first === undefined ? this.#dependencies.position() : before(first);
  }

  follow(follower: Subscriber): void {
    this.#subscribers.add(follower);
  }

  leave(follower: Subscriber): void {
    this.#subscribers.delete(follower);
  }

  /** Sends one subscriber the changes it missed and then subscribes it, with no event in between. */
  async resume(follower: Subscriber, missed: () => readonly Change[] | null): Promise<void> {
    await this.#serially(async () => {
      const changes = missed();
      const text = changes === null ? eventText("reset", {}) : await this.#textOfAll(changes, follower.kinds);
      const ready = eventText("ready", { resumed: changes !== null }, this.sentUpTo);
      this.follow(follower);
      follower.send(Buffer.from(text + ready));
    });
  }

  /** Tells subscribers that the events sent so far are incomplete. */
  reset(): void {
    this.#pending.clear();
    const text = Buffer.from(eventText("reset", {}, this.#dependencies.position()));
    for (const follower of this.#subscribers) follower.send(text);
  }

  add({ id, isMinor, kind, position }: Change): void {
    const known = this.#pending.get(kind);
    const ids = known?.ids ?? new Map<string, Position>();
    if (!ids.has(id)) ids.set(id, position);
    if (ids.size > PENDING_MAX) forgetSecond(ids);
    const dueAtMs = Math.max(
      performance.now(),
      (this.#sentAtMs.get(kind) ?? -Infinity) + throttleOf(kind, isMinor).everyMs,
    );
    this.#pending.set(kind, { ids, dueAtMs: Math.min(known?.dueAtMs ?? Infinity, dueAtMs) });
    this.#schedule();
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#pending.clear();
    this.#subscribers.clear();
  }

  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const next = Math.min(...[...this.#pending.values()].map(({ dueAtMs }) => dueAtMs));
    if (next === Infinity) return;
    const afterMs = Math.max(0, next - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#serially(() => this.#flush());
    }, afterMs).unref();
  }

  #serially(work: () => Promise<void>): Promise<void> {
    return this.#serial(work).catch(this.#dependencies.onError);
  }

  async #flush(): Promise<void> {
    const now = performance.now();
    const due = [...this.#pending].filter(([, { dueAtMs }]) => dueAtMs <= now + COALESCE_MS);
    if (due.length === 0) return this.#schedule();
    for (const [kind] of due) this.#pending.delete(kind);
    const [first = null] = due.flatMap(([, { ids }]) => ids.values().next().value ?? []).toSorted();
    this.#inFlight = first;
    try {
      const texts = await Promise.all(due.map(([kind, { ids }]) => this.#textOf(kind, [...ids.keys()])));
      this.#inFlight = null;
      const sentAt = performance.now();
      for (const [kind] of due) this.#sentAtMs.set(kind, sentAt);
      this.#sendAll(due.map(([kind], index) => [kind, texts[index] ?? ""] as const));
    } catch (error) {
      this.#requeue(due);
      this.#dependencies.onError(error);
    } finally {
      this.#inFlight = null;
      this.#schedule();
    }
  }

  #requeue(due: readonly (readonly [ChangeKind, Pending])[]): void {
    for (const [kind, { ids }] of due) {
      const later = this.#pending.get(kind)?.ids ?? new Map<string, Position>();
      const merged = new Map([...later, ...ids].toSorted(([, a], [, b]) => (a < b ? -1 : 1)));
      this.#pending.set(kind, { ids: merged, dueAtMs: performance.now() + AGAIN_AFTER_MS });
    }
  }

  /**
   * Sends each subscriber its kinds. Subscribers with the same kinds get the same bytes. The id is on the last event.
   */
  #sendAll(events: readonly (readonly [ChangeKind, string])[]): void {
    const id = this.sentUpTo;
    const made = new Map<string, Buffer | null>();
    for (const follower of this.#subscribers) {
      const own = events.filter(([kind, text]) => text !== "" && follower.kinds.has(kind));
      const key = own.map(([kind]) => kind).join();
      const text =
        made.get(key) ?? (own.length === 0 ? null : withId(own.map(([, each]) => each).join(""), id));
      made.set(key, text);
      if (text !== null) follower.send(text);
    }
  }

  async #textOfAll(changes: readonly Change[], kinds: ReadonlySet<ChangeKind>): Promise<string> {
    const byKind = new Map<ChangeKind, string[]>();
    for (const { id, kind } of changes) byKind.set(kind, [...(byKind.get(kind) ?? []), id]);
    const texts = [...byKind].map(([kind, ids]) => this.#textOf(kind, ids, kinds.has(kind)));
    return (await Promise.all(texts)).join("");
  }

  /**
   * Returns an event with up to the maximum number of ids, the newest ones. Empty if no subscriber wants the kind or
   * may see any of it.
   */
  async #textOf(kind: ChangeKind, ids: readonly string[], isWanted = this.#wants(kind)): Promise<string> {
    if (!isWanted) return "";
    const { binding, dataOf, organizationId } = this.#dependencies;
    const { atOnce } = throttleOf(kind, false);
    const more = ids.length > atOnce;
    const data = await dataOf({ organizationId, binding }, kind, ids.slice(-atOnce), more);
    return data === null ? "" : eventText(kind, data);
  }

  #wants(kind: ChangeKind): boolean {
    return [...this.#subscribers].some(({ kinds }) => kinds.has(kind));
  }
}

/**
 * Removes the second id. The first holds the position up to which everything was sent; the last are the ids that the
 * event names.
 */
function forgetSecond(ids: Map<string, Position>): void {
  const keys = ids.keys();
  keys.next();
  const second = keys.next().value;
  if (second !== undefined) ids.delete(second);
}

/** Puts the id into the last event, so that a client that has not read that far resumes before all of them. */
function withId(text: string, id: Position): Buffer {
  const at = text.lastIndexOf("\ndata: ");
  return Buffer.from(`${text.slice(0, at + 1)}id: ${id}\n${text.slice(at + 1)}`);
}
