import DataLoader from "dataloader";

/**
 * Batches the look-ups of concurrent requests into one query; caches nothing for later ones. Other sockets are read
 * before the batch is sent: with the library's own schedule, each request's look-up would be sent alone.
 */
export const batchLoader = <K, V>(lookUp: DataLoader.BatchLoadFn<K, V>): DataLoader<K, V, K> =>
  new DataLoader(lookUp, { cache: false, batchScheduleFn: (send) => void setImmediate(send) });

/** Loads documents by id in batches; null for a missing one. A single id uses MongoDB's fast path, without a plan. */
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

/** Loads each key with a separate call, once for concurrent callers. A slow source delays no other key. */
export const concurrentLoader = <V>(ask: (key: string) => Promise<V>): DataLoader<string, V> =>
  batchLoader(async (keys) => {
    const answers = new Map([...new Set(keys)].map((key) => [key, orError(ask(key))]));
    return Promise.all(keys.map((key) => answers.get(key) ?? orError(ask(key))));
  });

const orError = <V>(answer: Promise<V>): Promise<V | Error> =>
  answer.catch((error: unknown) =>
    error instanceof Error ? error : new Error("no answer", { cause: error }),
  );
