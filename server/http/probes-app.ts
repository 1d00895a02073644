import express, { type Express } from "express";
import { type ProbeDependencies, probes } from "./probes.ts";

/** What is answered on the port for metrics and health: nothing else. */
export function createProbesApp(dependencies: ProbeDependencies): Express {
  const app = express();
  app.disable("etag");
  app.disable("x-powered-by");
  app.use(probes(dependencies));
  app.use((_request, response) => void response.status(404).json({ error: "NOT_FOUND" }));
  return app;
}
