import { LRUCache } from "lru-cache";
import type { Logger } from "../lib/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { OnRefused } from "./payload-codec.ts";

/** Minimum interval between two log lines about one workflow: anybody who writes to Temporal could fill the log. */
const LINE_INTERVAL_MS = 60_000;
const WORKFLOWS_MAX = 1_000;

/** Counts every refused payload, and logs its workflow. */
export function refusalsLog(logger: Logger, metrics: Metrics): OnRefused {
  const logged = new LRUCache<string, true>({ max: WORKFLOWS_MAX, ttl: LINE_INTERVAL_MS });
  return (place, refused) => {
    metrics.forged(refused === "unknown_key" ? refused : "payload");
    // An activity's place begins with its workflow's.
    const name = `${place?.split(" ", 1)[0] ?? ""} ${refused}`;
    if (logged.has(name)) return;
    logged.set(name, true);
    if (refused === "unknown_key")
      logger.error({ place }, "a payload is sealed under a master key that this process does not have");
    else logger.error({ place, refused }, "forged: a payload did not come from this service and was refused");
  };
}
