import { cpus } from "node:os";
import { type EventLoopUtilization, performance } from "node:perf_hooks";

/** Minimum duration of a measurement. */
const WINDOW_MS = 250;

/**
 * Load of this process and its machine; the higher figure counts. A container sees the whole machine's processors, and
 * engines on the same machine do not show in the event loop.
 */
export class Load {
  #from: Sample;
  #latest = 0;

  constructor() {
    this.#from = sample();
  }

  /** Returns the load from 0 to 1 since an earlier call, or the previous figure until there is a newer one. */
  current(): number {
    if (performance.now() - this.#from.atMs < WINDOW_MS) return this.#latest;
    const now = sample();
    const loop = performance.eventLoopUtilization(now.loop, this.#from.loop).utilization;
    const total = now.totalMs - this.#from.totalMs;
    const machine = total <= 0 ? 0 : 1 - (now.idleMs - this.#from.idleMs) / total;
    this.#latest = Math.max(loop, machine);
    this.#from = now;
    return this.#latest;
  }
}

interface Sample {
  readonly atMs: number;
  readonly loop: EventLoopUtilization;
  readonly idleMs: number;
  readonly totalMs: number;
}

function sample(): Sample {
  const times = cpus().map((cpu) => cpu.times);
  return {
    atMs: performance.now(),
    loop: performance.eventLoopUtilization(),
    idleMs: times.reduce((sum, { idle }) => sum + idle, 0),
    totalMs: times.reduce((sum, { idle, irq, nice, sys, user }) => sum + idle + irq + nice + sys + user, 0),
  };
}
