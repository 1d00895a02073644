/** Receiver of progress lines. The engines never write to the console themselves. */
export type OnProgress = (line: string) => void;

const TICK_INTERVAL_MS = 10_000;

/** Runs long work, reporting every 10 seconds that it goes on, so that the operator does not take it for a hang. */
export async function withTicker<T>(
  onProgress: OnProgress,
  label: string,
  work: () => Promise<T>,
  tickIntervalMs: number = TICK_INTERVAL_MS,
): Promise<T> {
  const startedAt = Date.now();
  const timer = setInterval(() => {
    onProgress(`${label}, ${String(Math.round((Date.now() - startedAt) / 1_000))} s so far`);
  }, tickIntervalMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
