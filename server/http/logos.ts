import express, { type Response, type Router } from "express";
import { refusal } from "../../src/domain/errors.ts";
import { LOGO_PATH, type LogoImage, type Logos } from "../../src/containers/logos.ts";
import type { Logger } from "../../src/lib/logger.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";
import type { Admission } from "./admission.ts";
import { sendRefusal } from "./errors.ts";
import { requestContextOf } from "./request-context.ts";

/** Format of a logo's name: an HMAC-SHA-256 in base64url. */
const NAME = /^[A-Za-z0-9_-]{43}$/;

/** Cache policy: the bytes under a name never change. */
const CACHED = "public, max-age=31536000, immutable";

/**
 * Serves logos to every client that has their link. The bytes are from outside: they are sent with the type found at
 * fetching, must not be sniffed as another, and can neither run nor load anything.
 */
export function logoRouter(logos: Logos, admission: Admission, logger: Logger): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get(`${LOGO_PATH}/:name`, async (request, response) => {
    const { name } = request.params;
    if (!NAME.test(name)) return sendRefusal(response, refusal("NOT_FOUND"));
    try {
      const admitted = await admission.logo(request);
      if (!admitted.ok) return sendRefusal(response, admitted.refusal);
      const logo = await logos.find(name);
      if (logo === null) return sendRefusal(response, refusal("NOT_FOUND"));
      send(response, logo);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      logger.warn(
        { err: error, requestId: requestContextOf(response).id },
        "a part of the service is not reachable",
      );
      sendRefusal(response, refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
    }
  });
  return router;
}

function send(response: Response, { bytes, type }: LogoImage): void {
  response.setHeader("Content-Type", `image/${type}`);
  response.setHeader("Cache-Control", CACHED);
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("Content-Security-Policy", "default-src 'none'; sandbox");
  response.send(Buffer.from(bytes));
}
