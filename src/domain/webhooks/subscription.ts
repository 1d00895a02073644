import type { EventType } from "../events.ts";

/** The events of an organization that an endpoint receives. */
export const WEBHOOK_SCOPES = ["organization", "project", "team", "agent"] as const;
export type WebhookScope = (typeof WEBHOOK_SCOPES)[number];

/** Stands for all types of events, including later ones. */
export const ALL_EVENTS = "*";

/** An endpoint's subscription. */
export interface Subscription {
  readonly eventTypes: readonly string[];
  readonly scopeType: WebhookScope;
  /** Projects, teams or agents, as the scope says; empty for the organization's. */
  readonly scopeIds: readonly string[];
}

/** Ids that decide which endpoints receive an event; null for an event of the organization alone. */
export interface EventSubject {
  readonly type: EventType;
  readonly projectId: string | null;
  readonly teamId: string | null;
  readonly agentId: string | null;
}

/** Whether an endpoint of the event's organization gets a delivery of it. */
export function isSubscribed(
  { eventTypes, scopeIds, scopeType }: Subscription,
  event: EventSubject,
): boolean {
  if (!eventTypes.includes(ALL_EVENTS) && !eventTypes.includes(event.type)) return false;
  if (scopeType === "organization") return true;
  const id = { project: event.projectId, team: event.teamId, agent: event.agentId }[scopeType];
  return id !== null && scopeIds.includes(id);
}
