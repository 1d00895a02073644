import { requestSpan } from "../../src/lib/tracing.ts";
import type { RequestHandler, Response } from "express";
import type { OperationId } from "../../src/contract/registry.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { newUuid } from "../../src/lib/ids.ts";
import type { Logger } from "../../src/lib/logger.ts";
import type { Metrics } from "../../src/metrics/metrics.ts";
import { surfaceOf } from "./admission.ts";
import { PROBES } from "./probes.ts";

export const REQUEST_ID = "X-Request-Id";

/** Facts about a request in progress, for its log line. */
export interface RequestContext {
  /** Id in the response header, the error body and the log, which connects them. */
  readonly id: string;
  /** Operations reached. Over MCP these are the operations of its tools, since a request may be a batch. */
  readonly operations: OperationId[];
  /** Errors returned, one for each refused call. */
  readonly refusals: ErrorCode[];
  /** Parameters of the challenge in a 401. */
  challenge?: string;
  /** Logs and counts the request now, for a response whose connection stays open. */
  readonly answered: () => void;
}

const contexts = new WeakMap<Response, RequestContext>();

export function requestContextOf(response: Response): RequestContext {
  const context = contexts.get(response);
  if (context === undefined) throw new Error("a request has no context");
  return context;
}

/**
 * Gives each request an id. Logs and counts the request once it is answered or its connection breaks: at info level,
 * probes at debug. The log names the operation but contains nothing else of path, query, headers or body.
 */
export function requestContexts(logger: Logger, metrics: Metrics): RequestHandler {
  return (request, response, next) => {
    const began = performance.now();
    const surface = surfaceOf(request.path);
    const level = PROBES.has(request.path) ? "debug" : "info";
    const span = requestSpan(request.headers, request.method);
    const within = (work: () => void): void => (span === null ? work() : span.run(work));
    let isLogged = false;
    const record = (status: number | null): void => {
      if (isLogged) return;
      isLogged = true;
      const { id: requestId, operations, refusals } = context;
      const ms = performance.now() - began;
      const operation = operations.length === 0 ? null : operations.join(",");
      within(() => metrics.requestEnded({ surface, operations, status, refusals, seconds: ms / 1_000 }));
      const line = {
        requestId,
        surface,
        operation,
        status,
        ...(refusals.length === 0 ? {} : { code: refusals.join(",") }),
        ms: Math.round(ms * 10) / 10,
      };
      within(() => logger[level](line, "request"));
      const attributes = { "request.id": requestId, "http.response.status_code": status ?? 0 };
      span?.end(operation ?? `${request.method} ${surface ?? "page"}`, attributes, (status ?? 500) >= 500);
    };
    const answered = () => record(response.statusCode);
    const context: RequestContext = { id: newUuid(), operations: [], refusals: [], answered };
    contexts.set(response, context);
    response.setHeader(REQUEST_ID, context.id);
    // Null: the connection broke before the response was complete.
    response.once("close", () => record(response.writableFinished ? response.statusCode : null));
    within(next);
  };
}
