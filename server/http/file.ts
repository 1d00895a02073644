import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { errnoOf } from "../../src/lib/durable-files.ts";
import type { FileStream } from "../handlers/types.ts";

/**
 * Sends a file piece by piece, as fast as its reader takes it; to HEAD its headers alone. Where a piece can't be had, or the
 * reader takes none for too long, the connection is cut: a part of a file must not pass for the whole.
 */
export async function sendFile(response: Response, file: FileStream): Promise<void> {
  response.status(200).setHeader("Content-Type", file.contentType);
  response.setHeader("Content-Disposition", `attachment; filename="${file.fileName}"`);
  if (response.req.method === "HEAD") return void response.end();
  try {
    await pipeline(Readable.from(file.pieces, { objectMode: false }), response);
  } catch (error) {
    // Its reader has disconnected.
    if (errnoOf(error) !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  }
}
