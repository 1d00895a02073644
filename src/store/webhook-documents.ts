import type { Collection, Db, Document } from "mongodb";
import type { EventType } from "../domain/events.ts";
import type { WebhookScope } from "../domain/webhooks/subscription.ts";
import type { Indexes } from "./indexes.ts";

/** A signing secret as stored, sealed under its own id. */
export interface SealedSecret {
  readonly id: string;
  readonly sealed: string;
}

/** A replay of events that an endpoint missed. */
export interface ReplayRecord {
  readonly id: string;
  readonly since: Date;
  /** Time of the request; later events are delivered anyway. */
  readonly until: Date;
  /** `limited`: the replay has queued the maximum number of deliveries. */
  readonly state: "running" | "done" | "limited" | "stopped";
  /** Numbers of events examined and of deliveries queued. */
  readonly examined: number;
  readonly queued: number;
  /** Last event examined; null if none yet. */
  readonly position: { readonly at: Date; readonly eventId: string } | null;
  readonly endedAt: Date | null;
}

export interface EndpointDocument extends Document {
  _id: string;
  organizationId: string;
  name: string;
  url: string;
  eventTypes: string[];
  scopeType: WebhookScope;
  scopeIds: string[];
  description: string | null;
  isActive: boolean;
  /** Null while the endpoint is active. */
  disabled: {
    readonly at: Date;
    readonly reason: "consecutive_failures" | "by_person";
    /** The delivery whose failure exceeded the limit. */
    readonly by: { readonly deliveryId: string; readonly run: number } | null;
  } | null;
  /** Failed deliveries since the last acknowledged one. */
  consecutiveFailures: number;
  secret: SealedSecret;
  /** The preceding secret, which also signs until it expires. */
  previousSecret: (SealedSecret & { readonly expiresAt: Date }) | null;
  replay: ReplayRecord | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  /** MAC over destination, selected events and secrets (`AccessProofs`). */
  proof: string;
}

export interface AttemptRecord {
  readonly number: number;
  readonly at: Date;
  readonly httpStatus: number | null;
  readonly responseTimeMs: number;
  /** Null if the attempt was acknowledged. */
  readonly failureReason: string | null;
  /** Beginning of the receiver's response. */
  readonly responseExcerpt: string | null;
}

export type DeliveryStatus = "pending" | "succeeded" | "failed" | "dropped";

export interface DeliveryDocument extends Document {
  _id: string;
  organizationId: string;
  endpointId: string;
  /** Null for a test. */
  eventId: string | null;
  eventType: EventType;
  isTest: boolean;
  /** Exact text that is sent and signed, the same at every attempt. */
  body: string;
  status: DeliveryStatus;
  attempts: AttemptRecord[];
  /** Number of all attempts; `attempts` holds the newest. */
  attemptCount: number;
  /** Number of the current run, raised by each restart, and the attempts in that run. */
  run: number;
  runAttempts: number;
  nextAttemptAt: Date | null;
  createdAt: Date;
  /** Time after which the record is removed. */
  expiresAt: Date;
  /**
   * Pending action on the delivery's workflow: start it, or signal that the delivery was dropped. Missing once done.
   */
  pendingAction?: "start" | "drop";
  /** Trace of the delivery's event. */
  traceparent?: string;
  /** MAC over content and endpoint (`AccessProofs`). */
  proof: string;
}

export const ATTEMPTS_RETAINED_MAX = 25;

export const WEBHOOK_COLLECTIONS = {
  endpoints: "webhook_endpoints",
  deliveries: "webhook_deliveries",
} as const;

export interface WebhookCollections {
  readonly endpoints: Collection<EndpointDocument>;
  readonly deliveries: Collection<DeliveryDocument>;
}

export const webhookCollections = (db: Db): WebhookCollections => ({
  endpoints: db.collection(WEBHOOK_COLLECTIONS.endpoints, { readPreference: "primary" }),
  deliveries: db.collection(WEBHOOK_COLLECTIONS.deliveries, { readPreference: "primary" }),
});

export const WEBHOOK_INDEXES: Indexes = {
  [WEBHOOK_COLLECTIONS.endpoints]: [
    {
      key: { organizationId: 1, createdAt: -1, _id: -1 },
      name: "organization",
      reader: "the list of endpoints; receivers of an event",
    },
  ],
  [WEBHOOK_COLLECTIONS.deliveries]: [
    {
      key: { endpointId: 1, createdAt: -1, _id: -1 },
      name: "endpoint",
      reader: "the list of an endpoint's deliveries",
    },
    {
      key: { endpointId: 1, status: 1, createdAt: -1, _id: -1 },
      name: "endpoint_status",
      reader: "the same by status",
    },
    {
      key: { pendingAction: 1, _id: 1 },
      name: "pending_action",
      reader: "deliveries whose workflow is to be started or dropped",
      partialFilterExpression: { pendingAction: { $exists: true } },
    },
    { key: { expiresAt: 1 }, name: "expiry", expireAfterSeconds: 0, reader: "removes old deliveries" },
  ],
};
