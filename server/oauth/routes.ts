import type { IncomingMessage, ServerResponse } from "node:http";
import { type Request, type RequestHandler, type Response, Router } from "express";
import type { Admission } from "../http/admission.ts";
import { readBody } from "../http/body.ts";
import { statusOf } from "../../src/domain/errors.ts";
import type { ClientConnections } from "./client-connections.ts";
import { AUTH_METHODS, isRefusal } from "./client-metadata.ts";
import { SCOPE } from "./provider.ts";

/** Clients append their form of the endpoint's path to the well-known one. */
const forms = (path: string): readonly string[] => ["", "/mcp", "/mcp/"].map((end) => `${path}${end}`);
const RESOURCE_METADATA = forms("/.well-known/oauth-protected-resource");
const SERVER_METADATA = forms("/.well-known/oauth-authorization-server");

/**
 * Parameters of an authorization request that are used. Others belong to OpenID Connect or would change how codes are
 * sent.
 */
const AUTHORIZATION_PARAMETERS = [
  "client_id",
  "redirect_uri",
  "response_type",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
  "request",
  "request_uri",
] as const;

export interface OAuthRoutesDependencies {
  readonly admission: Admission;
  readonly connections: ClientConnections;
}

/** Serves OAuth at the origin's root, where clients look for it whatever the metadata says. */
export function oauthRouter({ admission, connections }: OAuthRoutesDependencies): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const { baseUrl, resource } = connections;
  const counted: RequestHandler = async (request, response, next) => {
    const admitted = await admission.anyone(request, response);
    if (admitted.ok) next();
    else sendTooMany(response, admitted.refusal.retryAfterSeconds);
  };
  const provided = served(connections);

  router.options(["/register", ...RESOURCE_METADATA, ...SERVER_METADATA], preflight);
  for (const path of RESOURCE_METADATA)
    router.get(path, counted, (_request, response) =>
      sendMetadata(response, resourceMetadata(baseUrl, resource)),
    );
  router.get([...SERVER_METADATA], counted, (_request, response) =>
    sendMetadata(response, serverMetadata(baseUrl)),
  );
  router.get("/authorize", counted, (request, response) => {
    request.url = `/authorize?${completed(request, resource).toString()}`;
    provided(request, response);
  });
  router.get("/authorize/:uid", counted, provided);
  for (const path of ["/token", "/revoke"]) {
    router.post(path, counted, provided);
    router.options(path, provided);
  }
  router.post("/register", async (request, response) => {
    const admitted = await admission.registration(request);
    if (!admitted.ok) return sendTooMany(response, admitted.refusal.retryAfterSeconds);
    response.setHeader("Access-Control-Allow-Origin", "*");
    const read = await readBody(request, response);
    if (!read.ok) {
      const error = { error: "invalid_client_metadata", error_description: read.refusal.message };
      return void response.status(statusOf(read.refusal)).json(error);
    }
    const registered = await connections.register(read.value.value);
    response.status(isRefusal(registered) ? 400 : 201).json(registered);
  });
  return router;
}

/** Returns the provider's request handler. It uses the service's own address, whatever a proxy put into the request. */
function served({ baseUrl, provider }: ClientConnections): (request: Request, response: Response) => void {
  const answer: (request: IncomingMessage, response: ServerResponse) => Promise<void> = provider.callback();
  const { host, protocol } = new URL(baseUrl);
  return (request, response) => {
    request.headers["x-forwarded-host"] = host;
    request.headers["x-forwarded-proto"] = protocol.slice(0, -1);
    void answer(request, response);
  };
}

/** Returns the request's parameters, with the scope and resource that clients omit or write differently. */
function completed({ url }: Request, resource: string): URLSearchParams {
  const given = new URL(url, "http://localhost").searchParams;
  const named = new URLSearchParams();
  for (const name of AUTHORIZATION_PARAMETERS)
    for (const value of given.getAll(name))
      named.append(name, name === "resource" ? canonical(value, resource) : value);
  if (!named.has("resource")) named.set("resource", resource);
  named.set("scope", SCOPE);
  if (given.getAll("prompt").includes("none")) named.set("prompt", "none");
  return named;
}

/** Returns the resource if a client names it by its origin or with a trailing slash; otherwise the given value. */
export function canonical(given: string, resource: string): string {
  const { origin } = new URL(resource);
  return [origin, `${origin}/`, `${resource}/`].includes(given) ? resource : given;
}

/** Allows pages of other origins to register and to read metadata. Neither needs a credential. */
const preflight: RequestHandler = (_request, response) => {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Allow-Methods", "GET, POST");
  response.setHeader("Access-Control-Allow-Headers", "Content-Type, MCP-Protocol-Version");
  response.status(204).end();
};

function sendMetadata(response: Response, metadata: object): void {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.json(metadata);
}

function sendTooMany(response: Response, retryAfterSeconds = 60): void {
  response.setHeader("Retry-After", String(retryAfterSeconds));
  const error_description = "Too many requests from this address; try again later.";
  response.status(429).json({ error: "temporarily_unavailable", error_description });
}

const resourceMetadata = (baseUrl: string, resource: string) => ({
  resource,
  resource_name: "Agent Spending Control",
  authorization_servers: [baseUrl],
  scopes_supported: [SCOPE],
  bearer_methods_supported: ["header"],
});

const serverMetadata = (baseUrl: string) => ({
  issuer: baseUrl,
  authorization_endpoint: `${baseUrl}/authorize`,
  token_endpoint: `${baseUrl}/token`,
  registration_endpoint: `${baseUrl}/register`,
  revocation_endpoint: `${baseUrl}/revoke`,
  scopes_supported: [SCOPE],
  response_types_supported: ["code"],
  response_modes_supported: ["query"],
  grant_types_supported: ["authorization_code", "refresh_token"],
  token_endpoint_auth_methods_supported: AUTH_METHODS,
  revocation_endpoint_auth_methods_supported: AUTH_METHODS,
  code_challenge_methods_supported: ["S256"],
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: true,
});
