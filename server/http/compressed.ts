import { gunzipSync } from "node:zlib";
import type { Request, Response } from "express";

/** Of what has its digest in its path: the bytes under it are the same for ever. */
export const CACHED = "public, max-age=31536000, immutable";

const unpacked = new WeakMap<Buffer, Buffer>();

/** Compressed for clients that accept it, as every browser does; else decompressed once, on first use. */
export function sendCompressed(request: Request, response: Response, compressed: Buffer): void {
  response.setHeader("Vary", "Accept-Encoding");
  if (request.acceptsEncodings("gzip") === "gzip") {
    response.setHeader("Content-Encoding", "gzip");
    response.send(compressed);
    return;
  }
  const plain = unpacked.get(compressed) ?? gunzipSync(compressed);
  unpacked.set(compressed, plain);
  response.send(plain);
}
