import DataLoader from "dataloader";

/**
 * Look-ups of requests that arrive together, in one query; nothing is kept for later ones. What is waiting on other
 * sockets is read first: by its own schedule the library would send each request's look-up alone.
 */
export const together = <K, V>(lookUp: DataLoader.BatchLoadFn<K, V>): DataLoader<K, V, K> =>
  new DataLoader(lookUp, { cache: false, batchScheduleFn: (send) => void setImmediate(send) });

/** Documents by their ids, together; null where there is none. One alone takes MongoDB's short way, without a plan. */
export const documentsTogether = <T extends { readonly _id: string }>(
  findOne: (id: string) => Promise<T | null>,
  findAll: (ids: readonly string[]) => Promise<readonly T[]>,
): DataLoader<string, T | null> =>
  together(async (ids) => {
    const [first] = ids;
    if (first !== undefined && ids.length === 1) return [await findOne(first)];
    const byId = new Map((await findAll(ids)).map((document) => [document._id, document]));
    return ids.map((id) => byId.get(id) ?? null);
  });
