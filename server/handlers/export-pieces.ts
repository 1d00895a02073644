/** Records of an export that are read, and sent, at a time: few enough that most of them are garbage before they are old. */
export const EXPORTED_AT_ONCE = 250;

/**
 * The text of a file in pieces, one for each batch of records. The first batch is read before this answers, so that a database
 * out of reach is a refusal and no broken file. After that one batch is read while the one before is on its way, and none
 * further ahead: what a file takes in memory does not grow with it, nor with how slowly it is read.
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
    // A waiter below gets the rejection; there is none once the file's reader has gone away.
    next.catch(() => undefined);
    if (read.value.length > 0) yield read.value.map(textOf).join("");
    read = await next;
  }
}
