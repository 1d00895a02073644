import DataLoader from "dataloader";

/**
 * Look-ups of requests that arrive together, in one query; nothing is kept for later ones. What is waiting on other
 * sockets is read first: by its own schedule the library would send each request's look-up alone.
 */
export const batchLoader = <K, V>(lookUp: DataLoader.BatchLoadFn<K, V>): DataLoader<K, V, K> =>
  new DataLoader(lookUp, { cache: false, batchScheduleFn: (send) => void setImmediate(send) });

/** Documents by their ids, together; null where there is none. One alone takes MongoDB's short way, without a plan. */
export const documentLoader = <T extends { readonly _id: string }>(
  findOne: (id: string) => Promise<T | null>,
  findAll: (ids: readonly string[]) => Promise<readonly T[]>,
): DataLoader<string, T | null> =>
  batchLoader(async (ids) => {
    const [first] = ids;
    if (first !== undefined && ids.length === 1) return [await findOne(first)];
    const byId = new Map((await findAll(ids)).map((document) => [document._id, document]));
    return ids.map((id) => byId.get(id) ?? null);
  });

/**
 * Loads each key from a source of its own, once for concurrent callers. A source that does not respond delays no
 * other key.
 */
export const concurrentLoader = <V>(ask: (key: string) => Promise<V>): DataLoader<string, V> =>
  batchLoader(async (keys) => {
    const answers = new Map([...new Set(keys)].map((key) => [key, orError(ask(key))]));
    return Promise.all(keys.map((key) => answers.get(key) ?? orError(ask(key))));
  });

const orError = <V>(answer: Promise<V>): Promise<V | Error> =>
  answer.catch((error: unknown) =>
    error instanceof Error ? error : new Error("no answer", { cause: error }),
  );
