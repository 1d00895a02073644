import type { z } from "zod";
import type {
  AttemptRecord,
  DeliveryDocument,
  EndpointDocument,
  ReplayRecord,
} from "../store/webhook-documents.ts";
import type { getWebhook, getWebhookReplay, redeliverWebhook } from "../contract/operations/webhooks.ts";
import { EVENT_TYPES } from "../domain/events.ts";
import { ALL_EVENTS } from "../domain/webhooks/subscription.ts";

type EndpointView = z.input<typeof getWebhook.output>["endpoint"];
type DeliveryView = z.input<typeof redeliverWebhook.output>["delivery"];
type ReplayView = NonNullable<z.input<typeof getWebhookReplay.output>["replay"]>;

const NAMED = [...EVENT_TYPES, ALL_EVENTS] as const;

const isoOrNull = (date: Date | null | undefined): string | null => date?.toISOString() ?? null;

export function endpointView(endpoint: EndpointDocument): EndpointView {
  const { disabled, eventTypes, previousSecret } = endpoint;
  return {
    id: endpoint._id,
    name: endpoint.name,
    url: endpoint.url,
    eventTypes: eventTypes.flatMap((given) => NAMED.filter((type) => type === given)),
    scopeType: endpoint.scopeType,
    scopeIds: endpoint.scopeIds,
    description: endpoint.description,
    isActive: endpoint.isActive,
    disabledAt: isoOrNull(disabled?.at),
    disabledReason: disabled?.reason ?? null,
    consecutiveFailures: endpoint.consecutiveFailures,
    secretPreviousExpiresAt: isoOrNull(previousSecret?.expiresAt),
    createdAt: endpoint.createdAt.toISOString(),
    updatedAt: endpoint.updatedAt.toISOString(),
  };
}

export const deliveryView = (delivery: DeliveryDocument): DeliveryView => ({
  id: delivery._id,
  eventType: delivery.eventType,
  status: delivery.status,
  test: delivery.isTest,
  attempts: delivery.attempts.map(attemptView),
  nextAttemptAt: isoOrNull(delivery.nextAttemptAt),
  createdAt: delivery.createdAt.toISOString(),
});

const attemptView = ({ at, ...attempt }: AttemptRecord) => ({ ...attempt, at: at.toISOString() });

export const replayView = (replay: ReplayRecord): ReplayView => ({
  id: replay.id,
  since: replay.since.toISOString(),
  until: replay.until.toISOString(),
  state: replay.state,
  examined: replay.examined,
  queued: replay.queued,
  reachedAt: isoOrNull(replay.position?.at),
  endedAt: isoOrNull(replay.endedAt),
});
