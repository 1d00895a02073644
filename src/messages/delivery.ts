/** Names and payloads of the workflows that deliver events to webhook endpoints. */

export const DELIVERY_WORKFLOW = "delivery";

/** A delivery that is sent again after its end runs once more, under a name of its own. */
export const deliveryWorkflowId = ({ deliveryId, run }: Pick<DeliveryInput, "deliveryId" | "run">): string =>
  run === 1 ? `delivery/${deliveryId}` : `delivery/${deliveryId}/${run}`;

export interface DeliveryInput {
  readonly deliveryId: string;
  readonly organizationId: string;
  readonly endpointId: string;
  readonly eventType: string;
  /** Asked for by a person who waits for its answer. */
  readonly isTest: boolean;
  /** Number of the run, from 1; a redelivery starts the next. */
  readonly run: number;
}

/** `superseded`: another run of the delivery has taken over, or its record is no longer kept. */
export type DeliveryEnd = "succeeded" | "failed" | "dropped" | "superseded";

/** Sent when the endpoint was disabled or deleted: nothing more is sent. */
export const DROPPED_SIGNAL = "dropped";

export const SECRET_EXPIRY_WORKFLOW = "secretExpiry";
export const secretExpiryWorkflowId = ({
  expiresAt,
  secretId,
}: Pick<SecretExpiryInput, "secretId" | "expiresAt">): string => `webhook-secret/${secretId}/${expiresAt}`;

/** A secret that is being rotated, and when it signs no more. */
export interface SecretExpiryInput {
  readonly endpointId: string;
  readonly secretId: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export const REPLAY_WORKFLOW = "replay";
export const replayWorkflowId = (replayId: string): string => `webhook-replay/${replayId}`;

export interface ReplayInput {
  readonly organizationId: string;
  readonly endpointId: string;
  readonly replayId: string;
}

/** One per task queue: keeps events watched while there is a worker. */
export const WATCH_WORKFLOW = "watch";
export const WATCHES = ["events", "deposits", "networks"] as const;
export type Watch = (typeof WATCHES)[number];
export const watchWorkflowId = (taskQueue: string, watch: Watch): string => `watch/${taskQueue}/${watch}`;
