/** What an authenticator writes: integers, bytes, text, lists, and maps in the order given. */
export type Cbor = number | string | Uint8Array | readonly Cbor[] | ReadonlyMap<number | string, Cbor>;

/**
 * CBOR (RFC 8949) of our own, so that what the service's library reads was not written by the same library. Lengths up
 * to 65,535, which is more than any response may have.
 */
export function encodeCbor(value: Cbor): Buffer {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string") return withLength(3, Buffer.from(value, "utf8"));
  if (value instanceof Uint8Array) return withLength(2, Buffer.from(value));
  if (value instanceof Map) {
    const entries = [...value].flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)]);
    return Buffer.concat([head(5, value.size), ...entries]);
  }
  const items = [...(value as readonly Cbor[])].map(encodeCbor);
  return Buffer.concat([head(4, items.length), ...items]);
}

const withLength = (major: number, bytes: Buffer): Buffer =>
  Buffer.concat([head(major, bytes.length), bytes]);

function head(major: number, argument: number): Buffer {
  if (argument < 24) return Buffer.from([(major << 5) | argument]);
  if (argument < 256) return Buffer.from([(major << 5) | 24, argument]);
  if (argument > 65_535) throw new Error(`${argument} is more than this writes`);
  return Buffer.from([(major << 5) | 25, argument >> 8, argument & 0xff]);
}
