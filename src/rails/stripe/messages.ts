import { createHmac, timingSafeEqual } from "node:crypto";
import { mcOf } from "../../domain/money.ts";
import type { Incoming, IssuerAnswer, NetworkRequest, RawMessage } from "../../payments/card-issuer.ts";
import { STRIPE_VERSION } from "./client.ts";
import {
  authorizationObject,
  disputeObject,
  eventObject,
  jsonOf,
  topupObject,
  transactionObject,
} from "./objects.ts";

/** Age at which a signed message counts as a replay. */
const SIGNATURE_TOLERANCE_SECONDS = 300;
const REQUEST_TYPE = "issuing_authorization.request";

/** Events that the service listens for. Requests go to the address that a person has set in Stripe. */
export const EVENT_TYPES = [
  "issuing_authorization.created",
  "issuing_authorization.updated",
  "issuing_transaction.created",
  "issuing_transaction.updated",
  "issuing_dispute.submitted",
  "issuing_dispute.closed",
  "issuing_dispute.funds_reinstated",
  "issuing_dispute.funds_rescinded",
  "topup.succeeded",
] as const;

/** Metadata key by which a dispute names its card, which the event itself does not. */
export const CARD_KEY = "card";

/** Parts of events' objects. A schema is compiled when it is first used, so it is made once. */
const ofCard = transactionObject.pick({ card: true });
/** Without a history, a request does not show which of its authorization it is. */
const requestObject = authorizationObject.extend({
  request_history: authorizationObject.shape.request_history.optional(),
});
const withMetadata = disputeObject.pick({ metadata: true });

export interface MessageReader {
  readonly secrets: readonly string[];
  /** Null if not known yet. */
  readonly accountId: string | null;
}

/** Whether the raw bytes have a signature of scheme `v1` by one of the secrets, made within the tolerance of `now`. */
export function isSigned({ body, headers }: RawMessage, secrets: readonly string[], now: Date): boolean {
  const parts = (headers["stripe-signature"] ?? "").split(",").map((part) => part.trim().split("="));
  const valuesOf = (scheme: string): string[] =>
    parts.filter(([name]) => name === scheme).map(([, value]) => value ?? "");
  const [timestamp = ""] = valuesOf("t");
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now.getTime() / 1_000 - Number(timestamp)) > SIGNATURE_TOLERANCE_SECONDS) return false;
  const given = valuesOf("v1").map((value) => Buffer.from(value, "hex"));
  return secrets.some((secret) => {
    const expected = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest();
    return given.some((value) => value.length === expected.length && timingSafeEqual(value, expected));
  });
}

/** Reads a message from Stripe after verifying its signature. */
export function readMessage(raw: RawMessage, { accountId, secrets }: MessageReader, now: Date): Incoming {
  if (!isSigned(raw, secrets, now)) return { kind: "forged" };
  return incomingFrom(jsonOf(raw.body), accountId);
}

/** Converts an event to a message; irrelevant events and those of other accounts become `other`. */
export function incomingFrom(value: unknown, accountId: string | null): Incoming {
  const event = eventObject.safeParse(value);
  if (!event.success) return { kind: "other" };
  const { account, data, id: eventId, type } = event.data;
  if (account !== null && accountId !== null && account !== accountId) return { kind: "other" };
  if (type === REQUEST_TYPE) return requestIn(data.object);
  if (type.startsWith("issuing_authorization.") || type.startsWith("issuing_transaction.")) {
    const found = ofCard.safeParse(data.object);
    return found.success ? { kind: "hint", eventId, cardRef: found.data.card } : { kind: "other" };
  }
  if (type.startsWith("issuing_dispute.")) {
    const cardRef = withMetadata.safeParse(data.object).data?.metadata[CARD_KEY];
    return cardRef === undefined ? { kind: "other" } : { kind: "hint", eventId, cardRef };
  }
  if (type !== "topup.succeeded") return { kind: "other" };
  const deposit = topupObject.safeParse(data.object);
  if (!deposit.success || deposit.data.currency !== "usd") return { kind: "other" };
  return { kind: "deposit", eventId, depositId: deposit.data.id, amountCents: deposit.data.amount };
}

function requestIn(value: unknown): Incoming {
  const { data } = requestObject.safeParse(value);
  if (data === undefined || data.pending_request === null) return { kind: "other" };
  const { card, id, merchant_data: merchant, pending_request: asked, request_history } = data;
  return {
    kind: "request",
    cardRef: card,
    authorization: id,
    position: request_history?.length ?? null,
    amountMc: mcOf(asked.amount),
    currency: asked.currency.toUpperCase(),
    merchant: {
      name: merchant.name ?? "",
      category: merchant.category_code ?? null,
      networkId: merchant.network_id ?? null,
      country: merchant.country ?? null,
    },
  };
}

/** Returns the answer to a request. It must be sent with status 200; otherwise Stripe treats it as an error. */
export const answerTo = (_request: NetworkRequest, refusal: string | null): IssuerAnswer => ({
  headers: { "content-type": "application/json", "stripe-version": STRIPE_VERSION },
  body: JSON.stringify(refusal === null ? { approved: true } : { approved: false, metadata: { refusal } }),
});
