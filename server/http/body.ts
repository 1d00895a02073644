import { isUtf8 } from "node:buffer";
import express, { type Request, type Response } from "express";
import { BODY_BYTES_MAX, type BodySize } from "../../src/contract/body-size.ts";
import { refusal } from "../../src/domain/errors.ts";
import type { Result } from "../../src/domain/result.ts";
import { ok, refused } from "../../src/domain/result.ts";

const jsonReader = (limit: number) => express.json({ limit, strict: true, verify: assertUtf8 });

const readers = { usual: jsonReader(BODY_BYTES_MAX.usual), large: jsonReader(BODY_BYTES_MAX.large) };

const formReader = express.urlencoded({ extended: false, limit: BODY_BYTES_MAX.usual, parameterLimit: 20 });

/** Rejects bytes that are not UTF-8: decoding would silently insert replacement characters. */
function assertUtf8(_request: unknown, _response: unknown, bytes: Buffer, encoding: string): void {
  if (encoding === "utf-8" && !isUtf8(bytes)) throw new Error("the body is not UTF-8");
}

const hasBody = (request: Request): boolean =>
  request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0;

/**
 * Whether a JSON body is in UTF-8, the default. The parser would also accept UTF-16 and UTF-32, unchecked. Every
 * parameter that could pass for a charset counts, also within quotes, so the parser's choice among several does not
 * matter.
 */
function isInUtf8({ headers }: Request): boolean {
  const charsets = (headers["content-type"] ?? "").matchAll(/;\s*charset\s*=\s*"?([^\s";]*)/gi);
  return [...charsets].every(([, charset = ""]) => charset.toLowerCase() === "utf-8");
}

/** Maximum delay after the headers at which a body counts as having arrived with them. */
const WITH_HEADERS_MS = 20;

export interface ReadBody {
  readonly value: unknown;
  /** Whether the body came so late that the caller must be authenticated again. */
  readonly isDelayed: boolean;
}

/**
 * Reads a JSON body after the caller was admitted. Refuses an oversized body with 413, a body that is neither JSON nor
 * an allowed form with 415, and a malformed one with 400. The value is undefined if there is no body.
 */
export async function readBody(
  request: Request,
  response: Response,
  size: BodySize = "usual",
  mayBeForm = false,
): Promise<Result<ReadBody>> {
  if (!hasBody(request)) return ok({ value: undefined, isDelayed: false });
  const isForm = mayBeForm && request.is("application/x-www-form-urlencoded") !== false;
  if ((!isForm && request.is("application/json") === false) || !isInUtf8(request)) {
    return refused(refusal("UNSUPPORTED_MEDIA_TYPE"));
  }
  const began = performance.now();
  const error = await new Promise<unknown>((resolve) =>
    (isForm ? formReader : readers[size])(request, response, resolve),
  );
  const isDelayed = performance.now() - began > WITH_HEADERS_MS;
  if (error === undefined) return ok({ value: request.body, isDelayed });
  const status = typeof error === "object" && error !== null && "status" in error ? error.status : 400;
  if (status === 413) return refused(refusal("PAYLOAD_TOO_LARGE"));
  if (status === 415) return refused(refusal("UNSUPPORTED_MEDIA_TYPE"));
  return refused(refusal("VALIDATION_FAILED", "The body is not well-formed JSON.", { issues: [] }));
}
