import { createHmac } from "node:crypto";
import { SECRET_PREFIX, svcSignature } from "./verify-webhook.ts";

/** Signatures of deliveries. Receivers verify them with verify-webhook.ts. */

const SECRET_LENGTH_BYTES = 32;
const MS_PER_SECOND = 1_000;

/** Returns a new signing secret: `whsec_` and the base64 of 32 random bytes. */
export function newWebhookSecret(randomBytes: (sizeBytes: number) => Uint8Array): string {
  const bytes = randomBytes(SECRET_LENGTH_BYTES);
  if (bytes.length !== SECRET_LENGTH_BYTES)
    throw new Error("The source of random bytes gave too few or too many.");
  return SECRET_PREFIX + Buffer.from(bytes).toString("base64");
}

export interface Signed {
  readonly deliveryId: string;
  readonly eventType: string;
  /** The exact body sent. */
  readonly body: string;
  readonly at: Date;
  /** Newest first; two during a rotation. */
  readonly secrets: readonly string[];
}

/**
 * Returns a delivery's headers, which identify it and prove its origin. Each signature is given twice: as
 * `Svc-Signature`, and in the format of Standard Webhooks, for receivers that use its library.
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

/** Signs in the format of Standard Webhooks, whose key is the secret's decoded bytes; `Svc-Signature` uses its text. */
function standardSignature(secret: string, signed: string): string {
  if (!secret.startsWith(SECRET_PREFIX)) throw new Error(`A webhook secret begins with ${SECRET_PREFIX}.`);
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
