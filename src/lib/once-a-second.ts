/** Maximum age of a cached value. */
const MAX_AGE_MS = 1_000;

/**
 * Loads at most once at a time, and not again within a second, so that frequent calls are cheap. A failed load is not cached.
 * `now` in milliseconds, on a clock that only goes forward.
 */
export function onceASecond<T>(
  load: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let loading: Promise<T> | null = null;
  let last: { readonly at: number; readonly found: T } | null = null;
  const loadNow = async (): Promise<T> => {
    try {
      const found = await load();
      last = { at: now(), found };
      return found;
    } finally {
      loading = null;
    }
  };
  return async () => {
    if (last !== null && now() - last.at < MAX_AGE_MS) return last.found;
    return (loading ??= loadNow());
  };
}
