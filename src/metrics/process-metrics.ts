import { collectDefaultMetrics, type Metric, Registry } from "prom-client";

let ofProcess: readonly Metric[] | null = null;

/**
 * Node.js metrics of this process, registered once for all its services: the observers of garbage collection and event
 * loop never end, and hold their registry.
 */
export const processMetrics = (): readonly Metric[] => (ofProcess ??= collected());

function collected(): readonly Metric[] {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry.getMetricsAsArray().flatMap(({ name }) => registry.getSingleMetric(name) ?? []);
}
