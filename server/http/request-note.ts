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

/** Facts about a request while it is served, for its log line. */
export interface RequestNote {
  /** Said in the answer's header, in an error's body and in the log, so that one leads to the others. */
  readonly id: string;
  /** Of a request over MCP its tools' operations, since one may be a batch. Empty: none was reached. */
  readonly operations: OperationId[];
  /** The errors it was refused with, one for each refused call. */
  readonly refusals: ErrorCode[];
  /** Parameters of the challenge that a 401 has. */
  challenge?: string;
  /** Says that it was answered, where its line stays open: it is logged and counted now. */
  readonly answered: () => void;
}

const notes = new WeakMap<Response, RequestNote>();

/** The note of a request that this application serves. */
export function noteOf(response: Response): RequestNote {
  const note = notes.get(response);
  if (note === undefined) throw new Error("a request without a note");
  return note;
}

/**
 * Gives each request its id, and logs and counts it once it was answered or its line broke: at info, probes at debug. Nothing of its
 * path, query, headers or body goes into the log but the operation that it names.
 */
export function requestNotes(logger: Logger, metrics: Metrics): RequestHandler {
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
      const { id: requestId, operations, refusals } = note;
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
    const note: RequestNote = { id: newUuid(), operations: [], refusals: [], answered };
    notes.set(response, note);
    response.setHeader(REQUEST_ID, note.id);
    // Null: the line was cut before the answer was whole.
    response.once("close", () => record(response.writableFinished ? response.statusCode : null));
    within(next);
  };
}
