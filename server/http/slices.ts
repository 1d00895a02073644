import type { IncomingMessage, RequestListener } from "node:http";

/** For so long requests are begun one after another before whatever else is ready gets its turn. */
const SLICE_MS = 5;

/**
 * Begins requests in slices: of hundreds that arrive at once, those that the first milliseconds have room for begin at once, the others
 * in later turns of the event loop, in their order. So neither answers nor timers are kept waiting by what has only just come.
 * `isUrgent` names requests that don't queue.
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
    if (sliceBeganMs === null) {
      sliceBeganMs = performance.now();
      setImmediate(nextSlice);
    }
    if (queue.length === 0 && performance.now() - sliceBeganMs < SLICE_MS) {
      return application(request, response);
    }
    // A request that was aborted by then is skipped.
    queue.push(() => (response.destroyed ? undefined : application(request, response)));
  };
}
