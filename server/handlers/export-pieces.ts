/** Records of an export read and sent at a time. Small batches become garbage while young. */
export const EXPORTED_AT_ONCE = 250;

/**
 * Yields a file's text, one piece for each batch of records. The first batch is read before the function returns, so
 * that an unreachable database gives a refusal and not a broken file. Then one batch is read while the previous one is
 * sent, so memory depends neither on the file's size nor on the reader's speed.
 */
export async function exportPieces<T>(
  batches: AsyncGenerator<readonly T[], void>,
  textOf: (record: T) => string,
  head = "",
): Promise<AsyncIterable<string>> {
  return pieces(await batches.next(), batches, textOf, head);
}

async function* pieces<T>(
  first: IteratorResult<readonly T[], void>,
  batches: AsyncGenerator<readonly T[], void>,
  textOf: (record: T) => string,
  head: string,
): AsyncGenerator<string> {
  if (head !== "") yield head;
  let read = first;
  while (read.done !== true) {
    const next = batches.next();
    // The await below receives the rejection. Nothing awaits it after the file's reader has disconnected.
    next.catch(() => undefined);
    if (read.value.length > 0) yield read.value.map(textOf).join("");
    read = await next;
  }
}
