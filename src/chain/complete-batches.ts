import { z } from "zod";

const numbered = z.array(z.object({ id: z.coerce.number() }));

/** The response to a batch lacks some answers, or has answers to requests that were not in it. */
class BatchIncomplete extends Error {
  override readonly name = "BatchIncomplete";
}

/**
 * `fetch`, which lets through only whole answers to a batch of JSON-RPC calls. The client library gives answers to
 * questions by their order alone: with one missing, each after it would be taken for another question's, such as one
 * wallet's balance for another's.
 */
export const fetchCompleteBatches: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const ids = idsIn(init?.body);
  if (ids === null || !response.ok) return response;
  const text = await response.text();
  const answered = idsIn(text);
  const isBatch = text.trimStart().startsWith("[");
  const isWhole = answered?.length === ids.length && ids.every((id, at) => answered[at] === id);
  // What is no batch at all is refused by the client itself.
  if (isBatch && !isWhole) throw new BatchIncomplete("a batch was not answered as a whole");
  const { headers, status, statusText } = response;
  return new Response(text, { headers: withoutLength(headers), status, statusText });
};

/** The text is no longer encoded as the headers say. */
function withoutLength(headers: Headers): Headers {
  const kept = new Headers(headers);
  kept.delete("content-length");
  kept.delete("content-encoding");
  return kept;
}

/** The ids in a batch, lowest first; null for anything else. */
function idsIn(text: unknown): readonly number[] | null {
  if (typeof text !== "string" || !text.trimStart().startsWith("[")) return null;
  try {
    const found = numbered.safeParse(JSON.parse(text));
    return found.success ? found.data.map(({ id }) => id).toSorted((one, other) => one - other) : null;
  } catch {
    return null;
  }
}
