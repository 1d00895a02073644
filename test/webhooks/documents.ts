import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import type { EventDocument } from "../../src/store/documents.ts";
import type { EndpointDocument } from "../../src/store/webhook-documents.ts";

/** Records as they lie in the database, for what is tried without a service. */

export const NOW = Date.UTC(2026, 0, 1);
export const HAPPENED = NOW - 500;

export const eventDocument = (
  organizationId: string,
  index: number,
  fields: Partial<EventDocument> = {},
): EventDocument =>
  TEST_ACCESS_PROOFS.proven("event", {
    _id: `evt_${organizationId}_${String(index).padStart(4, "0")}`,
    type: "transaction.completed",
    organizationId,
    projectId: null,
    teamId: null,
    agentId: "agent",
    agentName: null,
    createdAt: new Date(HAPPENED + index / 10),
    data: {},
    isPending: true,
    ...fields,
  });

export const endpointDocument = (
  organizationId: string,
  fields: Partial<EndpointDocument> = {},
): EndpointDocument =>
  TEST_ACCESS_PROOFS.proven("webhook", {
    _id: `endpoint-of-${organizationId}`,
    organizationId,
    name: "Receiver",
    url: "https://receiver.example",
    eventTypes: ["*"],
    scopeType: "organization",
    scopeIds: [],
    description: null,
    isActive: true,
    disabled: null,
    consecutiveFailures: 0,
    secret: { id: "secret", sealed: "" },
    previousSecret: null,
    replay: null,
    createdBy: "somebody",
    createdAt: new Date(NOW),
    updatedAt: new Date(NOW),
    ...fields,
  });
