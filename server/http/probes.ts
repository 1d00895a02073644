import { type Router, Router as createRouter } from "express";
import type { Metrics } from "../../src/metrics/metrics.ts";

/** Asked for again and again by machines that watch the process. */
export const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

export interface ProbeDependencies {
  readonly metrics: Metrics;
  /** By default true. */
  readonly showsMetrics?: boolean;
  /** What is not usable; empty when every part is. */
  readonly missing: () => Promise<readonly string[]>;
  /** Set while the process drains. */
  readonly draining: () => boolean;
}

/** Whether the process lives, whether it is of use, and what it counts. Open to every client that can reach the port. */
export function probes({ draining, metrics, missing, showsMetrics = true }: ProbeDependencies): Router {
  const router = createRouter({ caseSensitive: true, strict: true });
  router.get("/healthz", (_request, response) => void response.json({ status: "ok" }));
  router.get("/readyz", async (_request, response) => {
    const lacking = draining() ? ["accepting requests"] : await missing();
    response.status(lacking.length === 0 ? 200 : 503).json({ ready: lacking.length === 0, missing: lacking });
  });
  const { registry } = metrics;
  let collecting: Promise<string> | null = null;
  // Those who ask at once get one answer: collecting takes some milliseconds, and reads from MongoDB.
  const text = (): Promise<string> => (collecting ??= registry.metrics().finally(() => (collecting = null)));
  if (showsMetrics)
    router.get("/metrics", async (_request, response) => {
      response.type(registry.contentType).send(await text());
    });
  return router;
}
