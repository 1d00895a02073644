import type { IncomingMessage, RequestListener } from "node:http";

/** Time spent starting queued requests before other work gets its turn; the second is the bound after long work. */
const SLICE_MS = 5;
const LONG_SLICE_MS = 25;

const arrivals = new WeakMap<IncomingMessage, number>();

/** Returns the time by `performance.now()` at which a request arrived, which may be long before its turn. */
export const arrivedMsOf = (request: IncomingMessage): number => arrivals.get(request) ?? performance.now();

/**
 * Starts requests in slices: those that fit into the first milliseconds start at once, the rest in order in later turns
 * of the event loop. A burst of requests therefore delays neither responses nor timers. After other work that takes
 * long, a slice is longer, so that a busy loop refuses in time what it can't do. `isUrgent` marks requests that skip
 * the queue.
 */
export function inSlices(
  application: RequestListener,
  isUrgent: (request: IncomingMessage) => boolean,
): RequestListener {
  const queue: (() => void)[] = [];
  let sliceBeganMs: number | null = null;
  let sliceEndedMs = 0;

  const nextSlice = (): void => {
    if (queue.length === 0) {
      sliceBeganMs = null;
      return;
    }
    const beganMs = performance.now();
    sliceBeganMs = beganMs;
    setImmediate(nextSlice);
    const sliceMs = Math.min(Math.max(SLICE_MS, beganMs - sliceEndedMs), LONG_SLICE_MS);
    do queue.shift()?.();
    while (queue.length > 0 && performance.now() - beganMs < sliceMs);
    sliceEndedMs = performance.now();
  };

  return (request, response) => {
    if (isUrgent(request)) return application(request, response);
    arrivals.set(request, performance.now());
    if (sliceBeganMs === null) {
      sliceBeganMs = performance.now();
      sliceEndedMs = sliceBeganMs;
      setImmediate(nextSlice);
    }
    if (queue.length === 0 && performance.now() - sliceBeganMs < SLICE_MS) {
      return application(request, response);
    }
    // Skips a request aborted while queued.
    queue.push(() => (response.destroyed ? undefined : application(request, response)));
  };
}
