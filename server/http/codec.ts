import { createHash, timingSafeEqual } from "node:crypto";
import express, { type Request, type Response, type Router } from "express";
import type { Payload } from "@temporalio/common";
import { z } from "zod";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import type { Logger } from "../../src/lib/logger.ts";
import { isUnavailable } from "../../src/lib/unavailable.ts";
import type { Admission } from "./admission.ts";
import { readBody } from "./body.ts";
import { authorizationOf } from "./credentials.ts";
import { sendRefusal } from "./errors.ts";
import { requestContextOf } from "./request-context.ts";

/** Readers of payloads, besides the owner of a sole organization. */
export interface PayloadReaders {
  /** Operators' token; null if there is none. */
  readonly token: string | null;
  /** Origins of Temporal UIs. */
  readonly origins: readonly string[];
}

export interface CodecDependencies extends PayloadReaders {
  readonly admission: Admission;
  readonly decode: (payloads: Payload[]) => Promise<Payload[]>;
  /** Whether the service has at most one organization. */
  readonly isOnlyOrganization: () => Promise<boolean>;
  readonly logger: Logger;
}

const PATH = "/codec/decode";
const PREFLIGHT_CACHED_SECONDS = "600";
const ALLOWED_HEADERS = "authorization, content-type, x-namespace";

const base64 = z.base64();
const requestBody = z.object({
  payloads: z.array(
    z.object({ metadata: z.record(z.string(), base64).default({}), data: base64.default("") }),
  ),
});

/**
 * Remote codec with which the Temporal UI and the `temporal` CLI decode payloads. It serves operators with the token,
 * and an owner while there is only one organization, since a namespace holds the payloads of all. It never encodes: its
 * output would pass as this service's own.
 */
export function codecRouter(dependencies: CodecDependencies): Router {
  const { logger, origins } = dependencies;
  const router = express.Router({ caseSensitive: true, strict: true });
  router.options(PATH, (request, response, next) => {
    if (!allowOrigin(request, response, origins)) return next();
    response.setHeader("Access-Control-Allow-Methods", "POST");
    response.setHeader("Access-Control-Allow-Headers", ALLOWED_HEADERS);
    response.setHeader("Access-Control-Max-Age", PREFLIGHT_CACHED_SECONDS);
    response.status(204).end();
  });
  router.post(PATH, async (request, response) => {
    try {
      const decoded = await answerTo(dependencies, request, response);
      if (decoded.ok) response.json({ payloads: decoded.value.map(jsonOf) });
      else sendRefusal(response, decoded.refusal);
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

async function answerTo(
  dependencies: CodecDependencies,
  request: Request,
  response: Response,
): Promise<Result<Payload[]>> {
  const isForeign =
    request.headers.origin !== undefined && !allowOrigin(request, response, dependencies.origins);
  if (isForeign) {
    const counted = await dependencies.admission.anyone(request, response);
    return counted.ok ? refused(refusal("ORIGIN_NOT_ALLOWED")) : counted;
  }
  const admitted = await admittedReader(dependencies, request, response);
  if (!admitted.ok) return admitted;
  const read = await readBody(request, response, "large");
  if (!read.ok) return read;
  const body = requestBody.safeParse(read.value.value);
  if (!body.success)
    return refused(refusal("VALIDATION_FAILED", "Post `{ payloads: [{ metadata, data }] }` in base64."));
  return ok(await dependencies.decode(body.data.payloads.map(payloadOf)));
}

async function admittedReader(
  { admission, isOnlyOrganization, origins, token }: CodecDependencies,
  request: Request,
  response: Response,
): Promise<Result<null>> {
  const authorization = authorizationOf(request);
  if (authorization !== undefined && token !== null && isToken(authorization, token)) {
    const counted = await admission.anyone(request, response);
    return counted.ok ? ok(null) : counted;
  }
  const known = await admission.ofUi(request, response, origins);
  if (!known.ok) return known;
  const { principal } = known.value;
  if (principal?.type !== "session") return refused(refusal("SESSION_REQUIRED"));
  if (principal.mustEnrol) return refused(refusal("SECOND_FACTOR_ENROLMENT_REQUIRED"));
  if (principal.role !== "owner") return refused(refusal("ROLE_REQUIRED"));
  if (await isOnlyOrganization()) return ok(null);
  return refused(
    refusal(
      "WRONG_CREDENTIAL",
      "The service has several organizations: payloads are decoded with TEMPORAL_CODEC_TOKEN alone.",
    ),
  );
}

/** Sets the CORS headers if the origin is a Temporal UI's. Returns whether it is. */
function allowOrigin({ headers }: Request, response: Response, origins: readonly string[]): boolean {
  response.vary("Origin");
  const { origin } = headers;
  if (origin === undefined || !origins.includes(origin)) return false;
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Allow-Credentials", "true");
  return true;
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Compares in constant time. The bearer scheme is optional, since users of the CLI may omit it. */
const isToken = (authorization: string, token: string): boolean =>
  timingSafeEqual(digest(authorization.replace(/^Bearer +/i, "")), digest(token));

const payloadOf = ({ data, metadata }: z.output<typeof requestBody>["payloads"][number]): Payload => ({
  data: Buffer.from(data, "base64"),
  metadata: Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value, "base64")]),
  ),
});

const jsonOf = ({ data, metadata }: Payload) => ({
  metadata: Object.fromEntries(
    Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString("base64")]),
  ),
  data: Buffer.from(data ?? []).toString("base64"),
});
