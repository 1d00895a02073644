import type { LoadMeasured } from "./cases.ts";
import type { CpuMs } from "./cpu.ts";
import { percentile } from "./statistics.ts";

/** A part of a measurement: a load, and the processor time of each process that took part, by its name. */
export interface Part extends LoadMeasured {
  readonly cpuMs: CpuMs;
}

/** One system's measurement in one case of one round. */
export interface Measurement {
  readonly requests: number;
  readonly errors: number;
  readonly firstError: string | null;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Null where the system does not tell. */
  readonly cpuMs: CpuMs;
}

/** All parts as one: every request counts the same, whichever of them it was sent in. */
export function measurementOf(parts: readonly Part[]): Measurement {
  const sorted = parts.flatMap(({ latenciesMs }) => latenciesMs).toSorted((a, b) => a - b);
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  return {
    requests: sorted.length,
    errors: parts.reduce((sum, { errors }) => sum + errors, 0),
    firstError: parts.find(({ firstError }) => firstError !== null)?.firstError ?? null,
    seconds,
    perSecond: sorted.length / seconds,
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
    maxMs: sorted.at(-1) ?? 0,
    cpuMs: parts.map(({ cpuMs }) => cpuMs).reduce(cpuSum),
  };
}

const cpuSum = (one: CpuMs, other: CpuMs): CpuMs =>
  Object.fromEntries(
    Object.entries(one).map(([name, ms]) => {
      const added = other[name] ?? null;
      return [name, ms === null || added === null ? null : ms + added];
    }),
  );
