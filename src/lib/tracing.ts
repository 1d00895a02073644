import type { IncomingHttpHeaders } from "node:http";
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";

/** Spans of this process, through OpenTelemetry's API. While tracing is off, each call costs the check of one flag. */

const TRACER = "agent-spending-control";

let isOn = false;

/** Switches spans on or off for the process. Requires OpenTelemetry's context manager and exporter to be set up. */
export function switchTracing(on: boolean): void {
  isOn = on;
}

export const isTracing = (): boolean => isOn;

export interface SpanOptions {
  readonly attributes?: Attributes;
  /** Headers of the request or record that caused the work; if missing, the active span is the cause. */
  readonly causedBy?: IncomingHttpHeaders;
  readonly kind?: "internal" | "client" | "server";
}

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, server: SpanKind.SERVER } as const;

/**
 * Runs work in a span. A failure is recorded by its class only: messages may contain data that must not be in a trace.
 */
export function traced<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  if (!isOn) return work();
  const { attributes = {}, causedBy, kind = "internal" } = options;
  const cause = causedBy === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, causedBy);
  return inSpan(name, { attributes, kind: KINDS[kind] }, cause, work);
}

/** Spans of commands that wait for a batch. */
const commandSpans = new WeakMap<object, SpanContext>();

/** Runs a command that will be part of a batch. */
export function tracedCommand<T>(
  name: string,
  command: { readonly kind: string },
  work: () => Promise<T>,
): Promise<T> {
  if (!isOn) return work();
  return traced(name, { attributes: { "command.kind": command.kind } }, () => {
    const span = trace.getActiveSpan();
    if (span !== undefined) commandSpans.set(command, span.spanContext());
    return work();
  });
}

/** Runs work shared by many commands. The span is in their common trace, if there is one, and linked to each. */
export function tracedBatch<T>(
  name: string,
  commands: readonly object[],
  work: () => Promise<T>,
): Promise<T> {
  if (!isOn) return work();
  const spans = commands.flatMap((command) => commandSpans.get(command) ?? []);
  const [first] = spans;
  const isOfOne = first !== undefined && spans.every(({ traceId }) => traceId === first.traceId);
  const parent = isOfOne ? trace.setSpanContext(ROOT_CONTEXT, first) : ROOT_CONTEXT;
  const links = isOfOne ? [] : spans.map((span) => ({ context: span }));
  return inSpan(
    name,
    { attributes: { "batch.commands": commands.length }, kind: SpanKind.CLIENT, links },
    parent,
    work,
  );
}

function inSpan<T>(
  name: string,
  options: Parameters<ReturnType<typeof trace.getTracer>["startSpan"]>[1],
  parent: Context,
  work: () => Promise<T>,
): Promise<T> {
  return trace.getTracer(TRACER).startActiveSpan(name, options ?? {}, parent, async (span) => {
    try {
      return await work();
    } catch (error) {
      const message = error instanceof Error ? error.name : "failed";
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  });
}

export interface RequestSpan {
  run(work: () => void): void;
  end(name: string, attributes: Attributes, isFailure: boolean): void;
}

/** Begins the span of a request, in its caller's trace if named; null if tracing is off. */
export function requestSpan(headers: IncomingHttpHeaders, method: string): RequestSpan | null {
  if (!isOn) return null;
  const cause = propagation.extract(ROOT_CONTEXT, headers);
  const options = { kind: SpanKind.SERVER, attributes: { "http.request.method": method } };
  const span = trace.getTracer(TRACER).startSpan("request", options, cause);
  const own = trace.setSpan(cause, span);
  return {
    run: (work) => context.with(own, work),
    end(name, attributes, isFailure) {
      span.updateName(name).setAttributes(attributes);
      if (isFailure) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}

/** Returns headers by which another process joins the active trace; none if tracing is off. */
export function traceHeaders(): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (isOn) propagation.inject(context.active(), headers);
  return headers;
}

/** Returns log fields that lead to the active trace. */
export function traceFields(): { readonly trace_id?: string; readonly span_id?: string } {
  const span = isOn ? trace.getActiveSpan()?.spanContext() : undefined;
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}

/** Returns an exemplar's labels: the active trace if it is exported, else none. */
export function exemplarLabels(): Readonly<Record<string, string>> {
  const span = isOn ? trace.getActiveSpan() : undefined;
  return span?.isRecording() === true ? { trace_id: span.spanContext().traceId } : {};
}
