import DataLoader from "dataloader";

/**
 * Look-ups of requests that arrive together, in one query; nothing is kept for later ones. What is waiting on other
 * sockets is read first: by its own schedule the library would send each request's look-up alone.
 */
export const together = <K, V>(lookUp: DataLoader.BatchLoadFn<K, V>): DataLoader<K, V, K> =>
  new DataLoader(lookUp, { cache: false, batchScheduleFn: (send) => void setImmediate(send) });
