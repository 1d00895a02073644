import { setTimeout as sleep } from "node:timers/promises";
import { type ChangeStream, type Collection, type Db, type Document, MongoError, Timestamp } from "mongodb";
import { AUDIT_LOG } from "../store/audit-documents.ts";
import { type AgentDocument, COLLECTIONS } from "../store/documents.ts";
import type { EventType } from "../domain/events.ts";
import { LABELS } from "../domain/agent/labels.ts";
import type { ChangeKind } from "../contract/stream.ts";
import { kindsPublishedBy, PUBLISHED_ACTIONS } from "./kinds.ts";
import { endOf, type Position, positionAt } from "./position.ts";

/** A change and its position in the order of all changes. */
export interface Change {
  readonly position: Position;
  readonly organizationId: string;
  readonly kind: ChangeKind;
  readonly id: string;
  /** Whether a change of an agent concerns only its totals. */
  readonly isMinor: boolean;
}

export interface FeedListener {
  /** Called when delivery begins: every change after `at` is delivered. */
  begun(at: Position): void;
  changed(changes: readonly Change[]): void;
  peopleChanged(sessionIds: ReadonlySet<string>, userIds: ReadonlySet<string>): void;
  /** Called after a gap in reading. Changes of records still follow, unless `begun` names a later start. */
  interrupted(): void;
}

/** Time before its opening from which a feed also reads, so that streams of another process can resume here. */
const LOOKBACK_SECONDS = 30;
/** Time within which changes are combined into one response of MongoDB; requested at once, each would cost a read. */
const GATHERED_MS = 50;
/** Delay before a broken feed is opened again. */
const REOPENED_AFTER_MS = 500;
/** Maximum agents whose organization is cached. */
const AGENTS_KNOWN_MAX = 20_000;

const SESSIONS = "sessions";
const USERS = "users";
const WRITTEN = { $in: ["insert", "replace", "update"] };
const CHANGED = { $in: ["replace", "update", "delete"] };

const of = (collection: string, ...more: readonly Document[]): Document =>
  Object.assign({ "ns.coll": collection }, ...more) as Document;

/**
 * Pipeline that MongoDB applies to its log: unpublished changes never leave MongoDB, and published ones only with the
 * fields that identify their owner.
 */
const PIPELINE: Document[] = [
  {
    $match: {
      $or: [
        of(COLLECTIONS.transactions, { operationType: { $in: ["insert", "replace"] } }),
        of(COLLECTIONS.approvals, { operationType: { $in: ["insert", "replace"] } }),
        of(COLLECTIONS.raiseRequests, { operationType: { $in: ["insert", "replace"] } }),
        of(COLLECTIONS.agents, { operationType: WRITTEN }),
        of(COLLECTIONS.events, {
          operationType: "insert",
          "fullDocument.type": "budget.threshold_reached" satisfies EventType,
        }),
        of(SESSIONS, {
          operationType: CHANGED,
          $or: [
            { operationType: { $ne: "update" } },
            { "updateDescription.updatedFields.revokedAt": { $exists: true } },
          ],
        }),
        of(USERS, { operationType: CHANGED }),
        of(AUDIT_LOG, {
          operationType: "insert",
          "fullDocument.action": { $in: PUBLISHED_ACTIONS },
          "fullDocument.result.code": null,
        }),
      ],
    },
  },
  {
    $project: {
      operationType: 1,
      clusterTime: 1,
      documentKey: 1,
      "ns.coll": 1,
      "fullDocument.organizationId": 1,
      "fullDocument.action": 1,
      "fullDocument.resource.id": 1,
      ...Object.fromEntries(
        ["lifecycle", "policyVersion", "name", ...LABELS, "key", "walletDetached"].map((field) => [
          `updateDescription.updatedFields.${field}`,
          1,
        ]),
      ),
    },
  },
];

interface Read extends Document {
  readonly _id: unknown;
  readonly operationType: string;
  readonly clusterTime: Timestamp;
  readonly documentKey: { readonly _id: string };
  readonly ns: { readonly coll: string };
  readonly fullDocument?: {
    readonly organizationId?: string;
    readonly action?: string;
    readonly resource?: { readonly id: string | null };
  };
  readonly updateDescription?: { readonly updatedFields?: Readonly<Record<string, unknown>> };
}

class Signal {
  #fire: (() => void) | null = null;
  readonly fired = new Promise<void>((resolve) => (this.#fire = resolve));
  isFired = false;

  fire(): void {
    this.isFired = true;
    this.#fire?.();
  }
}

/** MongoDB ended the stream, as when its database is dropped. The stream can't be resumed; a new one begins. */
class StreamClosed extends Error {
  constructor() {
    super("MongoDB ended the stream of changes");
  }
}

/** Whether MongoDB's log no longer contains the position. */
const isHistoryLost = (error: unknown): boolean =>
  error instanceof MongoError &&
  (error.code === 286 || error.code === 280 || error.hasErrorLabel("NonResumableChangeStreamError"));

/**
 * Reads changes, in the order in which they occurred in any process, for all streams of this process. Uses one MongoDB
 * change stream, open only while any stream needs it.
 */
export class ChangeFeed {
  readonly #db: Db;
  readonly #agents: Collection<AgentDocument>;
  readonly #listener: FeedListener;
  readonly #onError: (error: unknown) => void;
  readonly #organizationOf = new Map<string, string>();
  #stream: ChangeStream<Document, Read> | null = null;
  #opening: Promise<void> | null = null;
  #position: Position = "";
  /** Position of the database when the feed was opened. */
  #openedAt: Position = "";
  #caughtUp = new Signal();
  /** MongoDB's resume token after the last delivered change; null if none was delivered. */
  #token: unknown = null;
  #lastTime: Timestamp | null = null;
  #ofThatTime = 0;
  #isClosed = true;

  constructor(db: Db, listener: FeedListener, onError: (error: unknown) => void) {
    this.#db = db;
    this.#agents = db.collection(COLLECTIONS.agents);
    this.#listener = listener;
    this.#onError = onError;
  }

  /** Position up to which everything was delivered, or had happened before the first subscription. */
  get position(): Position {
    return this.#position > this.#openedAt ? this.#position : this.#openedAt;
  }

  /** Position at which the feed was opened; earlier changes are delivered only to earlier subscribers. */
  get openedAt(): Position {
    return this.#openedAt;
  }

  /** Resolves once everything that happens from now on will be delivered. */
  async open(): Promise<void> {
    this.#isClosed = false;
    if (this.#stream !== null) return;
    this.#opening ??= this.#begin(LOOKBACK_SECONDS).finally(() => (this.#opening = null));
    await this.#opening;
  }

  /** Resolves once everything that had happened at the feed's opening was delivered. */
  caughtUp(): Promise<void> {
    return this.#caughtUp.fired;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const stream = this.#stream;
    this.#stream = null;
    this.#caughtUp.fire();
    await stream?.close().catch(this.#onError);
  }

  async #begin(lookbackSeconds: number): Promise<void> {
    const { operationTime } = await this.#db.command({ ping: 1 });
    if (!(operationTime instanceof Timestamp)) throw new Error("MongoDB does not say what time it is");
    if (this.#isClosed) return;
    const from = new Timestamp({ t: operationTime.t - lookbackSeconds, i: operationTime.i });
    if (this.#caughtUp.isFired) this.#caughtUp = new Signal();
    this.#token = null;
    this.#openedAt = endOf(operationTime);
    this.#position = endOf(from);
    this.#lastTime = null;
    this.#listener.begun(this.#position);
    this.#follow(this.#db.watch<Document, Read>(PIPELINE, { startAtOperationTime: from }), lookbackSeconds);
  }

  #follow(stream: ChangeStream<Document, Read>, lookbackSeconds: number): void {
    this.#stream = stream;
    void this.#read(stream).catch((error: unknown) => {
      // Closed on purpose, since no stream needs it any more.
      if (this.#stream !== stream) return;
      this.#stream = null;
      const isLost = error instanceof StreamClosed || isHistoryLost(error);
      // A young database has no history for the lookback, which is no error.
      if (lookbackSeconds === 0 || !isHistoryLost(error)) this.#onError(error);
      stream.close().catch(() => undefined);
      this.#opening ??= this.#reopen(isLost).finally(() => (this.#opening = null));
    });
  }

  /** Reopens after the last delivered change if MongoDB still has it, otherwise from now. Subscribers wait. */
  async #reopen(isLost: boolean): Promise<void> {
    for (;;) {
      await sleep(REOPENED_AFTER_MS, undefined, { ref: false });
      if (this.#isClosed) return;
      try {
        if (isLost || this.#token === null) await this.#begin(0);
        else this.#follow(this.#db.watch<Document, Read>(PIPELINE, { resumeAfter: this.#token }), 0);
        return this.#listener.interrupted();
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  async #read(stream: ChangeStream<Document, Read>): Promise<never> {
    for (;;) {
      const first = await stream.tryNext();
      // A closed stream returns null at once, without I/O: polling it in a loop would block the event loop.
      if (stream.closed) throw new StreamClosed();
      if (first === null) {
        this.#token = stream.resumeToken ?? null;
        this.#caughtUp.fire();
        continue;
      }
      const read = [first];
      while (stream.bufferedCount() > 0) {
        const next = await stream.tryNext();
        if (next === null) break;
        read.push(next);
      }
      await this.#publish(read);
      if (this.#stream !== stream) throw new Error("it was closed");
      this.#token = stream.resumeToken ?? null;
      await sleep(GATHERED_MS, undefined, { ref: false });
    }
  }

  async #publish(read: readonly Read[]): Promise<void> {
    await this.#lookUpAgents(read);
    const changes: Change[] = [];
    const [sessionIds, userIds] = [new Set<string>(), new Set<string>()];
    for (const one of read) {
      const { documentKey, ns } = one;
      const position = this.#positionAt(one.clusterTime);
      if (ns.coll === SESSIONS) sessionIds.add(documentKey._id);
      else if (ns.coll === USERS) userIds.add(documentKey._id);
      else for (const change of this.#changesOf(one)) changes.push({ ...change, position });
    }
    if (sessionIds.size + userIds.size > 0) this.#listener.peopleChanged(sessionIds, userIds);
    this.#listener.changed(changes);
    if (this.#position >= this.#openedAt) this.#caughtUp.fire();
  }

  #positionAt(time: Timestamp): Position {
    this.#ofThatTime = this.#lastTime?.equals(time) === true ? this.#ofThatTime + 1 : 1;
    this.#lastTime = time;
    return (this.#position = positionAt(time, this.#ofThatTime));
  }

  #changesOf({ documentKey, fullDocument, ns, updateDescription }: Read): Omit<Change, "position">[] {
    const { _id: id } = documentKey;
    const organizationId = fullDocument?.organizationId ?? this.#organizationOf.get(id);
    if (organizationId === undefined) return [];
    switch (ns.coll) {
      case COLLECTIONS.transactions:
        return [{ organizationId, kind: "transactions", id, isMinor: false }];
      case COLLECTIONS.approvals:
        return [{ organizationId, kind: "approvals", id, isMinor: false }];
      case COLLECTIONS.raiseRequests:
        return [{ organizationId, kind: "raiseRequests", id, isMinor: false }];
      case COLLECTIONS.events:
        return [{ organizationId, kind: "budgets", id, isMinor: false }];
      case COLLECTIONS.agents: {
        const { updatedFields = null } = updateDescription ?? {};
        const isMinor = fullDocument === undefined && Object.keys(updatedFields ?? {}).length === 0;
        return [{ organizationId, kind: "agents", id, isMinor }];
      }
      default: {
        const named = fullDocument?.resource?.id ?? organizationId;
        const kinds = kindsPublishedBy(fullDocument?.action ?? "");
        return kinds.map((kind) => ({ organizationId, kind, id: named, isMinor: false }));
      }
    }
  }

  /** Looks up the organizations of agents, which updates do not contain. They never change. */
  async #lookUpAgents(read: readonly Read[]): Promise<void> {
    const unknown = new Set<string>();
    for (const { documentKey, fullDocument, ns } of read) {
      if (ns.coll !== COLLECTIONS.agents) continue;
      const organizationId = fullDocument?.organizationId;
      if (organizationId !== undefined) this.#remember(documentKey._id, organizationId);
      else if (!this.#organizationOf.has(documentKey._id)) unknown.add(documentKey._id);
    }
    if (unknown.size === 0) return;
    const found = await this.#agents
      .find({ _id: { $in: [...unknown] } }, { projection: { organizationId: 1 } })
      .toArray();
    for (const { _id, organizationId } of found) this.#remember(_id, organizationId);
  }

  #remember(agentId: string, organizationId: string): void {
    if (this.#organizationOf.size >= AGENTS_KNOWN_MAX) {
      const [oldest] = this.#organizationOf.keys();
      if (oldest !== undefined) this.#organizationOf.delete(oldest);
    }
    this.#organizationOf.set(agentId, organizationId);
  }
}
