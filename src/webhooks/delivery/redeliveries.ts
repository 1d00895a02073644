import type { Collection, Db, Filter } from "mongodb";
import { isSubscribed } from "../../domain/webhooks/subscription.ts";
import type { ReplayInput } from "../../messages/delivery.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { COLLECTIONS, type EventDocument } from "../../store/documents.ts";
import type { Clock } from "../../payments/ports.ts";
import {
  type DeliveryDocument,
  type EndpointDocument,
  type ReplayRecord,
  type WebhookCollections,
  webhookCollections,
} from "../../store/webhook-documents.ts";
import { deliveryIdOf, inputOf, retainedUntil, newDelivery } from "./new-delivery.ts";
import type { RenderEventData, WebhookWorkflows } from "./ports.ts";

/** Maximum events read in one step, and deliveries queued by one replay. */
const STEP_MAX = 100;
const REPLAY_DELIVERIES_MAX = 10_000;

export interface RedeliveryDependencies {
  readonly db: Db;
  readonly accessProofs: Pick<AccessProofs, "genuine" | "proven">;
  readonly workflows: WebhookWorkflows;
  readonly dataOf: RenderEventData;
  readonly retentionDays: number;
  readonly clock: Clock;
  readonly onDefect: (message: string, details: Readonly<Record<string, unknown>>) => void;
  readonly deliveriesMax?: number;
}

/** Sends again what did not arrive: a given delivery, or all that an endpoint missed since a time. */
export class Redeliveries {
  readonly #dependencies: RedeliveryDependencies;
  readonly #events: Collection<EventDocument>;
  readonly #webhooks: WebhookCollections;

  constructor(dependencies: RedeliveryDependencies) {
    this.#dependencies = dependencies;
    this.#events = dependencies.db.collection(COLLECTIONS.events);
    this.#webhooks = webhookCollections(dependencies.db);
  }

  /**
   * Restarts an ended delivery with all its attempts, under the same id and with the same body. A delivery in flight is
   * left alone. Resolves to the current delivery; null if its record is gone.
   */
  async redeliver(ended: DeliveryDocument): Promise<DeliveryDocument | null> {
    const { clock, retentionDays, workflows } = this.#dependencies;
    const { deliveries } = this.#webhooks;
    const { _id, run, status, pendingAction } = ended;
    if (status === "pending") return ended;
    const begun = await deliveries.findOneAndUpdate(
      { _id, run, status },
      {
        $set: {
          status: "pending",
          run: run + 1,
          runAttempts: 0,
          nextAttemptAt: null,
          pendingAction: "start",
          expiresAt: retainedUntil(clock(), retentionDays),
        },
      },
      { returnDocument: "after" },
    );
    if (begun === null) return deliveries.findOne({ _id });
    if (pendingAction === "drop") await workflows.dropDelivery({ deliveryId: _id, run });
    await this.start(begun);
    return begun;
  }

  /** Starts the delivery's workflow. If this process dies first, the dispatcher starts it. */
  async start(delivery: DeliveryDocument): Promise<void> {
    const { _id, run } = delivery;
    await this.#dependencies.workflows.startDelivery(inputOf(delivery));
    await this.#webhooks.deliveries.updateOne(
      { _id, run, pendingAction: "start" },
      { $unset: { pendingAction: "" } },
    );
  }

  /** Performs a further step of an endpoint's replay; returns whether it was the last. Repeatable. */
  async replay({ endpointId, organizationId, replayId }: ReplayInput): Promise<boolean> {
    const { deliveriesMax = REPLAY_DELIVERIES_MAX } = this.#dependencies;
    const { endpoints } = this.#webhooks;
    const endpoint = await endpoints.findOne({ _id: endpointId, organizationId });
    if (endpoint?.replay?.id !== replayId || endpoint.replay.state !== "running") return true;
    const { replay } = endpoint;
    if (!endpoint.isActive) return this.#progress(endpoint, replay, { ...replay, state: "stopped" });
    const events = await this.#events
      .find(missedIn(organizationId, replay))
      .sort({ createdAt: 1, _id: 1 })
      .limit(STEP_MAX)
      .toArray();
    const { examined, queued } = await this.#queue(endpoint, events, deliveriesMax - replay.queued);
    const last = examined === 0 ? undefined : events[examined - 1];
    const state = examined < events.length ? "limited" : events.length < STEP_MAX ? "done" : "running";
    return this.#progress(endpoint, replay, {
      ...replay,
      state,
      examined: replay.examined + examined,
      queued: replay.queued + queued,
      position: last === undefined ? replay.position : { at: last.createdAt, eventId: last._id },
    });
  }

  /**
   * Queues deliveries of the events that the endpoint subscribes to and that have neither arrived nor are in flight.
   * Stops before the first event without room; returns the numbers of events examined and deliveries queued.
   */
  async #queue(
    endpoint: EndpointDocument,
    events: readonly EventDocument[],
    room: number,
  ): Promise<{ examined: number; queued: number }> {
    const ids = events.map((event) => deliveryIdOf(event, endpoint._id));
    const known = await this.#webhooks.deliveries.find({ _id: { $in: ids } }).toArray();
    const byId = new Map(known.map((delivery) => [delivery._id, delivery]));
    let queued = 0;
    for (const [index, event] of events.entries()) {
      const delivery = byId.get(deliveryIdOf(event, endpoint._id));
      if (!isSubscribed(endpoint, event)) continue;
      if (delivery?.status === "pending" || delivery?.status === "succeeded") continue;
      if (queued >= room) return { examined: index, queued };
      const isQueued =
        delivery === undefined ? await this.#create(endpoint, event) : await this.redeliver(delivery);
      if (isQueued !== null) queued += 1;
    }
    return { examined: events.length, queued };
  }

  /** Creates a missing delivery; null if the event is forged or unrenderable, which must not block others. */
  async #create(endpoint: EndpointDocument, event: EventDocument): Promise<DeliveryDocument | null> {
    const { accessProofs, clock, dataOf, onDefect, retentionDays } = this.#dependencies;
    if (accessProofs.genuine("event", event) === null) return null;
    const now = clock();
    const rendered = attempted(() => dataOf(event));
    if (!rendered.ok) {
      onDefect("an event can't be replayed by this version", { eventId: event._id, err: rendered.error });
      return null;
    }
    const delivery = newDelivery({
      accessProofs,
      event,
      data: rendered.value,
      endpoint,
      now,
      retentionDays,
    });
    // An expired record may have had workflows that are still known: their runs must not be started again.
    const run = Math.floor(now.getTime() / 1_000);
    const created = await this.#webhooks.deliveries.findOneAndUpdate(
      { _id: delivery._id },
      { $setOnInsert: { ...delivery, run } },
      { upsert: true, returnDocument: "after" },
    );
    // Another process may have just created the delivery and started its workflow.
    if (created?.pendingAction === "start") await this.start(created);
    return created;
  }

  async #progress(
    { _id }: EndpointDocument,
    { position }: ReplayRecord,
    next: ReplayRecord,
  ): Promise<boolean> {
    const isOver = next.state !== "running";
    const replay = { ...next, endedAt: isOver ? this.#dependencies.clock() : null };
    // A step taken meanwhile by another process wins.
    await this.#webhooks.endpoints.updateOne(
      { _id, "replay.id": next.id, "replay.position": position },
      { $set: { replay } },
    );
    return isOver;
  }
}

function attempted<T>(
  work: () => T,
): { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown } {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    return { ok: false, error };
  }
}

/** Matches events from the replay's position until its request. */
function missedIn(organizationId: string, { position, since, until }: ReplayRecord): Filter<EventDocument> {
  const within = { organizationId, createdAt: { $gte: since, $lte: until } };
  if (position === null) return within;
  const { at, eventId } = position;
  return { ...within, $or: [{ createdAt: { $gt: at } }, { createdAt: at, _id: { $gt: eventId } }] };
}
