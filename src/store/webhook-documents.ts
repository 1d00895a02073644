import type { Collection, Db, Document } from "mongodb";
import type { EventType } from "../domain/events.ts";
import type { WebhookScope } from "../domain/webhooks/subscription.ts";
import type { Indexes } from "./indexes.ts";

/** A signing secret as stored: sealed under its own id. */
export interface SealedSecret {
  readonly id: string;
  readonly sealed: string;
}

/** A replay of what an endpoint missed. */
export interface ReplayRecord {
  readonly id: string;
  readonly since: Date;
  /** When it was requested: what happens later is delivered anyway. */
  readonly until: Date;
  /** `limited`: it has queued as many as one replay may. */
  readonly state: "running" | "done" | "limited" | "stopped";
  /** Events looked at, and deliveries queued of them. */
  readonly examined: number;
  readonly queued: number;
  /** The last event that was looked at; null: none yet. */
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
  /** Null while it is active. */
  disabled: {
    readonly at: Date;
    readonly reason: "consecutive_failures" | "by_person";
    /** The delivery whose failure was one too many. */
    readonly by: { readonly deliveryId: string; readonly run: number } | null;
  } | null;
  /** Deliveries that ended without an acknowledgement since the last one that was acknowledged. */
  consecutiveFailures: number;
  secret: SealedSecret;
  /** The one before it, which signs, too, until it expires. */
  previousSecret: (SealedSecret & { readonly expiresAt: Date }) | null;
  replay: ReplayRecord | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  /** MAC over what is sent where, signed by which secrets (`AccessProofs`). */
  proof: string;
}

export interface AttemptRecord {
  readonly number: number;
  readonly at: Date;
  readonly httpStatus: number | null;
  readonly responseTimeMs: number;
  /** Null: it was acknowledged. */
  readonly failureReason: string | null;
  /** The beginning of what the receiver answered. */
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
  /** The exact text that is sent and signed, the same at every attempt. */
  body: string;
  status: DeliveryStatus;
  attempts: AttemptRecord[];
  /** All that were ever made; `attempts` holds the newest. */
  attemptCount: number;
  /** How often it was begun anew, and the attempts since. */
  run: number;
  runAttempts: number;
  nextAttemptAt: Date | null;
  createdAt: Date;
  /** When the record is no longer kept. */
  expiresAt: Date;
  /** What is left to do with its workflow: start it, or tell it that the delivery was dropped. Missing once that is done. */
  pendingAction?: "start" | "drop";
  /** Trace of its event. */
  traceparent?: string;
  /** MAC over what is sent to which endpoint (`AccessProofs`). */
  proof: string;
}

/** Attempts that a record keeps. */
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
