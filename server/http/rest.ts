import type { Request, Response, Router } from "express";
import express from "express";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import { type Route, routesOf } from "../../src/contract/routes.ts";
import type { HttpBinding, Operation } from "../../src/contract/types.ts";
import { Arrival } from "../../src/lib/deadline.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok } from "../../src/domain/result.ts";
import { Gate, type Permit } from "../../src/lib/gate.ts";
import { networkAround } from "../../src/limits/address.ts";
import type { StreamEnd } from "../../src/contract/stream.ts";
import type { Requester } from "../../src/limits/limits.ts";
import type { Pipeline, Receive } from "../pipeline/pipeline.ts";
import { type Admission, addressOf } from "./admission.ts";
import type { BrowserSessions } from "./browser-sessions.ts";
import { readBody } from "./body.ts";
import { sendRefusal } from "./errors.ts";
import { requestContextOf } from "./request-context.ts";
import { sendEvents } from "./events.ts";
import { FileSender } from "./file.ts";
import { coerceQuery } from "./query.ts";
import { shownUserAgent } from "./user-agent.ts";

export interface RestDependencies {
  readonly admission: Admission;
  readonly browsers: BrowserSessions;
  readonly pipeline: Pipeline;
}

interface Bounds {
  readonly hashing: Gate;
  readonly files: FileSender;
}

interface Called {
  readonly http: HttpBinding;
  readonly id: OperationId;
  readonly operation: Operation;
  readonly request: Request;
  readonly response: Response;
}

/** Operations that hash a password, the most expensive work for an anonymous caller. */
const HASHES_PASSWORDS: ReadonlySet<OperationId> = new Set([
  "signIn",
  "setUp",
  "acceptInvite",
  "changePassword",
]);

/** Maximum requests in flight that hash a password. Some of them wait for hashing or are on their way in or out. */
const HASHING_REQUESTS_MAX = 48;
/** Maximum per address, and per network of IPv6. */
const HASHING_OF_ADDRESS_MAX = 12;

/** Operations for which a cached agent suffices: the ledger refuses what the agent's current record would refuse. */
const MAY_USE_CACHED_AGENT: ReadonlySet<OperationId> = new Set(["createPayment", "payX402Request"]);

const NO_PERMIT: Pick<Permit, "releaseWhile"> = { releaseWhile: (work) => work };

const keyOf = ({ method, path }: { readonly method: string; readonly path: string }): string =>
  `${method} ${path}`;

/** Registers the REST route of every operation that has one, derived from the contract. */
export function restRouter(dependencies: RestDependencies): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const bounds = { hashing: new Gate(HASHING_REQUESTS_MAX), files: new FileSender() };
  const routes = routesOf(operationList);
  // Fixed paths are looked up in a map: matching all routes takes longer than a payment's checks.
  const fixed = new Map<string, Route<OperationId>>(
    routes.filter(({ http }) => !http.path.includes(":")).map((route) => [keyOf(route.http), route]),
  );
  router.use((request, response, next) => {
    const route = fixed.get(keyOf({ method: request.method.toLowerCase(), path: request.path }));
    return route === undefined ? next() : serve(dependencies, bounds, { ...route, request, response });
  });
  for (const [index, { http, id, operation }] of routes.entries()) {
    router[http.method](http.path, (request, response) =>
      serve(dependencies, bounds, { http, id, operation, request, response }),
    );
    const isLastOfPath = routes[index + 1]?.http.path !== http.path;
    // Skips later routes that have a parameter where this path is literal.
    if (isLastOfPath) router.all(http.path, (_request, _response, next) => next("router"));
  }
  return router;
}

async function serve(dependencies: RestDependencies, bounds: Bounds, called: Called): Promise<void> {
  const { id, request, response } = called;
  requestContextOf(response).operations.push(id);
  if (!HASHES_PASSWORDS.has(id)) return await answerTo(dependencies, bounds, called, NO_PERMIT);
  const address = addressOf(request);
  const permit = bounds.hashing.enter({
    name: networkAround(address) ?? address,
    max: HASHING_OF_ADDRESS_MAX,
  });
  if (permit === null) {
    dependencies.admission.showUncounted(response);
    return sendRefusal(response, refusal("SERVICE_UNAVAILABLE", undefined, { retryAfterSeconds: 1 }));
  }
  try {
    await answerTo(dependencies, bounds, called, permit);
  } finally {
    permit.release();
  }
}

async function answerTo(
  { admission, browsers, pipeline }: RestDependencies,
  { files }: Bounds,
  { http, id, operation, request, response }: Called,
  permit: Pick<Permit, "releaseWhile">,
): Promise<void> {
  const arrival = new Arrival(() => response.destroyed);
  const context = requestContextOf(response);
  const foreign = browsers.foreignRefusalOf(id, request);
  if (foreign !== null) {
    const counted = await admission.anyone(request, response);
    return sendRefusal(response, counted.ok ? foreign : counted.refusal);
  }
  const isPublic = operation.access.kind === "public";
  const admitted = await (isPublic
    ? admission.anyone(request, response)
    : admission.known(request, response, "rest", { mayUseCache: MAY_USE_CACHED_AGENT.has(id) }));
  if (!admitted.ok) return sendRefusal(response, admitted.refusal);
  const userAgent = shownUserAgent(request.headers["user-agent"]);
  const about = { id, surface: "rest", requestId: context.id, arrival, userAgent } as const;
  const requester = admitted.value;
  const forged = browsers.refusalOf(id, request);
  if (forged !== null) return sendRefusal(response, forged);
  const bodies = { inCookies: false };
  const receive: Receive = async () => {
    const read = await permit.releaseWhile(
      arrival.excluding(readBody(request, response, operation.bodySize, id === "endSsoSessions")),
    );
    if (!read.ok) return read;
    const { isDelayed, value } = read.value;
    const recheck = isDelayed ? await admission.still(request, "rest", requester) : null;
    const { body, inCookies } = browsers.receive(id, request, value);
    bodies.inCookies = inCookies;
    const { params } = request;
    const query = coerceQuery(operation.query, { ...request.query, ...resumedBehind(http, request) });
    return ok({ input: { params, query, body }, recheck });
  };
  const result = await pipeline.run({ ...about, requester }, request.params, receive);
  if (!result.ok) return sendRefusal(response, result.refusal);
  const { events, stream } = result.value;
  if (stream !== undefined) {
    const full = await files.send(response, stream, requester.caller?.organizationId ?? "");
    return full === null ? undefined : sendRefusal(response, full);
  }
  if (events !== undefined) {
    const check = () => streamEndReason({ admission, pipeline }, id, request, requester);
    const full = sendEvents(response, events, check, context.answered);
    return full === null ? undefined : sendRefusal(response, full);
  }
  const status = result.value.status ?? http.successStatus;
  if (result.value.status !== undefined) response.setHeader("Idempotency-Replayed", "true");
  const answer = browsers.answer(id, response, bodies, result.value);
  if (status === 204) response.status(204).end();
  else response.status(status).json(answer);
}

/** Reads the stream position that browsers send as a header; clients that cannot set headers use the query. */
function resumedBehind({ contentType }: HttpBinding, request: Request): { lastEventId?: string } {
  const lastEventId = request.get("Last-Event-ID");
  return contentType === "text/event-stream" && lastEventId !== undefined ? { lastEventId } : {};
}

/** Returns why a stream's caller may not keep it; null if allowed or currently unknown. */
async function streamEndReason(
  { admission, pipeline }: Pick<RestDependencies, "admission" | "pipeline">,
  id: OperationId,
  request: Request,
  requester: Requester,
): Promise<StreamEnd | null> {
  const still = await admission.still(request, "rest", requester);
  if (!still.ok) return still.refusal.code === "SERVICE_UNAVAILABLE" ? null : "credential";
  const { principal } = still.value;
  if (pipeline.authorize(id, principal) !== null) return "credential";
  return rightsOf(principal) === rightsOf(requester.principal) ? null : "role";
}

const rightsOf = (principal: Requester["principal"]): string | null =>
  principal?.type === "session" ? JSON.stringify([principal.role, principal.binding]) : null;
