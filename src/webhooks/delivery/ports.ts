import type { EventDocument } from "../../store/documents.ts";
import type { DeliveryInput, ReplayInput, SecretExpiryInput } from "../../messages/delivery.ts";
import type { GuardedOutcome, GuardedRequest } from "../../lib/guarded-fetch/guarded-fetch.ts";
import type { EndpointDocument, SealedSecret } from "../../store/webhook-documents.ts";

/** Starts and signals the workflows of webhooks. Each call is repeatable. */
export interface WebhookWorkflows {
  startDelivery(input: DeliveryInput): Promise<void>;
  /** Tells a delivery's workflow that its endpoint is disabled or deleted. An ended workflow is ignored. */
  dropDelivery(input: Pick<DeliveryInput, "deliveryId" | "run">): Promise<void>;
  startReplay(input: ReplayInput): Promise<void>;
  startSecretExpiry(input: SecretExpiryInput): Promise<void>;
}

/** Sends to addresses given by callers, but only on the public internet. */
export interface GuardedSender {
  send(request: GuardedRequest): Promise<GuardedOutcome>;
}

export interface WebhookSecrets {
  open(secret: SealedSecret): string;
}

/** Renders an event's `data`: records in the API's form, keyed by noun. */
export type RenderEventData = (event: EventDocument) => object;

/** Called for an endpoint that was disabled because of its failures, once per delivery and run. Idempotent. */
export type OnEndpointDisabled = (endpoint: EndpointDocument) => Promise<void>;

/** Notifies people of payments put on hold; resolves to the number of signals sent. Repeatable. */
export type NoticeHeld = (events: readonly EventDocument[]) => Promise<number>;
