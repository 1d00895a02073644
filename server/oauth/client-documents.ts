import { LRUCache } from "lru-cache";
import { z } from "zod";
import { Gate } from "../../src/lib/gate.ts";
import type { GuardedFetch } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import { checkedMetadata, isRefusal } from "./client-metadata.ts";

const DOCUMENT_MAX_BYTES = 16 * 1_024;
const DOCUMENT_TIMEOUT_MS = 2_500;
/** Maximum fetches in flight, in all and for one network, since strangers choose the addresses. */
const FETCHES_MAX = 16;
const FETCHES_OF_NETWORK_MAX = 4;

/** Documents used while their hosts are unreachable, or strangers' documents take all fetches, so that connected clients keep working. */
const KNOWN_DOCUMENTS = { max: 200, ttl: 86_400_000 } as const;

const named = z.looseObject({ client_id: z.string() });

/**
 * Fetches client ID metadata documents, from the public internet only. A document is treated like a registration:
 * fields unknown to this server are dropped. `network` is the caller's; null for a request that was admitted before.
 */
export function clientDocuments(
  guard: GuardedFetch,
): (url: string | URL | Request, network: string | null) => Promise<Response> {
  const gate = new Gate(FETCHES_MAX);
  const known = new LRUCache<string, string>(KNOWN_DOCUMENTS);
  return async (given, network) => {
    const url = given instanceof Request ? given.url : String(given);
    const permit = gate.enter(...(network === null ? [] : [{ name: network, max: FETCHES_OF_NETWORK_MAX }]));
    if (permit === null) return documentIn(known.get(url) ?? tooMany());
    try {
      const body = await fetched(guard, url);
      if (body !== null) known.set(url, body);
      return documentIn(body ?? known.get(url) ?? "");
    } finally {
      permit.release();
    }
  };
}

function tooMany(): never {
  throw new Error("too many client documents are being fetched");
}

/** Returns the document; null if its host is unreachable or fails. */
async function fetched(guard: GuardedFetch, url: string): Promise<string | null> {
  const request = { url, method: "GET", headers: { accept: "application/json" }, body: null };
  const bounds = { bodyMaxBytes: DOCUMENT_MAX_BYTES, headersMaxBytes: DOCUMENT_MAX_BYTES };
  const outcome = await guard.fetch({ ...request, timeoutMs: DOCUMENT_TIMEOUT_MS }, bounds);
  if (outcome.kind === "failed" || outcome.httpStatus >= 500) return null;
  if (outcome.httpStatus !== 200) throw new Error(`the client's document: HTTP ${outcome.httpStatus}`);
  if (outcome.isCut) throw new Error("the client's document is too large or too slow");
  return outcome.body.toString("utf8");
}

function documentIn(body: string): Response {
  if (body === "") throw new Error("the client's document can't be had");
  const document: unknown = JSON.parse(body);
  const metadata = checkedMetadata(document);
  if (isRefusal(metadata)) throw new Error(metadata.error_description);
  if (metadata.token_endpoint_auth_method !== "none")
    throw new Error("a client's document may not ask for a secret");
  return Response.json({ ...metadata, client_id: named.parse(document).client_id });
}
