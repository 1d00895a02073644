import express, { type ErrorRequestHandler, type Express } from "express";
import { refusal } from "../../src/domain/errors.ts";
import type { Logger } from "../../src/lib/logger.ts";
import { sendRefusal } from "./errors.ts";
import { type ProbeDependencies, probes } from "./probes.ts";
import { requestContextOf, requestContexts } from "./request-context.ts";
import { securityHeaders } from "./security-headers.ts";

export interface ProbesAppDependencies extends ProbeDependencies {
  readonly baseUrl: string;
  readonly logger: Logger;
}

/** Serves only metrics and health, on their own port. */
export function createProbesApp(dependencies: ProbesAppDependencies): Express {
  const { baseUrl, logger, metrics } = dependencies;
  const app = express();
  app.disable("etag");
  app.use(requestContexts(logger, metrics));
  app.use(securityHeaders(baseUrl));
  app.use(probes(dependencies));
  app.use((_request, response) => sendRefusal(response, refusal("NOT_FOUND")));
  const failed: ErrorRequestHandler = (error, _request, response, _next) => {
    logger.error({ err: error, requestId: requestContextOf(response).id }, "a request failed unexpectedly");
    if (response.headersSent) response.destroy();
    else sendRefusal(response, refusal("INTERNAL"));
  };
  app.use(failed);
  return app;
}
