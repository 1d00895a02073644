import express, { type Request, type Response, type Router } from "express";
import type { StripeBilling } from "../../src/billing/stripe-billing.ts";
import { BODY_BYTES_MAX } from "../../src/contract/body-size.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Logger } from "../../src/lib/logger.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";
import type { RawMessage } from "../../src/payments/card-issuer.ts";
import type { CardMessages, Received } from "../../src/rails/card/inbound.ts";
import type { Admission } from "./admission.ts";
import { sendRefusal } from "./errors.ts";
import { requestContextOf } from "./request-context.ts";
import { arrivedMsOf } from "./slices.ts";

const CONNECTION = /^rail_[0-9A-HJKMNP-TV-Z]{26}$/;

/** Signatures cover the raw bytes. */
const rawBody = express.raw({ type: () => true, limit: BODY_BYTES_MAX.usual, inflate: false });

/**
 * Receives messages of card issuers (authorization requests and events) and of the operator's billing. The signature is
 * the credential. A message with an invalid signature counts against its address; a valid one of a card issuer counts
 * against its connection.
 */
export function signedMessagesRouter(
  messages: CardMessages,
  billing: StripeBilling,
  admission: Admission,
  logger: Logger,
): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const serve =
    (take: (raw: RawMessage, connectionId: string, arrivedMs: number) => Promise<Received>) =>
    async (request: Request<{ connection?: string }>, response: Response): Promise<void> => {
      try {
        const { connection } = request.params;
        const isNamed = connection === undefined || CONNECTION.test(connection);
        const raw = isNamed ? await rawMessage(request, response) : null;
        const received: Received =
          raw === null ? { kind: "unknown" } : await take(raw, connection ?? "", arrivedMsOf(request));
        await answer(received, request, response);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        logger.warn(
          { err: error, requestId: requestContextOf(response).id },
          "a signed message could not be processed",
        );
        admission.showUncounted(response);
        sendRefusal(response, refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
      }
    };

  async function answer(
    received: Received,
    request: Request<{ connection?: string }>,
    response: Response,
  ): Promise<void> {
    if (received.kind === "unknown" || received.kind === "forged") {
      const counted = await admission.anyone(request, response);
      const code = received.kind === "unknown" ? "NOT_FOUND" : "UNAUTHORIZED";
      return sendRefusal(response, counted.ok ? refusal(code) : counted.refusal);
    }
    admission.showUncounted(response);
    if (received.kind === "over") return sendRefusal(response, received.refusal);
    if (received.kind !== "answered") return void response.status(200).json({});
    const { body, headers } = received.answer;
    response.status(200).set(headers).send(body);
  }

  router.post(
    "/v1/rails/:connection/authorizations",
    serve((raw, connection, arrivedMs) => messages.authorization(connection, raw, arrivedMs)),
  );
  router.post(
    "/v1/rails/:connection/events",
    serve((raw, connection) => messages.event(connection, raw)),
  );
  router.post(
    "/v1/billing/stripe/events",
    serve((raw) => billing.event(raw)),
  );
  return router;
}

/** Returns the message; null if its body is missing or too large. */
async function rawMessage(
  request: Request<{ connection?: string }>,
  response: Response,
): Promise<RawMessage | null> {
  const error = await new Promise<unknown>((resolve) => rawBody(request, response, resolve));
  const body: unknown = request.body;
  if (error !== undefined || !Buffer.isBuffer(body)) return null;
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(",") : value,
    ]),
  );
  return { headers, body };
}
