import { type Router, Router as createRouter } from "express";
import type { BlockedProject } from "../../src/actors/blocked-projects.ts";
import type { Metrics } from "../../src/metrics/metrics.ts";
import type { EngineWatch } from "../readiness.ts";

/** Paths that monitors poll. */
export const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

export interface ProbeDependencies {
  readonly metrics: Metrics;
  /** Whether metrics, and projects and engines in `/readyz`, are served. Default: true. */
  readonly showsDetails?: boolean;
  readonly engines: Pick<EngineWatch, "states">;
  readonly blockedProjects: () => readonly BlockedProject[];
  readonly draining: () => boolean;
}

/** Maximum blocked projects named in a response. */
const NAMED_PROJECTS_MAX = 20;

/**
 * Serves liveness, readiness and metrics to every client that can reach the port. An unreachable engine does not make
 * the process unready: all processes share the engines, so the proxy would have none left.
 */
export function probes({
  blockedProjects,
  draining,
  engines,
  metrics,
  showsDetails = true,
}: ProbeDependencies): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  router.get("/healthz", (_request, response) => void response.json({ status: "ok" }));
  router.get("/readyz", async (_request, response) => {
    const ready = !draining();
    response.status(ready ? 200 : 503);
    if (!showsDetails) return void response.json({ ready });
    const missing = (await engines.states()).flatMap(({ isUp, name }) => (isUp ? [] : [name]));
    const blocked = blockedProjects().slice(0, NAMED_PROJECTS_MAX);
    response.json({ ready, missing, blockedProjects: blocked });
  });
  const { registry } = metrics;
  let collecting: Promise<string> | null = null;
  // Concurrent scrapes share one result: collecting takes some milliseconds and reads MongoDB.
  const text = (): Promise<string> => (collecting ??= registry.metrics().finally(() => (collecting = null)));
  if (showsDetails)
    router.get("/metrics", async (_request, response) => {
      response.type(registry.contentType).send(await text());
    });
  return router;
}
