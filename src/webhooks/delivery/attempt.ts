import { traced, traceHeaders } from "../../lib/tracing.ts";
import { BACKOFF_SECONDS, isAcknowledged, pauseAfter } from "../../domain/webhooks/attempts.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { GuardedOutcome } from "../../lib/guarded-fetch/guarded-fetch.ts";
import type { DeliveryEnd, DeliveryInput } from "../../messages/delivery.ts";
import { signatureHeaders } from "../signature.ts";
import type { Clock } from "../../payments/ports.ts";
import type {
  AttemptRecord,
  DeliveryDocument,
  EndpointDocument,
  WebhookCollections,
} from "../../store/webhook-documents.ts";
import { type DeliveryOutcomes, isDisabledBy } from "./outcomes.ts";
import type { GuardedSender, OnEndpointDisabled, WebhookSecrets } from "./ports.ts";
import type { DeliverySlots } from "./slots.ts";

/** Timeout of the whole exchange with a receiver. */
const EXCHANGE_TIMEOUT_MS = 15_000;
/** Tolerated difference between Temporal's clock and a worker's. */
const TOO_EARLY_MS = 1_000;
const USER_AGENT = "agent-spending-control-webhooks";

export type Attempted =
  | { readonly kind: "ended"; readonly end: DeliveryEnd }
  | { readonly kind: "again"; readonly afterMs: number; readonly reason: string };

export interface AttemptDependencies {
  readonly accessProofs: Pick<AccessProofs, "genuine">;
  readonly webhooks: WebhookCollections;
  readonly outcomes: DeliveryOutcomes;
  readonly sender: GuardedSender;
  readonly secrets: WebhookSecrets;
  readonly slots: DeliverySlots;
  readonly onEndpointDisabled: OnEndpointDisabled;
  readonly backoffSeconds?: readonly number[];
  readonly clock: Clock;
  readonly onAttempt: (attempt: AttemptRecord) => void;
}

const ended = (end: DeliveryEnd): Attempted => ({ kind: "ended", end });

/**
 * Makes the next attempt of a delivery. Repeatable: an attempt that was made but not recorded, because its process
 * died, is repeated under the same number, so a receiver may see a delivery twice, but never not at all.
 */
export class DeliveryAttempts {
  readonly #dependencies: AttemptDependencies;

  constructor(dependencies: AttemptDependencies) {
    this.#dependencies = dependencies;
  }

  /** Throws if MongoDB is not reachable. */
  async next(input: DeliveryInput): Promise<Attempted> {
    const slot = this.#dependencies.slots.take(input);
    if (typeof slot === "number") {
      return { kind: "again", afterMs: slot, reason: "too many exchanges with its receiver are in flight" };
    }
    const began = performance.now();
    try {
      return await this.#withSlot(input);
    } finally {
      slot.release(performance.now() - began);
    }
  }

  async #withSlot({ deliveryId, endpointId, organizationId, run }: DeliveryInput): Promise<Attempted> {
    const { accessProofs, clock, outcomes, webhooks } = this.#dependencies;
    // An intruder in Temporal can name any two ids: an event goes only to its own endpoint.
    const [delivery, found] = await Promise.all([
      webhooks.deliveries.findOne({ _id: deliveryId, endpointId, organizationId }),
      webhooks.endpoints.findOne({ _id: endpointId, organizationId }),
    ]);
    if (delivery === null || delivery.run !== run) return ended("superseded");
    if (delivery.status !== "pending") return this.#end(delivery, found, delivery.status);
    const endpoint = accessProofs.genuine("webhook", found);
    // If either record is forged, nothing is sent or signed.
    const isGenuine = accessProofs.genuine("delivery", delivery) !== null;
    if (!isGenuine || endpoint === null || (!endpoint.isActive && !delivery.isTest)) {
      await outcomes.dropped(delivery);
      return ended("dropped");
    }
    // A worker that was presumed dead has made and recorded this attempt.
    const earlyMs = (delivery.nextAttemptAt?.getTime() ?? 0) - clock().getTime();
    if (earlyMs > TOO_EARLY_MS)
      return { kind: "again", afterMs: earlyMs, reason: "the attempt is not due yet" };
    return this.#record(delivery, await this.#send(delivery, endpoint));
  }

  async #send(delivery: DeliveryDocument, endpoint: EndpointDocument): Promise<AttemptRecord> {
    const { clock, sender } = this.#dependencies;
    const at = clock();
    const send = () =>
      sender.send({
        url: endpoint.url,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "user-agent": USER_AGENT,
          ...traceHeaders(),
          ...signatureHeaders({
            deliveryId: delivery._id,
            eventType: delivery.eventType,
            body: delivery.body,
            at,
            secrets: this.#signingSecrets(endpoint),
          }),
        },
        body: delivery.body,
        timeoutMs: EXCHANGE_TIMEOUT_MS,
      });
    const attributes = { "event.type": delivery.eventType };
    const causedBy = { traceparent: delivery.traceparent };
    const outcome = await traced("webhook", { kind: "client", attributes, causedBy }, send);
    return attemptRecord(delivery.attemptCount + 1, at, outcome);
  }

  async #record(delivery: DeliveryDocument, attempt: AttemptRecord): Promise<Attempted> {
    const { backoffSeconds = BACKOFF_SECONDS, clock, onAttempt, outcomes } = this.#dependencies;
    onAttempt(attempt);
    if (attempt.failureReason === null) {
      const isWritten = await outcomes.succeeded(delivery, attempt);
      return isWritten ? ended("succeeded") : this.#reread(delivery);
    }
    const pauseSeconds = delivery.isTest ? null : pauseAfter(delivery.runAttempts + 1, backoffSeconds);
    if (pauseSeconds === null) {
      await outcomes.failed(delivery, attempt);
      return this.#reread(delivery);
    }
    // Measured from the start of one attempt to the start of the next, however long the receiver took.
    const nextAttemptAt = new Date(attempt.at.getTime() + pauseSeconds * 1_000);
    const isPending = await outcomes.retried(delivery, attempt, nextAttemptAt);
    if (!isPending) return this.#reread(delivery);
    const afterMs = Math.max(0, nextAttemptAt.getTime() - clock().getTime());
    return { kind: "again", afterMs, reason: `attempt ${attempt.number}: ${attempt.failureReason}` };
  }

  /** Reads the current state, whichever process wrote it. */
  async #reread({ _id, endpointId, run }: DeliveryDocument): Promise<Attempted> {
    const { webhooks } = this.#dependencies;
    const delivery = await webhooks.deliveries.findOne({ _id });
    if (delivery === null || delivery.run !== run) return ended("superseded");
    if (delivery.status === "pending") throw new Error(`the outcome of ${_id} was not recorded`);
    const endpoint =
      delivery.status === "failed" ? await webhooks.endpoints.findOne({ _id: endpointId }) : null;
    return this.#end(delivery, endpoint, delivery.status);
  }

  /**
   * Ends a delivery. The owner learns of a disabled endpoint before the delivery that disabled it is over, however
   * often that is repeated.
   */
  async #end(
    delivery: DeliveryDocument,
    endpoint: EndpointDocument | null,
    end: "succeeded" | "failed" | "dropped",
  ): Promise<Attempted> {
    if (endpoint !== null && isDisabledBy(endpoint, delivery))
      await this.#dependencies.onEndpointDisabled(endpoint);
    return ended(end);
  }

  #signingSecrets({ previousSecret, secret }: EndpointDocument): string[] {
    const { clock, secrets } = this.#dependencies;
    const isSigning = previousSecret !== null && previousSecret.expiresAt > clock();
    return (isSigning ? [secret, previousSecret] : [secret]).map((each) => secrets.open(each));
  }
}

function attemptRecord(number: number, at: Date, outcome: GuardedOutcome): AttemptRecord {
  const { elapsedMs } = outcome;
  const made = { number, at, responseTimeMs: Math.round(elapsedMs) };
  if (outcome.kind === "failed") {
    return { ...made, httpStatus: null, failureReason: outcome.reason, responseExcerpt: null };
  }
  const { bodyExcerpt, httpStatus } = outcome;
  return {
    ...made,
    httpStatus,
    failureReason: isAcknowledged(httpStatus) ? null : `it answered ${httpStatus}`,
    responseExcerpt: bodyExcerpt === "" ? null : bodyExcerpt,
  };
}
