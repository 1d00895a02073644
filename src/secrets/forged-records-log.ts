import { LRUCache } from "lru-cache";
import type { Logger } from "../lib/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { OnForgedRecord } from "./access-proofs.ts";

/** Minimum interval between two log lines about one record: anybody who presents its credential causes one. */
const LINE_INTERVAL_MS = 60_000;
const RECORDS_MAX = 1_000;

/** Counts every use of a record with an invalid proof, and logs the record. */
export function forgedRecordsLog(logger: Logger, metrics: Metrics | null): OnForgedRecord {
  const logged = new LRUCache<string, true>({ max: RECORDS_MAX, ttl: LINE_INTERVAL_MS });
  return (kind, id) => {
    metrics?.forged("record");
    const name = `${kind} ${id}`;
    if (logged.has(name)) return;
    logged.set(name, true);
    logger.error(
      { kind, id },
      "forged: a record was changed by something else than this service and is refused",
    );
  };
}
