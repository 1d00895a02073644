import { switchTracing } from "../src/lib/tracing.ts";
import type { Logger } from "../src/lib/logger.ts";
import { packageVersion } from "../src/lib/package-root.ts";

export interface Tracing {
  /** Exports the remaining traces, with a timeout, and ends tracing. */
  close(): Promise<void>;
}

const SERVICE_NAME = "agent-spending-control";

/**
 * Starts exporting traces to an OTLP endpoint. OpenTelemetry reads its other settings (headers, sampler, attributes,
 * timeouts) from its own environment variables. A process without an endpoint does not load it.
 */
export async function openTracing(endpoint: string, logger: Logger): Promise<Tracing> {
  const [api, { AsyncLocalStorageContextManager }, core, { OTLPTraceExporter }, resources, sdk] =
    await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/context-async-hooks"),
      import("@opentelemetry/core"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace-base"),
    ]);
  const own = { "service.name": SERVICE_NAME, "service.version": packageVersion() };
  const detected = resources.detectResources({ detectors: [resources.envDetector] });
  const exporter = new OTLPTraceExporter({ url: tracesUrl(endpoint) });
  const provider = new sdk.BasicTracerProvider({
    resource: resources.defaultResource().merge(resources.resourceFromAttributes(own)).merge(detected),
    spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
  });
  const say = (message: string): void => logger.warn({ detail: message }, "traces were not exported");
  api.diag.setLogger(
    { error: say, warn: say, info: silent, debug: silent, verbose: silent },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  api.propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  api.trace.setGlobalTracerProvider(provider);
  switchTracing(true);
  return {
    async close() {
      switchTracing(false);
      await provider.shutdown().catch((error: unknown) => say(String(error)));
      api.trace.disable();
      api.propagation.disable();
      api.context.disable();
      api.diag.disable();
    },
  };
}

const silent = (): void => undefined;

/** Returns the address of traces, which OpenTelemetry defines relative to the endpoint of all signals. */
const tracesUrl = (endpoint: string): string => `${endpoint.replace(/\/+$/, "")}/v1/traces`;
