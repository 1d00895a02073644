import { deliveryId } from "../../domain/webhooks/delivery-id.ts";
import type { DeliveryInput } from "../../messages/delivery.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { EventDocument } from "../../store/documents.ts";
import type { DeliveryDocument, EndpointDocument } from "../../store/webhook-documents.ts";

const DAY_MS = 86_400_000;

export const retainedUntil = (now: Date, retentionDays: number): Date =>
  new Date(now.getTime() + retentionDays * DAY_MS);

export interface NewDelivery {
  readonly event: EventDocument;
  /** Data in the API's form. */
  readonly data: object;
  readonly endpoint: Pick<EndpointDocument, "_id" | "organizationId">;
  readonly now: Date;
  readonly retentionDays: number;
  readonly accessProofs: Pick<AccessProofs, "proven">;
}

export const deliveryIdOf = ({ _id, createdAt }: EventDocument, endpointId: string): string =>
  deliveryId(_id, endpointId, createdAt.getTime());

/** Returns a new delivery of an event to an endpoint. Deterministic, except for its times. */
export function newDelivery(made: NewDelivery): DeliveryDocument {
  const { accessProofs, data, endpoint, event, now, retentionDays } = made;
  const id = deliveryIdOf(event, endpoint._id);
  return accessProofs.proven("delivery", {
    ...begun(endpoint, now, retentionDays),
    _id: id,
    eventId: event._id,
    eventType: event.type,
    isTest: false,
    body: bodyOf(id, event, data),
    ...(event.traceparent === undefined ? {} : { traceparent: event.traceparent }),
  });
}

/** Returns a delivery that tests a receiver: one attempt, without an event. */
export function testDelivery(
  id: string,
  { accessProofs, endpoint, now, retentionDays }: Omit<NewDelivery, "event" | "data">,
  eventType: EventDocument["type"],
): DeliveryDocument {
  const { organizationId } = endpoint;
  const body = { id, type: eventType, created_at: now.toISOString(), org_id: organizationId };
  return accessProofs.proven("delivery", {
    ...begun(endpoint, now, retentionDays),
    _id: id,
    eventId: null,
    eventType,
    isTest: true,
    body: JSON.stringify({ ...body, data: { test: true } }),
  });
}

const begun = (endpoint: NewDelivery["endpoint"], now: Date, retentionDays: number) => ({
  organizationId: endpoint.organizationId,
  endpointId: endpoint._id,
  status: "pending" as const,
  attempts: [],
  attemptCount: 0,
  run: 1,
  runAttempts: 0,
  nextAttemptAt: null,
  createdAt: now,
  expiresAt: retainedUntil(now, retentionDays),
  pendingAction: "start" as const,
});

/** Returns the body; ids of project, team and agent are absent for events above their level. */
function bodyOf(id: string, event: EventDocument, data: object): string {
  const { agentId, agentName, createdAt, organizationId, projectId, teamId, type } = event;
  const place = {
    ...(projectId === null ? {} : { project_id: projectId }),
    ...(teamId === null ? {} : { team_id: teamId }),
    ...(agentId === null ? {} : { agent_id: agentId, agent_name: agentName }),
  };
  return JSON.stringify({
    id,
    type,
    created_at: createdAt.toISOString(),
    org_id: organizationId,
    ...place,
    data,
  });
}

export const inputOf = (
  delivery: Pick<DeliveryDocument, "_id" | "organizationId" | "endpointId" | "eventType" | "isTest" | "run">,
): DeliveryInput => ({
  deliveryId: delivery._id,
  organizationId: delivery.organizationId,
  endpointId: delivery.endpointId,
  eventType: delivery.eventType,
  isTest: delivery.isTest,
  run: delivery.run,
});
