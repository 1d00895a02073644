import type { Collection, Db, Filter } from "mongodb";
import { isSubscribed } from "../../src/domain/webhooks/subscription.ts";
import type { ReplayInput } from "../../src/messages/delivery.ts";
import { COLLECTIONS, type EventDocument } from "../documents.ts";
import type { Clock } from "../ports.ts";
import {
  type DeliveryDocument,
  type EndpointDocument,
  type ReplayRecord,
  type WebhookCollections,
  webhookCollections,
} from "./documents.ts";
import { deliveryIdOf, inputOf, keptUntil, newDelivery } from "./new-delivery.ts";
import type { EventData, WebhookWorkflows } from "./ports.ts";

/** Events that one step looks at, and deliveries that one replay queues. */
const STEP_MAX = 100;
export const REPLAY_DELIVERIES_MAX = 10_000;

export interface RedeliveryDependencies {
  readonly db: Db;
  readonly workflows: WebhookWorkflows;
  readonly dataOf: EventData;
  readonly retentionDays: number;
  readonly clock: Clock;
}

/** Sends again what did not arrive: a delivery that is named, or all that an endpoint missed since a time. */
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
   * Begins a delivery anew, all its attempts before it: with the same id and the same body. One that is on its way is left
   * alone. Answers it as it is then; null where its record is gone.
   */
  async again(ended: DeliveryDocument): Promise<DeliveryDocument | null> {
    const { clock, retentionDays, workflows } = this.#dependencies;
    const { deliveries } = this.#webhooks;
    const { _id, run, status, untold } = ended;
    if (status === "pending") return ended;
    const begun = await deliveries.findOneAndUpdate(
      { _id, run, status },
      {
        $set: {
          status: "pending",
          run: run + 1,
          runAttempts: 0,
          nextAttemptAt: null,
          untold: "begin",
          expiresAt: keptUntil(clock(), retentionDays),
        },
      },
      { returnDocument: "after" },
    );
    if (begun === null) return deliveries.findOne({ _id });
    if (untold === "drop") await workflows.dropDelivery({ deliveryId: _id, run });
    await this.begin(begun);
    return begun;
  }

  /** Starts its workflow. If this process dies before, the dispatcher does. */
  async begin(delivery: DeliveryDocument): Promise<void> {
    const { _id, run } = delivery;
    await this.#dependencies.workflows.startDelivery(inputOf(delivery));
    await this.#webhooks.deliveries.updateOne({ _id, run, untold: "begin" }, { $unset: { untold: "" } });
  }

  /** A further step of an endpoint's replay; whether it was the last. May be repeated. */
  async replay({ endpointId, organizationId, replayId }: ReplayInput): Promise<boolean> {
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
    const matching = events.filter((event) => isSubscribed(endpoint, event));
    const room = REPLAY_DELIVERIES_MAX - replay.queued;
    const queued = await this.#queue(endpoint, matching, room);
    const last = events.at(-1);
    const state = queued >= room ? "limited" : events.length < STEP_MAX ? "done" : "running";
    return this.#progress(endpoint, replay, {
      ...replay,
      state,
      examined: replay.examined + events.length,
      queued: replay.queued + queued,
      position: last === undefined ? replay.position : { at: last.createdAt, eventId: last._id },
    });
  }

  /** Of these events, those without a delivery that has arrived or is on its way; how many that were. */
  async #queue(endpoint: EndpointDocument, events: readonly EventDocument[], room: number): Promise<number> {
    const ids = events.map((event) => deliveryIdOf(event, endpoint._id));
    const known = await this.#webhooks.deliveries.find({ _id: { $in: ids } }).toArray();
    const byId = new Map(known.map((delivery) => [delivery._id, delivery]));
    let queued = 0;
    for (const event of events) {
      if (queued >= room) break;
      const delivery = byId.get(deliveryIdOf(event, endpoint._id));
      if (delivery?.status === "pending" || delivery?.status === "succeeded") continue;
      await (delivery === undefined ? this.#create(endpoint, event) : this.again(delivery));
      queued += 1;
    }
    return queued;
  }

  async #create(endpoint: EndpointDocument, event: EventDocument): Promise<void> {
    const { clock, dataOf, retentionDays } = this.#dependencies;
    const { deliveries } = this.#webhooks;
    const delivery = newDelivery({ event, data: dataOf(event), endpoint, now: clock(), retentionDays });
    // Somebody else may create it just now: it is the same.
    await deliveries.updateOne({ _id: delivery._id }, { $setOnInsert: delivery }, { upsert: true });
    await this.begin(delivery);
  }

  async #progress(
    { _id }: EndpointDocument,
    { position }: ReplayRecord,
    next: ReplayRecord,
  ): Promise<boolean> {
    const isOver = next.state !== "running";
    const replay = { ...next, endedAt: isOver ? this.#dependencies.clock() : null };
    // A step that somebody else has taken meanwhile stands.
    await this.#webhooks.endpoints.updateOne(
      { _id, "replay.id": next.id, "replay.position": position },
      { $set: { replay } },
    );
    return isOver;
  }
}

/** What happened from then until the replay was asked for, from where it has got to. */
function missedIn(organizationId: string, { position, since, until }: ReplayRecord): Filter<EventDocument> {
  const within = { organizationId, createdAt: { $gte: since, $lte: until } };
  if (position === null) return within;
  const { at, eventId } = position;
  return { ...within, $or: [{ createdAt: { $gt: at } }, { createdAt: at, _id: { $gt: eventId } }] };
}
