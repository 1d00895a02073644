/**
 * Concurrent calls to actors. After long runs most are in no worker's memory, and while it replays a hundred of them a worker
 * takes no new tasks; the engine then says of all that wait that no worker is there.
 */
export const ACTORS_AT_ONCE = 8;

/** Asks for each item in turn, so many at once; answers in order. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  perform: (item: T) => Promise<R>,
): Promise<R[]> {
  const answers: R[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      const index = next;
      const item = items[index];
      if (item === undefined) return;
      next += 1;
      answers[index] = await perform(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(ACTORS_AT_ONCE, items.length) }, work));
  return answers;
}
