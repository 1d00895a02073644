import { DUPLICATE_KEY } from "../../lib/duplicate-key.ts";
import { isRecent, notRecent } from "../../lib/stamps.ts";
import { LRUCache } from "lru-cache";
import type { Collection, Db, Document } from "mongodb";
import { MongoBulkWriteError } from "mongodb";
import pLimit from "p-limit";
import type { EventType } from "../../domain/events.ts";
import { isSubscribed } from "../../domain/webhooks/subscription.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { COLLECTIONS, type EventDocument } from "../../store/documents.ts";
import type { Clock } from "../../payments/ports.ts";
import {
  type DeliveryDocument,
  type EndpointDocument,
  type WebhookCollections,
  webhookCollections,
} from "../../store/webhook-documents.ts";
import { inputOf, newDelivery } from "./new-delivery.ts";
import { DeliveryThrottle } from "./throttle.ts";
import type { RenderEventData, NoticeHeld, WebhookWorkflows } from "./ports.ts";

/**
 * Maximum events, or deliveries with a pending action, per step. Also the number of deliveries after which a step takes
 * no further event, so that one organization's many endpoints do not delay everything else.
 */
const STEP_MAX = 200;
/** Maximum organizations per step. */
const ORGANIZATIONS_MAX = 20;
/** Maximum concurrent lines. A line's deliveries, of one agent's events to one endpoint, start in order. */
const LINES_MAX = 16;
/**
 * Minimum age of an event before it is dispatched. Two events of one agent can reach the journal in concurrent inserts,
 * and the later must not overtake the earlier; a payment's event may wait 50 ms before its insert.
 */
export const EVENT_AGE_MIN_MS = 75;
/** Assumed maximum difference of clocks: an event that waits blocks those behind it. */
const CLOCK_SKEW_MAX_MS = 5_000;
/** Age at which a delivery without a workflow is started here: the process that created it has died, or is about to. */
const ORPHANED_AFTER_MS = 2_000;

/** Window over which the payment rate is measured. */
const RATE_WINDOW_MS = 1_000;
/** Maximum payments counted; more make no difference. */
const COUNT_MAX = 1_000;
const PAYMENT_EVENTS: ReadonlySet<EventType> = new Set(["transaction.completed", "transaction.denied"]);
/** Minimum interval of counting them in the journal. */
const RECOUNT_INTERVAL_MS = 500;

/** Far more than one step takes. A forgotten one is reported again. */
const UNDELIVERABLE_MAX = 1_000;

/** Remaining work after a step: no event, more events, or events that have to wait. */
export type StepResult = "nothing" | "more" | "waiting";

export interface DispatcherDependencies {
  readonly db: Db;
  readonly accessProofs: Pick<AccessProofs, "genuine" | "proven">;
  readonly workflows: WebhookWorkflows;
  readonly dataOf: RenderEventData;
  /** Null: nobody is mailed. */
  readonly noticeHeld: NoticeHeld | null;
  readonly retentionDays: number;
  readonly clock: Clock;
  /** Returns the load of process and machine, from 0 to 1. */
  readonly load: () => number;
  /** Monotonic clock in milliseconds, for pacing deliveries. */
  readonly elapsed?: () => number;
  readonly onDefect: (message: string, details: Readonly<Record<string, unknown>>) => void;
}

/**
 * Turns journal events into deliveries. An event is pending in the journal until each subscribed endpoint has its
 * delivery, and each delivery its workflow. Any process may repeat any step after any crash: a delivery's id is derived
 * from event and endpoint.
 */
export class EventDispatcher {
  readonly #events: Collection<EventDocument>;
  readonly #webhooks: WebhookCollections;
  readonly #dependencies: DispatcherDependencies;
  /** Events for which this process cannot make a delivery: a defect, which a later version may fix. */
  readonly #undeliverable = new LRUCache<string, true>({ max: UNDELIVERABLE_MAX });
  readonly #throttle: DeliveryThrottle;
  readonly #elapsed: () => number;
  #lastServed = "";
  #counted = { at: 0, payments: 0 };
  #publishedAt: Date[] = [];

  constructor(dependencies: DispatcherDependencies) {
    this.#dependencies = dependencies;
    this.#elapsed = dependencies.elapsed ?? (() => performance.now());
    this.#throttle = new DeliveryThrottle(this.#elapsed());
    this.#events = dependencies.db.collection(COLLECTIONS.events);
    this.#webhooks = webhookCollections(dependencies.db);
  }

  /** Creates and starts the deliveries of the oldest pending events, as many as may begin now. */
  async step(): Promise<StepResult> {
    const organizations = await this.#events.distinct("organizationId", { isPending: true });
    if (organizations.length === 0) return "nothing";
    const allowance = await this.#allowance();
    if (allowance === 0) return "waiting";
    const pending = await this.#readPending(this.#nextRoundRobin(organizations));
    if (pending.length === 0) return "nothing";
    const { events, lines } = await this.#linesOf(pending, allowance);
    const deliveries = lines.flat();
    await this.#insert(deliveries);
    await inLines(lines, (delivery) => this.#dependencies.workflows.startDelivery(inputOf(delivery)));
    await this.#markBegun(deliveries);
    const signals = (await this.#dependencies.noticeHeld?.(events)) ?? 0;
    this.#throttle.begun(deliveries.length + signals);
    const done = events.map(({ _id }) => _id).filter((id) => !this.#undeliverable.has(id));
    await this.#events.updateMany({ _id: { $in: done } }, doneWith(this.#dependencies.clock()));
    const isCut = events.length < pending.length;
    // The next step begins with the organization after the last one served.
    if (isCut) this.#lastServed = events.at(-1)?.organizationId ?? "";
    this.#remember(events);
    return isCut && deliveries.length >= allowance ? "waiting" : "more";
  }

  /** Starts or signals workflows that their own process has not; returns their number. */
  async sweep(): Promise<number> {
    const { clock, workflows } = this.#dependencies;
    const now = clock().getTime();
    const isOrphaned = (at: Date): boolean => !isRecent(at, now, ORPHANED_AFTER_MS, CLOCK_SKEW_MAX_MS);
    const unfinished = await this.#webhooks.deliveries
      .find({ pendingAction: { $exists: true } })
      .limit(STEP_MAX)
      .toArray();
    if (unfinished.length === 0) return 0;
    // Deliveries of an event that is still pending are started in order, with the event.
    const eventIds = unfinished.flatMap(({ eventId }) => (eventId === null ? [] : [eventId]));
    const pending = new Set(await this.#events.distinct("_id", { _id: { $in: eventIds }, isPending: true }));
    const due = unfinished.filter(
      ({ createdAt, eventId, pendingAction }) =>
        pendingAction === "drop" || (isOrphaned(createdAt) && (eventId === null || !pending.has(eventId))),
    );
    await inLines(
      due.map((delivery) => [delivery]),
      async (delivery) => {
        if (delivery.pendingAction === "start") await workflows.startDelivery(inputOf(delivery));
        else await workflows.dropDelivery({ deliveryId: delivery._id, run: delivery.run });
        await this.#markNotified(delivery);
      },
    );
    return due.length;
  }

  /** Records that the workflow was started or signalled as the record required. */
  async #markNotified({
    _id,
    run,
    pendingAction,
  }: Pick<DeliveryDocument, "_id" | "run" | "pendingAction">): Promise<void> {
    if (pendingAction === undefined) return;
    await this.#webhooks.deliveries.updateOne({ _id, run, pendingAction }, { $unset: { pendingAction: "" } });
  }

  /** Returns pending events, oldest first in each organization. Organizations take turns. */
  async #readPending(organizations: readonly string[]): Promise<EventDocument[]> {
    const now = this.#dependencies.clock().getTime();
    const isSettled = notRecent(now, EVENT_AGE_MIN_MS, CLOCK_SKEW_MAX_MS);
    const undeliverable =
      this.#undeliverable.size === 0 ? {} : { _id: { $nin: [...this.#undeliverable.keys()] } };
    const ofEach = organizations.map((organizationId) =>
      this.#events
        .find({ isPending: true, organizationId, createdAt: isSettled, ...undeliverable })
        .sort({ createdAt: 1, _id: 1 })
        .limit(Math.ceil(STEP_MAX / organizations.length))
        .toArray(),
    );
    return roundRobin(await Promise.all(ofEach));
  }

  /** Returns some of the organizations, beginning after the last one served. */
  #nextRoundRobin(organizations: readonly string[]): string[] {
    const after = organizations.filter((id) => id > this.#lastServed);
    const before = organizations.filter((id) => id <= this.#lastServed);
    const next = [...after.toSorted(), ...before.toSorted()].slice(0, ORGANIZATIONS_MAX);
    this.#lastServed = next.at(-1) ?? "";
    return next;
  }

  async #allowance(): Promise<number> {
    const load = this.#dependencies.load();
    const paymentsPerSecond = this.#throttle.dependsOnPayments(load) ? await this.#paymentsPerSecond() : 0;
    return this.#throttle.allowance({ load, paymentsPerSecond }, this.#elapsed());
  }

  /** Notes published payments for as long as they count, even while their rate is not read. */
  #remember(events: readonly EventDocument[]): void {
    const since = new Date(this.#dependencies.clock().getTime() - RATE_WINDOW_MS);
    const published = events.filter(({ type }) => PAYMENT_EVENTS.has(type)).map(({ createdAt }) => createdAt);
    this.#publishedAt = [...this.#publishedAt, ...published].filter((at) => at >= since);
  }

  /** Returns the number of payments that ended within the last second, whether published or still pending. */
  async #paymentsPerSecond(): Promise<number> {
    const now = this.#dependencies.clock().getTime();
    const since = new Date(now - RATE_WINDOW_MS);
    const published = this.#publishedAt.filter((at) => at >= since);
    if (now - this.#counted.at < RECOUNT_INTERVAL_MS) return this.#counted.payments;
    const unsent = await this.#events.countDocuments(
      { isPending: true, createdAt: { $gte: since }, type: { $in: [...PAYMENT_EVENTS] } },
      { limit: COUNT_MAX },
    );
    this.#counted = { at: now, payments: unsent + published.length };
    return this.#counted.payments;
  }

  /**
   * Returns the first pending events whose deliveries may begin, and these deliveries in lines: one agent's events to
   * one endpoint stay in order, concurrent with all others, and organizations take turns.
   */
  async #linesOf(
    pending: readonly EventDocument[],
    allowance: number,
  ): Promise<{ events: EventDocument[]; lines: DeliveryDocument[][] }> {
    const { accessProofs, clock, retentionDays } = this.#dependencies;
    const organizations = [...new Set(pending.map(({ organizationId }) => organizationId))];
    const found = await this.#webhooks.endpoints
      .find({ organizationId: { $in: organizations }, isActive: true })
      .toArray();
    const endpoints = found.filter((endpoint) => accessProofs.genuine("webhook", endpoint) !== null);
    const now = clock();
    const linesOfEach = new Map<string, Map<string, DeliveryDocument[]>>();
    const events: EventDocument[] = [];
    let made = 0;
    for (const event of pending) {
      if (made >= Math.min(allowance, STEP_MAX)) break;
      events.push(event);
      const subscribed = endpoints.filter((endpoint) => receives(endpoint, event));
      const data = subscribed.length === 0 ? null : this.#dataOf(event);
      if (data === null) continue;
      const lines = valueIn(linesOfEach, event.organizationId, () => new Map<string, DeliveryDocument[]>());
      for (const endpoint of subscribed) {
        const name = `${event.agentId ?? event.organizationId}/${endpoint._id}`;
        const line = valueIn(lines, name, (): DeliveryDocument[] => []);
        line.push(newDelivery({ accessProofs, event, data, endpoint, now, retentionDays }));
      }
      made += subscribed.length;
    }
    return { events, lines: roundRobin([...linesOfEach.values()].map((lines) => [...lines.values()])) };
  }

  /** Returns an event's data; null if it is forged or can't be rendered, which must not block other events. */
  #dataOf(event: EventDocument): object | null {
    if (this.#dependencies.accessProofs.genuine("event", event) === null) return null;
    try {
      return this.#dependencies.dataOf(event);
    } catch (err) {
      this.#undeliverable.set(event._id, true);
      this.#dependencies.onDefect("an event can't be delivered by this version", { eventId: event._id, err });
      return null;
    }
  }

  async #insert(deliveries: readonly DeliveryDocument[]): Promise<void> {
    if (deliveries.length === 0) return;
    try {
      await this.#webhooks.deliveries.insertMany([...deliveries], { ordered: false });
    } catch (error) {
      if (!isOnlyDuplicates(error)) throw error;
    }
  }

  async #markBegun(deliveries: readonly DeliveryDocument[]): Promise<void> {
    if (deliveries.length === 0) return;
    const begun = { _id: { $in: deliveries.map(({ _id }) => _id) }, run: 1, pendingAction: "start" } as const;
    await this.#webhooks.deliveries.updateMany(begun, { $unset: { pendingAction: "" } });
  }
}

const receives = (endpoint: EndpointDocument, event: EventDocument): boolean =>
  endpoint.organizationId === event.organizationId && isSubscribed(endpoint, event);

/** Returns a map's value, inserting one if missing. */
function valueIn<T>(map: Map<string, T>, key: string, fresh: () => T): T {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = fresh();
  map.set(key, made);
  return made;
}

/** Works through each line in order, up to `LINES_MAX` lines concurrently. Throws the first failure. */
async function inLines<T>(lines: readonly (readonly T[])[], work: (each: T) => Promise<void>): Promise<void> {
  await pLimit(LINES_MAX).map(lines, async (line) => {
    for (const each of line) await work(each);
  });
}

/** Interleaves lists: the first item of each, then the second of each, and so on. */
function roundRobin<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
}

/** Existing deliveries were created by a process that died before it finished the event. */
function isOnlyDuplicates(error: unknown): boolean {
  if (!(error instanceof MongoBulkWriteError)) return false;
  const failures = [error.writeErrors].flat().filter((failure) => failure !== undefined);
  return failures.length > 0 && failures.every(({ code }) => code === DUPLICATE_KEY);
}

/** Change for dispatched events, whose retention starts now. Events of the organization alone are kept. */
const doneWith = (now: Date): Document[] => [
  { $unset: "isPending" },
  { $set: { dispatchedAt: { $cond: [{ $eq: ["$projectId", null] }, "$$REMOVE", { $literal: now }] } } },
];
