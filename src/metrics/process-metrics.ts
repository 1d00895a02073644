import { collectDefaultMetrics, type Metric, Registry } from "prom-client";

let ofProcess: readonly Metric[] | null = null;

/**
 * What Node.js says of this process. It is collected once, whatever number of services the process has had: its observer of
 * collected garbage and its 10 ms timer of the event loop never end, and hold what they report to.
 */
export const processMetrics = (): readonly Metric[] => (ofProcess ??= collected());

function collected(): readonly Metric[] {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry.getMetricsAsArray().flatMap(({ name }) => registry.getSingleMetric(name) ?? []);
}
