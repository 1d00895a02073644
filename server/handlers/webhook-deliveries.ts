import type { EndpointDocument } from "../../src/store/webhook-documents.ts";
import { testDelivery } from "../../src/webhooks/delivery/new-delivery.ts";
import { EVENT_TYPES, type EventType } from "../../src/domain/events.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { Deadline } from "../../src/lib/deadline.ts";
import { newId } from "../../src/lib/ids.ts";
import { definedFields } from "../../src/store/lists.ts";
import { deliveryView, replayView } from "../../src/webhooks/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type WebhookDeliveryHandlers = Pick<
  Handlers,
  | "testWebhook"
  | "listWebhookDeliveries"
  | "getWebhookDelivery"
  | "redeliverWebhook"
  | "replayWebhook"
  | "getWebhookReplay"
>;

/**
 * Deadline from a request's arrival. A receiver has 15 s, and its delivery needs some more to start and to be recorded.
 */
const RECEIVER_MS = 20_000;

/** A redelivery changes nothing relevant to access. */
const NO_CHANGE = { before: null, after: null };

interface Named {
  readonly id: string;
  readonly deliveryId: string;
}

export function webhookDeliveryHandlers(dependencies: HandlerDependencies): WebhookDeliveryHandlers {
  const { accessProofs, clock, lists, webhooks } = dependencies;
  const { collections, endpoints, redeliveries, workflows } = webhooks;

  async function delivery(organizationId: string, { deliveryId, id }: Named) {
    const own = { _id: deliveryId, endpointId: id, organizationId };
    const [endpoint, read] = await Promise.all([
      endpoints.find(organizationId, id),
      collections.deliveries.findOne(own),
    ]);
    if (!endpoint.ok) return endpoint;
    const found = accessProofs.genuine("delivery", read);
    return found === null ? refused(refusal("NOT_FOUND")) : ok({ delivery: found, endpoint: endpoint.value });
  }

  /** Sends a test through a worker, like every delivery, and waits for its only attempt. */
  async function tried(endpoint: EndpointDocument, eventType: EventType, deadline: Deadline) {
    const { retentionDays } = webhooks;
    const given = { accessProofs, endpoint, now: clock(), retentionDays };
    const made = testDelivery(newId("dlv"), given, eventType);
    await collections.deliveries.insertOne(made);
    await redeliveries.start(made);
    deadline.moveTo(RECEIVER_MS);
    await workflows.deliveryEnd({ deliveryId: made._id, run: 1 }, deadline.spareMs);
    return (await collections.deliveries.findOne({ _id: made._id })) ?? made;
  }

  return {
    async testWebhook({ params, body }, { audit, deadline, principal }) {
      const found = await endpoints.find(principal.organizationId, params.id);
      if (!found.ok) return found;
      const eventType = body?.eventType ?? firstTypeOf(found.value);
      await audit.begin(NO_CHANGE);
      const { _id, attempts } = await tried(found.value, eventType, deadline);
      const attempt = attempts.at(-1) ?? null;
      return ok({
        body: {
          httpStatus: attempt?.httpStatus ?? null,
          responseTimeMs: attempt?.responseTimeMs ?? null,
          deliveryId: _id,
          failureReason: attempt === null ? "it was not sent yet" : attempt.failureReason,
        },
      });
    },

    async listWebhookDeliveries({ params, query }, { principal: { organizationId } }) {
      const found = await endpoints.find(organizationId, params.id);
      if (!found.ok) return found;
      const { cursor, limit, status } = query;
      const endpointId = params.id;
      const page = await lists.page({
        collection: collections.deliveries,
        list: "deliveries",
        filters: { endpointId, status },
        equals: { endpointId, ...definedFields({ status }) },
        limit,
        cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { deliveries: items.map(deliveryView), nextCursor } });
    },

    async getWebhookDelivery({ params }, { principal }) {
      const found = await delivery(principal.organizationId, params);
      if (!found.ok) return found;
      return ok({ body: { delivery: deliveryView(found.value.delivery), body: found.value.delivery.body } });
    },

    async redeliverWebhook({ params }, { audit, principal }) {
      const found = await delivery(principal.organizationId, params);
      if (!found.ok) return found;
      if (!found.value.endpoint.isActive && !found.value.delivery.isTest)
        return refused(refusal("WEBHOOK_DISABLED"));
      await audit.begin(NO_CHANGE);
      const again = await redeliveries.redeliver(found.value.delivery);
      return again === null ? refused(refusal("NOT_FOUND")) : ok({ body: { delivery: deliveryView(again) } });
    },

    async replayWebhook({ params, body }, { audit, principal }) {
      const since = new Date(body.since);
      const begun = await endpoints.replay(principal.organizationId, params.id, since, audit);
      return begun.ok ? ok({ body: { replay: replayView(begun.value) } }) : begun;
    },

    async getWebhookReplay({ params }, { principal }) {
      const found = await endpoints.find(principal.organizationId, params.id);
      if (!found.ok) return found;
      const { replay } = found.value;
      return ok({ body: { replay: replay === null ? null : replayView(replay) } });
    },
  };
}

/** Returns the endpoint's first event type; for an endpoint of all events, a type that every organization has. */
const firstTypeOf = ({ eventTypes }: EndpointDocument): EventType =>
  EVENT_TYPES.find((type) => type === eventTypes[0]) ?? "agent.created";
