import { gunzipSync, gzipSync } from "node:zlib";
import type { DataConverter, Payload, PayloadCodec } from "@temporalio/common";

/** Smaller payloads stay as they are, and readable in the Temporal UI. */
const COMPRESSED_ABOVE_BYTES = 64 * 1024;

/** Speed before size: it is most of what an update of many payments takes. */
const LEVEL = 1;

const ENCODING_KEY = "encoding";
const GZIP = "binary/gzip+json";

const [utf8, text] = [new TextEncoder(), new TextDecoder()];

/** Compresses what is large on its way to Temporal: batches of payments, and what a ledger carries over to its next run. */
export const compression: PayloadCodec = {
  encode: (payloads) => Promise.resolve(payloads.map(compressed)),
  decode: (payloads) => Promise.resolve(payloads.map(expanded)),
};

/** Converter of every client and worker of the service, since each reads what another has written. */
export const dataConverter: DataConverter = { payloadCodecs: [compression] };

function compressed(payload: Payload): Payload {
  const { data, metadata } = payload;
  const encoding = metadata?.[ENCODING_KEY];
  const isLargeJson =
    data !== undefined &&
    data !== null &&
    data.byteLength > COMPRESSED_ABOVE_BYTES &&
    encoding !== undefined &&
    text.decode(encoding) === "json/plain";
  if (!isLargeJson) return payload;
  return { metadata: { [ENCODING_KEY]: utf8.encode(GZIP) }, data: gzipSync(data, { level: LEVEL }) };
}

function expanded(payload: Payload): Payload {
  const { data, metadata } = payload;
  const encoding = metadata?.[ENCODING_KEY];
  if (encoding === undefined || text.decode(encoding) !== GZIP || !data) return payload;
  return { metadata: { [ENCODING_KEY]: utf8.encode("json/plain") }, data: gunzipSync(data) };
}
