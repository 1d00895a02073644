/** Names and payloads of the workflows that deliver events to webhook endpoints. */

export const DELIVERY_WORKFLOW = "delivery";

/** Returns the workflow id of a delivery's run; each redelivery is a run with its own id. */
export const deliveryWorkflowId = ({ deliveryId, run }: Pick<DeliveryInput, "deliveryId" | "run">): string =>
  run === 1 ? `delivery/${deliveryId}` : `delivery/${deliveryId}/${run}`;

export interface DeliveryInput {
  readonly deliveryId: string;
  readonly organizationId: string;
  readonly endpointId: string;
  readonly eventType: string;
  /** Whether a person requested the delivery and waits for its result. */
  readonly isTest: boolean;
  /** Number of the run, from 1; a redelivery starts the next. */
  readonly run: number;
}

/** `superseded`: another run of the delivery has taken over, or its record is no longer retained. */
export type DeliveryEnd = "succeeded" | "failed" | "dropped" | "superseded";

/** Signals that the endpoint was disabled or deleted, so that nothing more is sent. */
export const DROPPED_SIGNAL = "dropped";

export const SECRET_EXPIRY_WORKFLOW = "secretExpiry";
export const secretExpiryWorkflowId = ({
  expiresAt,
  secretId,
}: Pick<SecretExpiryInput, "secretId" | "expiresAt">): string => `webhook-secret/${secretId}/${expiresAt}`;

/** A secret that is being rotated out, and when it stops signing. */
export interface SecretExpiryInput {
  readonly endpointId: string;
  readonly secretId: string;
  readonly expiresAt: number;
}

export const REPLAY_WORKFLOW = "replay";
export const replayWorkflowId = (replayId: string): string => `webhook-replay/${replayId}`;

export interface ReplayInput {
  readonly organizationId: string;
  readonly endpointId: string;
  readonly replayId: string;
}
