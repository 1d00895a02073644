import express, { type ErrorRequestHandler, type Express, type Response } from "express";
import type { Registry } from "prom-client";
import { refusal } from "../../src/domain/errors.ts";
import { openApiDocument } from "../../src/contract/openapi.ts";
import type { Logger } from "../logger.ts";
import { mcpEndpoint, type McpDependencies } from "../mcp/endpoint.ts";
import { docsPage } from "./docs-page.ts";
import { sendRefusal } from "./errors.ts";
import { pages } from "./pages.ts";
import { restRouter } from "./rest.ts";
import { securityHeaders } from "./security-headers.ts";

export interface AppDependencies extends McpDependencies {
  readonly baseUrl: string;
  readonly logger: Logger;
  readonly metrics: Registry;
  /** What is not usable; empty when every part is. */
  readonly missing: () => Promise<readonly string[]>;
  /** Set while the service drains: connections are told to close. */
  readonly draining: () => boolean;
}

/** The service over HTTP: REST, MCP, the OpenAPI document and its page, health and metrics. */
export function createApp(dependencies: AppDependencies): Express {
  const { baseUrl, draining, logger, metrics, missing } = dependencies;
  const app = express();
  app.disable("etag");
  app.set("query parser", "simple");
  app.enable("strict routing");
  app.enable("case sensitive routing");
  app.use(securityHeaders(baseUrl));
  app.use((_request, response, next) => {
    if (draining()) response.setHeader("Connection", "close");
    next();
  });

  const document = openApiDocument(baseUrl);
  app.get("/v1/openapi.json", (_request, response) => void response.json(document));
  app.use(pages());
  app.get("/docs", (_request, response) => void response.type("html").send(docsPage(document)));
  app.get("/healthz", (_request, response) => void response.json({ status: "ok" }));
  app.get("/readyz", async (_request, response) => {
    const lacking = draining() ? ["accepting requests"] : await missing();
    response.status(lacking.length === 0 ? 200 : 503).json({ ready: lacking.length === 0, missing: lacking });
  });
  app.get("/metrics", async (_request, response) => {
    response.type(metrics.contentType).send(await metrics.metrics());
  });

  app.post("/mcp", mcpEndpoint(dependencies));
  // The protocol's own answer where a server offers no stream and keeps no sessions.
  app.all("/mcp", (_request, response) => void response.setHeader("Allow", "POST").status(405).end());
  // The router would answer OPTIONS by itself; a method that a path doesn't have is 404 (decisions.md section 1).
  app.use((request, response, next) => (request.method === "OPTIONS" ? notFound(response) : next()));
  app.use(restRouter(dependencies));
  app.use((_request, response) => notFound(response));
  app.use(lastResort(logger));
  return app;
}

const notFound = (response: Response): void => sendRefusal(response, refusal("NOT_FOUND"));

/** A path that cannot be decoded is no path of ours; anything else here is a defect: logged, and said plainly. */
function lastResort(logger: Logger): ErrorRequestHandler {
  return (error: unknown, _request, response, _next) => {
    if (error instanceof URIError) return notFound(response);
    logger.error({ err: error }, "a request failed unexpectedly");
    if (response.headersSent) response.destroy();
    else sendRefusal(response, refusal("INTERNAL"));
  };
}
