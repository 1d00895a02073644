import type { EventDocument } from "../../store/documents.ts";
import type { DeliveryInput, ReplayInput, SecretExpiryInput } from "../../messages/delivery.ts";
import type { GuardedOutcome, GuardedRequest } from "../../lib/guarded-fetch/guarded-fetch.ts";
import type { EndpointDocument, SealedSecret } from "../../store/webhook-documents.ts";

/** Starts and signals the workflows of webhooks. Each call may be repeated. */
export interface WebhookWorkflows {
  startDelivery(input: DeliveryInput): Promise<void>;
  /** Tells a delivery's workflow that its endpoint is disabled or deleted. An ended one is ignored. */
  dropDelivery(input: Pick<DeliveryInput, "deliveryId" | "run">): Promise<void>;
  startReplay(input: ReplayInput): Promise<void>;
  startSecretExpiry(input: SecretExpiryInput): Promise<void>;
}

/** Sends what callers have named the address of, to nowhere but the public internet. */
export interface Sending {
  send(request: GuardedRequest): Promise<GuardedOutcome>;
}

/** Opens signing secrets. */
export interface WebhookSecrets {
  open(secret: SealedSecret): string;
}

/** Renders an event's `data`: records as the API shows them, under their nouns. */
export type EventData = (event: EventDocument) => object;

/** Told of an endpoint that was disabled because it failed. Once for each delivery and run. Idempotent. */
export type OnEndpointDisabled = (endpoint: EndpointDocument) => Promise<void>;

/** Tells the people who want to know of payments that were put on hold; the number of signals sent. May be repeated. */
export type NoticeHeld = (events: readonly EventDocument[]) => Promise<number>;
