import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import { refusal } from "../../src/domain/errors.ts";
import { type OpenApiDocument, openApiDocument } from "../../src/contract/openapi.ts";
import { openApi30 } from "../../src/contract/openapi/version-3-0.ts";
import { operationList } from "../../src/contract/registry.ts";
import { methodsAt, routesOf } from "../../src/contract/routes.ts";
import type { TrustedProxies } from "../config-values.ts";
import type { StripeBilling } from "../../src/billing/stripe-billing.ts";
import type { CardMessages } from "../../src/rails/card/inbound.ts";
import type { CardElements } from "../../src/payments/card-issuer.ts";
import type { Logos } from "../../src/containers/logos.ts";
import type { Logger } from "../../src/lib/logger.ts";
import { packageVersion } from "../../src/lib/package-root.ts";
import { mcpEndpoint, mcpOtherMethods, type McpDependencies } from "../mcp/endpoint.ts";
import type { ClientConnections } from "../oauth/client-connections.ts";
import { SCOPE } from "../oauth/provider.ts";
import { oauthRouter } from "../oauth/routes.ts";
import { type Admission, hasRateLimitHeaders, surfaceOf } from "./admission.ts";
import { sendRefusal } from "./errors.ts";
import { type CodecDependencies, codecRouter } from "./codec.ts";
import { dashboard } from "./dashboard.ts";
import { logoRouter } from "./logos.ts";
import { type ProbeDependencies, probes } from "./probes.ts";
import { requestContextOf, requestContexts } from "./request-context.ts";
import { referencePage } from "./reference-page.ts";
import { type RestDependencies, restRouter } from "./rest.ts";
import { securityHeaders } from "./security-headers.ts";
import { signedMessagesRouter } from "./signed-messages.ts";

export interface AppDependencies extends McpDependencies, RestDependencies, ProbeDependencies {
  readonly baseUrl: string;
  readonly trustedProxies: TrustedProxies;
  readonly logos: Logos;
  readonly cardMessages: CardMessages;
  readonly billing: StripeBilling;
  readonly cardElements: readonly CardElements[];
  /** Null if OAuth is not served. */
  readonly oauth: ClientConnections | null;
  readonly codec: Omit<CodecDependencies, "admission" | "logger">;
  readonly logger: Logger;
}

/** Serves REST, MCP, the dashboard, the OpenAPI document and its page, health and metrics over HTTP. */
export function createApp(dependencies: AppDependencies): Express {
  const { admission, baseUrl, origins, codec, logger, logos, metrics, oauth, trustedProxies } = dependencies;
  const app = express();
  app.disable("etag");
  app.set("query parser", "simple");
  app.set("trust proxy", trustedProxies);
  app.enable("strict routing");
  app.enable("case sensitive routing");
  app.use(requestContexts(logger, metrics));
  app.use(securityHeaders(baseUrl));

  for (const { http, render } of DOCUMENTS) {
    // Built on first use, since it takes a tenth of the startup time. Kept as bytes, which all responses share; a
    // string would be copied for each.
    let made: Buffer | null = null;
    const document = (): Buffer =>
      (made ??= Buffer.from(JSON.stringify(render(openApiDocument(baseUrl, packageVersion())))));
    app.get(http.path, async (request, response) => {
      const admitted = await admission.anyone(request, response);
      if (admitted.ok) response.type("json").send(document());
      else sendRefusal(response, admitted.refusal);
    });
  }
  const { notFound, pages } = dashboard(origins, dependencies.cardElements);
  app.use(pages);
  app.use(referencePage());
  app.use(probes(dependencies));

  // Served rather than redirected: clients drop the body or the key when they follow a redirect.
  const mcp = ["/mcp", "/mcp/"];
  if (oauth !== null) {
    app.use(mcp, challenging(oauth));
    app.use(oauthRouter({ admission, connections: oauth }));
  }
  app.post(mcp, mcpEndpoint(dependencies));
  app.all(mcp, mcpOtherMethods(dependencies));
  const unanswered = unmatched(admission, notFound);
  app.use(codecRouter({ ...codec, admission, logger }));
  // Express would answer OPTIONS itself, for any caller.
  app.use((request, response, next) =>
    request.method === "OPTIONS" ? unanswered(request, response, next) : next(),
  );
  app.use(signedMessagesRouter(dependencies.cardMessages, dependencies.billing, admission, logger));
  app.use(logoRouter(logos, admission, logger));
  app.use(restRouter(dependencies));
  app.use(unanswered);
  app.use(lastResort(admission, unanswered, logger));
  return app;
}

/** Makes a 401 tell clients where to find the OAuth metadata. */
const challenging =
  ({ baseUrl }: ClientConnections): RequestHandler =>
  (_request, response, next) => {
    const metadata = `${baseUrl}/.well-known/oauth-protected-resource/mcp`;
    requestContextOf(response).challenge = `resource_metadata="${metadata}", scope="${SCOPE}"`;
    next();
  };

/** Returns a test for addresses of proxies that the application trusts. */
export function trustedProxy(app: Express): (address: string) => boolean {
  const trusts: unknown = app.get("trust proxy fn");
  return (address) => typeof trusts === "function" && trusts(address, 0) === true;
}

/** Routes of the OpenAPI document, one for each version. They are not operations. */
const DOCUMENTS = [
  {
    id: "openapi",
    http: { method: "get", path: "/v1/openapi.json" },
    render: (document: OpenApiDocument): object => document,
  },
  { id: "openapi-3.0", http: { method: "get", path: "/v1/openapi-3.0.json" }, render: openApi30 },
] as const;
const ROUTES = [...routesOf(operationList), ...DOCUMENTS];

/**
 * Paths that an MCP client tries after a 401. The client shows its user what it reads there. A 404 to its registration
 * may instead make it try another transport and show that outcome.
 */
const OAUTH_PATH = /^\/(register|authorize|token)$|^\/\.well-known\/(oauth-|openid-configuration)/;
const NO_OAUTH =
  "There is no OAuth here: keys are static. If `/mcp` answers 401, the key is mistyped, revoked or expired; an owner " +
  "or admin issues another one on the agent's page of the dashboard.";

/**
 * Answers a request that no route matches: 405 for an unsupported method, 204 for OPTIONS (both list the path's
 * methods), 404 for an unknown path. Under /v1 and /mcp the request is counted, and an invalid credential gets 401.
 */
function unmatched(admission: Admission, notFound: RequestHandler): RequestHandler {
  return async (request, response) => {
    const surface = surfaceOf(request.path);
    const admitted = surface === null ? null : await admission.optionalCaller(request, response, surface);
    if (admitted?.ok === false) return sendRefusal(response, admitted.refusal);
    const methods = methodsAt(ROUTES, request.path);
    if (methods.length === 0) {
      if (OAUTH_PATH.test(request.path)) {
        const code = request.method === "POST" ? "WRONG_CREDENTIAL" : "NOT_FOUND";
        return sendRefusal(response, refusal(code, NO_OAUTH));
      }
      const refuse = (): void => sendRefusal(response, refusal("NOT_FOUND"));
      return surface === null ? notFound(request, response, refuse) : refuse();
    }
    response.setHeader("Allow", methods.join(", "));
    if (request.method === "OPTIONS") response.status(204).end();
    else sendRefusal(response, refusal("METHOD_NOT_ALLOWED"));
  };
}

/**
 * Answers an undecodable path as an unknown one. Any other error here is a defect: it is logged and answered with 500.
 */
function lastResort(admission: Admission, unanswered: RequestHandler, logger: Logger): ErrorRequestHandler {
  return async (error: unknown, request, response, next) => {
    if (error instanceof URIError) return unanswered(request, response, next);
    logger.error({ err: error, requestId: requestContextOf(response).id }, "a request failed unexpectedly");
    if (response.headersSent) return void response.destroy();
    await showLate(admission, request, response, logger);
    sendRefusal(response, refusal("INTERNAL"));
  };
}

/** Sets the rate limit headers on a response to a defect, as on every other under /v1 and /mcp. */
async function showLate(
  admission: Admission,
  request: Request,
  response: Response,
  logger: Logger,
): Promise<void> {
  if (surfaceOf(request.path) === null || hasRateLimitHeaders(response)) return;
  try {
    await admission.showAddress(request, response);
  } catch (err) {
    logger.error(
      { err, requestId: requestContextOf(response).id },
      "a response was sent without rate limit headers",
    );
  }
}
