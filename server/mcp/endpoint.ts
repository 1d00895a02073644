import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isLegacyRequest } from "@modelcontextprotocol/server";
import type { Request, RequestHandler, Response } from "express";
import { z } from "zod";
import { ALL_PAYMENT_TOOLS } from "../../src/contract/rails.ts";
import { refusal } from "../../src/domain/errors.ts";
import { errnoOf } from "../../src/lib/durable-files.ts";
import { Arrival } from "../../src/lib/deadline.ts";
import { type Admission, isFromCache } from "../http/admission.ts";
import { readBody } from "../http/body.ts";
import type { RequestOrigins } from "../http/request-origins.ts";
import { sendRefusal } from "../http/errors.ts";
import { requestContextOf } from "../http/request-context.ts";
import type { Pipeline } from "../pipeline/pipeline.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import type { Principal } from "../../src/identity/principals.ts";
import { requestedProgressOf, withoutProgress } from "./progress.ts";
import { malformedCalls } from "./refusals.ts";
import { Toolset } from "./toolset.ts";
import type { CurrentProtocol } from "./current-protocol.ts";
import { serveEarlierProtocols, type Served } from "./earlier-protocols.ts";

export interface McpDependencies {
  readonly admission: Admission;
  readonly pipeline: Pipeline;
  readonly origins: RequestOrigins;
  readonly currentProtocol: CurrentProtocol;
}

/**
 * Serves `POST /mcp`, Streamable HTTP without sessions: each request carries its credential and is self-contained, so
 * any server process can take it. Both generations of the protocol share the address and the tools.
 */
export function mcpEndpoint({
  admission,
  currentProtocol,
  origins,
  pipeline: operations,
}: McpDependencies): RequestHandler {
  return async (request, response) => {
    const arrival = new Arrival(() => response.destroyed);
    const foreign = origins.refusalOf(request);
    if (foreign !== null) {
      const counted = await admission.anyone(request, response);
      return sendRefusal(response, counted.ok ? foreign : counted.refusal);
    }
    const admitted = await admission.known(request, response, "mcp", { mayUseCache: true });
    if (!admitted.ok) return sendRefusal(response, admitted.refusal);
    if (!hasToolset(admitted.value.principal)) return sendRefusal(response, refusal("UNAUTHORIZED"));
    const read = await arrival.excluding(readBody(request, response));
    const { isDelayed, value: body } = read.ok ? read.value : UNREAD;
    const needsCurrentAgent = isDelayed || (isFromCache(admitted.value) && !isPlainPayment(body));
    const still = needsCurrentAgent ? await admission.still(request, "mcp", admitted.value) : admitted;
    if (!still.ok) return sendRefusal(response, still.refusal);
    if (!read.ok) return sendRefusal(response, read.refusal);
    const { principal } = still.value;
    if (!hasToolset(principal)) return sendRefusal(response, refusal("UNAUTHORIZED"));
    const counted = await admission.more(request, response, "mcp", admitted.value, furtherMessages(body));
    if (!counted.ok) return sendRefusal(response, counted.refusal);
    const context = requestContextOf(response);
    const toolset = new Toolset(operations, { requester: { ...still.value, principal }, arrival, context });
    const asked = requestOf(request, response);
    const message = accepts(request, STREAM_TYPE) ? body : withoutProgress(body);
    const isEarlier = await isLegacyRequest(asked, message);
    const served = await (isEarlier
      ? serveEarlierProtocols(toolset, asked, message)
      : currentProtocol.serve(toolset, asked, message));
    // A payment that the protocol refused has reached no ledger.
    const isUnjudged = isFromCache(still.value) && context.operations.length === 0;
    const current = isUnjudged ? await admission.still(request, "mcp", still.value) : still;
    const inCall = Array.isArray(body) || isStream(served.answer) ? null : toolset.refusedCredential;
    const lost = current.ok ? inCall : current.refusal;
    if (lost === null) return sendAnswer(response, served, body, context.id);
    served.end();
    // The call has already recorded its refusal; the request must count one only.
    context.refusals.length = 0;
    sendRefusal(response, lost);
  };
}

const UNREAD = { isDelayed: false, value: null };

/** Whether the principal has tools. A person's session is not a credential for MCP. */
const hasToolset = (principal: Principal | null): principal is Exclude<Principal, SessionPrincipal> =>
  principal !== null && principal.type !== "session";

/**
 * Answers other methods as the protocol prescribes for a server without streams and sessions. Clients retry GET, so it
 * counts against no limit and nothing is looked up.
 */
export function mcpOtherMethods({ admission, origins }: McpDependencies): RequestHandler {
  return (request, response) => {
    admission.showUncounted(response);
    const foreign = origins.refusalOf(request);
    if (foreign !== null) return sendRefusal(response, foreign);
    response.setHeader("Allow", "POST");
    sendRefusal(response, refusal("METHOD_NOT_ALLOWED"));
  };
}

/** A JSON-RPC batch counts as its number of messages, so that it does not bypass the limit. */
const furtherMessages = (body: unknown): number => (Array.isArray(body) ? body.length - 1 : 0);

const paying = z.looseObject({
  method: z.literal("tools/call"),
  params: z.looseObject({ name: z.enum(ALL_PAYMENT_TOOLS) }),
});

/**
 * Whether a request is a single payment without a stream. Its agent may come from the cache: the ledger has the agent's
 * current state, and can still refuse the credential of the whole HTTP request.
 */
const isPlainPayment = (body: unknown): boolean =>
  paying.safeParse(body).success && requestedProgressOf(body) === null;

/** Request headers that the protocol reads, besides Accept. */
const OF_PROTOCOL = ["content-type", "mcp-protocol-version", "mcp-method", "mcp-name"] as const;

const JSON_TYPE = "application/json";
const STREAM_TYPE = "text/event-stream";

const accepts = (request: Request, type: string): boolean => request.accepts(type) !== false;

/** The SDKs require both types, although every response except a call's progress is JSON. */
const acceptOf = (request: Request): string =>
  accepts(request, JSON_TYPE) ? `${JSON_TYPE}, ${STREAM_TYPE}` : STREAM_TYPE;

/** Converts the request for the SDKs. Its body has already been read. */
function requestOf(request: Request, response: Response): globalThis.Request {
  const protocolHeaders = OF_PROTOCOL.flatMap((name): [string, string][] => {
    const value = request.headers[name];
    return typeof value === "string" ? [[name, value]] : [];
  });
  const closed = new AbortController();
  response.on("close", () => closed.abort());
  return new globalThis.Request("http://localhost/mcp", {
    method: "POST",
    headers: [["accept", acceptOf(request)], ...protocolHeaders],
    signal: closed.signal,
  });
}

const isStream = ({ headers }: globalThis.Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true;

async function sendAnswer(
  response: Response,
  { answer, end }: Served,
  body: unknown,
  requestId: string,
): Promise<void> {
  response.on("close", end);
  const text = isStream(answer) ? null : withOwnErrors(await answer.text(), body, requestId);
  if (response.destroyed) return;
  response.status(answer.status);
  for (const [name, value] of answer.headers) response.setHeader(name, value);
  // Sent in one piece, so that it has a Content-Length.
  if (text !== null || answer.body === null) return void response.end(text ?? "");
  // Keeps proxies from buffering progress while the caller waits.
  response.setHeader("X-Accel-Buffering", "no");
  response.flushHeaders();
  try {
    await pipeline(Readable.fromWeb(answer.body), response);
  } catch (error) {
    // The reader has disconnected.
    if (errnoOf(error) !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  }
}

const rpcAnswer = z.looseObject({
  id: z.unknown(),
  error: z.looseObject({ code: z.int(), data: z.unknown().optional() }),
});

/** Error codes whose data the protocol defines, such as the supported versions. */
const OWN_DATA: ReadonlySet<number> = new Set([-32_021, -32_022]);
const anyData = z.looseObject({});

/**
 * Adds the request's id to every JSON-RPC error (to each one of a batch). Describes a malformed call in the service's
 * words; the SDKs quote their schemas.
 */
function withOwnErrors(text: string, body: unknown, requestId: string): string {
  if (!text.includes('"error":')) return text;
  const malformed = malformedCalls(body);
  const answers: unknown = JSON.parse(text);
  const named = (answer: unknown): unknown => {
    const failed = rpcAnswer.safeParse(answer);
    if (!failed.success) return answer;
    const { error, id } = failed.data;
    const own = OWN_DATA.has(error.code) ? anyData.safeParse(error.data).data : undefined;
    return { ...failed.data, error: { ...error, ...malformed.get(id), data: { ...own, requestId } } };
  };
  return JSON.stringify(Array.isArray(answers) ? answers.map(named) : named(answers));
}
