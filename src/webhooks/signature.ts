import { createHmac } from "node:crypto";
import { SECRET_PREFIX, svcSignature } from "./verify-webhook.ts";

/** Signatures of deliveries. Receivers verify them with verify-webhook.ts. */

const SECRET_LENGTH_BYTES = 32;
const MS_PER_SECOND = 1_000;

/** A new signing secret: `whsec_` and the base64 of 32 random bytes. */
export function newWebhookSecret(randomBytes: (sizeBytes: number) => Uint8Array): string {
  const bytes = randomBytes(SECRET_LENGTH_BYTES);
  if (bytes.length !== SECRET_LENGTH_BYTES)
    throw new Error("The source of random bytes gave too few or too many.");
  return SECRET_PREFIX + Buffer.from(bytes).toString("base64");
}

export interface Signed {
  readonly deliveryId: string;
  readonly eventType: string;
  /** To the letter as it is sent. */
  readonly body: string;
  readonly at: Date;
  /** Newest first; two during a rotation. */
  readonly secrets: readonly string[];
}

/**
 * The headers of a delivery that say what it is and prove whose. Each signature is given in two ways: as `Svc-Signature`,
 * and as Standard Webhooks has it, for receivers that use a library for that.
 */
export function signatureHeaders({
  at,
  body,
  deliveryId,
  eventType,
  secrets,
}: Signed): Record<string, string> {
  if (secrets.length === 0) throw new Error("A delivery is not sent without a signature.");
  const timestamp = String(Math.floor(at.getTime() / MS_PER_SECOND));
  return {
    "Svc-Signature": secrets.map((secret) => svcSignature(secret, timestamp, body)).join(","),
    "Svc-Timestamp": timestamp,
    "Svc-Event-Type": eventType,
    "Svc-Delivery-Id": deliveryId,
    "webhook-id": deliveryId,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets
      .map((secret) => standardSignature(secret, `${deliveryId}.${timestamp}.${body}`))
      .join(" "),
  };
}

/** Standard Webhooks take the secret's bytes for the key, where `Svc-Signature` takes its letters. */
function standardSignature(secret: string, signed: string): string {
  if (!secret.startsWith(SECRET_PREFIX)) throw new Error(`A webhook secret begins with ${SECRET_PREFIX}.`);
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
