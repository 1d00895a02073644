import type { Response } from "express";
import type { z } from "zod";
import type { errorBody } from "../../src/contract/records.ts";
import type { Refusal } from "../../src/domain/errors.ts";
import { statusOf } from "../../src/domain/errors.ts";
import type { DeepReadonly } from "../handlers/types.ts";
import { requestContextOf } from "./request-context.ts";

/** Returns the flat error body with the request's id, the same for REST and MCP. */
export function errorBodyOf(refusal: Refusal, requestId: string): DeepReadonly<z.output<typeof errorBody>> {
  return {
    error: refusal.code,
    message: refusal.message,
    ...(refusal.issues === undefined ? {} : { issues: refusal.issues }),
    ...(refusal.challenge === undefined ? {} : { challenge: refusal.challenge }),
    ...(refusal.requiredScope === undefined ? {} : { requiredScope: refusal.requiredScope }),
    ...(refusal.missing === undefined ? {} : { missing: refusal.missing }),
    ...(refusal.unknown === undefined ? {} : { unknown: refusal.unknown }),
    ...(refusal.organizations === undefined ? {} : { organizations: refusal.organizations }),
    ...(refusal.retryAfterSeconds === undefined ? {} : { retry_after_seconds: refusal.retryAfterSeconds }),
    requestId,
  };
}

/**
 * Returns the WWW-Authenticate challenge. After an invalid token it says so, which makes clients ask for a new one (RFC
 * 6750).
 */
function challengeOf(response: Response): string {
  const { challenge } = requestContextOf(response);
  const parameters = challenge === undefined ? [] : [challenge];
  if (response.req.headers.authorization !== undefined) parameters.push(INVALID_TOKEN);
  return ["Bearer", parameters.join(", ")].join(" ").trim();
}

const INVALID_TOKEN =
  'error="invalid_token", error_description="The token is unknown, mistyped, revoked or expired."';

export function sendRefusal(response: Response, refusal: Refusal): void {
  const status = statusOf(refusal);
  if (status === 401) response.setHeader("WWW-Authenticate", challengeOf(response));
  if (refusal.retryAfterSeconds !== undefined) {
    response.setHeader("Retry-After", String(refusal.retryAfterSeconds));
  }
  const context = requestContextOf(response);
  context.refusals.push(refusal.code);
  response.status(status).json(errorBodyOf(refusal, context.id));
}
