import type { Request, Response, Router } from "express";
import express from "express";
import { type OperationId, operationList } from "../../src/contract/registry.ts";
import { routesOf } from "../../src/contract/routes.ts";
import type { HttpBinding, Operation } from "../../src/contract/types.ts";
import { Arrival } from "../deadline.ts";
import type { Pipeline } from "../pipeline.ts";
import type { Admission } from "./admission.ts";
import type { BrowserSessions } from "./browser-sessions.ts";
import { readBody } from "./body.ts";
import { sendRefusal } from "./errors.ts";
import { noteOf } from "./request-note.ts";
import { sendFile } from "./file.ts";
import { coerceQuery } from "./query.ts";
import { shownUserAgent } from "./user-agent.ts";

export interface RestDependencies {
  readonly admission: Admission;
  readonly browsers: BrowserSessions;
  readonly pipeline: Pipeline;
}

/** The REST routes of every operation that has one, derived from the contract. */
export function restRouter(dependencies: RestDependencies): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const routes = routesOf(operationList);
  for (const [index, { http, id, operation }] of routes.entries()) {
    router[http.method](http.path, (request, response) =>
      serve(dependencies, id, operation, http, request, response),
    );
    const isLastOfPath = routes[index + 1]?.http.path !== http.path;
    // Another method is not meant for a route with an id in the place of what is written out here.
    if (isLastOfPath) router.all(http.path, (_request, _response, next) => next("router"));
  }
  return router;
}

async function serve(
  { admission, browsers, pipeline }: RestDependencies,
  id: OperationId,
  operation: Operation,
  http: HttpBinding,
  request: Request,
  response: Response,
): Promise<void> {
  const arrival = new Arrival();
  const note = noteOf(response);
  note.operations.push(id);
  const stranger = browsers.strangerOf(id, request);
  if (stranger !== null) {
    const counted = await admission.anyone(request, response);
    return sendRefusal(response, counted.ok ? stranger : counted.refusal);
  }
  const isPublic = operation.access.kind === "public";
  const admitted = await (isPublic
    ? admission.anyone(request, response)
    : admission.known(request, response, "rest"));
  if (!admitted.ok) return sendRefusal(response, admitted.refusal);
  const userAgent = shownUserAgent(request.headers["user-agent"]);
  const requester = admitted.value;
  const call = { id, requester, surface: "rest", requestId: note.id, arrival, userAgent } as const;
  const denied = browsers.refusalOf(id, request) ?? (await pipeline.admit(call, request.params));
  if (denied !== null) return sendRefusal(response, denied);
  const body = await arrival.aside(readBody(request, response));
  if (!body.ok) return sendRefusal(response, await pipeline.refuse(call, request.params, body.refusal));

  const received = browsers.receive(id, request, body.value);
  const raw = {
    params: request.params,
    query: coerceQuery(operation.query, request.query),
    body: received.body,
  };
  const result = await pipeline.handle(call, raw);
  if (!result.ok) return sendRefusal(response, result.refusal);
  const { stream } = result.value;
  if (stream !== undefined) return sendFile(response, stream);
  const status = result.value.status ?? http.successStatus;
  const answer = browsers.answer(id, response, received, result.value);
  if (status === 204) response.status(204).end();
  else response.status(status).json(answer);
}
