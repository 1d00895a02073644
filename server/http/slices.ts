import type { IncomingMessage, RequestListener } from "node:http";

/** Time spent starting queued requests before other work gets its turn. */
const SLICE_MS = 5;

const arrivals = new WeakMap<IncomingMessage, number>();

/** Returns the time by `performance.now()` at which a request arrived, which may be long before its turn. */
export const arrivedMsOf = (request: IncomingMessage): number => arrivals.get(request) ?? performance.now();

/**
 * Starts requests in slices: those that fit into the first milliseconds start at once, the rest in order in later turns
 * of the event loop. A burst of requests therefore delays neither responses nor timers. `isUrgent` marks requests that
 * skip the queue.
 */
export function inSlices(
  application: RequestListener,
  isUrgent: (request: IncomingMessage) => boolean,
): RequestListener {
  const queue: (() => void)[] = [];
  let sliceBeganMs: number | null = null;

  const nextSlice = (): void => {
    if (queue.length === 0) {
      sliceBeganMs = null;
      return;
    }
    const beganMs = performance.now();
    sliceBeganMs = beganMs;
    setImmediate(nextSlice);
    do queue.shift()?.();
    while (queue.length > 0 && performance.now() - beganMs < SLICE_MS);
  };

  return (request, response) => {
    if (isUrgent(request)) return application(request, response);
    arrivals.set(request, performance.now());
    if (sliceBeganMs === null) {
      sliceBeganMs = performance.now();
      setImmediate(nextSlice);
    }
    if (queue.length === 0 && performance.now() - sliceBeganMs < SLICE_MS) {
      return application(request, response);
    }
    // Skips a request aborted while queued.
    queue.push(() => (response.destroyed ? undefined : application(request, response)));
  };
}
