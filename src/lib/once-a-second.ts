/** So old may an answer be. */
const FRESH_MS = 1_000;

/**
 * Looks at most once at a time, and not again within a second: whoever asks often costs nothing. A look that failed is not kept. `now`
 * in milliseconds, on a clock that only goes forward.
 */
export function onceASecond<T>(
  look: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let looking: Promise<T> | null = null;
  let last: { readonly at: number; readonly found: T } | null = null;
  const lookNow = async (): Promise<T> => {
    try {
      const found = await look();
      last = { at: now(), found };
      return found;
    } finally {
      looking = null;
    }
  };
  return async () => {
    if (last !== null && now() - last.at < FRESH_MS) return last.found;
    return (looking ??= lookNow());
  };
}
