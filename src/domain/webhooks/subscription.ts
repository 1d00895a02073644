import type { EventType } from "../events.ts";

export const WEBHOOK_SCOPES = ["organization", "project", "team", "agent"] as const;
export type WebhookScope = (typeof WEBHOOK_SCOPES)[number];

/** Selects all types of events, including later ones. */
export const ALL_EVENTS = "*";

export interface Subscription {
  readonly eventTypes: readonly string[];
  readonly scopeType: WebhookScope;
  /** Ids of projects, teams or agents, according to the scope; empty for the organization's. */
  readonly scopeIds: readonly string[];
}

/** Ids that decide which endpoints receive an event; null for an event of the organization alone. */
export interface EventSubject {
  readonly type: EventType;
  readonly projectId: string | null;
  readonly teamId: string | null;
  readonly agentId: string | null;
}

/** Whether an endpoint of the event's organization receives the event. */
export function isSubscribed(
  { eventTypes, scopeIds, scopeType }: Subscription,
  event: EventSubject,
): boolean {
  if (!eventTypes.includes(ALL_EVENTS) && !eventTypes.includes(event.type)) return false;
  if (scopeType === "organization") return true;
  const id = { project: event.projectId, team: event.teamId, agent: event.agentId }[scopeType];
  return id !== null && scopeIds.includes(id);
}
