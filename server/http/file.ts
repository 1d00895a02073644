import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { errnoOf } from "../../activities/durable-files.ts";
import type { FileStream } from "../handlers/types.ts";

/** Whoever takes nothing of a file for so long is cut off: each reader holds a connection and some of its file. */
const STALLED_MS = 120_000;

/**
 * Sends a file piece by piece, as fast as its reader takes it; to HEAD its headers alone. Where a piece can't be had, or the
 * reader takes none for `stalledMs`, the connection is cut: a part of a file must not pass for the whole.
 */
export async function sendFile(response: Response, file: FileStream, stalledMs = STALLED_MS): Promise<void> {
  response.status(200).setHeader("Content-Type", file.contentType);
  response.setHeader("Content-Disposition", `attachment; filename="${file.fileName}"`);
  if (response.req.method === "HEAD") return void response.end();
  cutWhenStalled(response, stalledMs);
  try {
    await pipeline(Readable.from(file.pieces, { objectMode: false }), response);
  } catch (error) {
    // Whoever reads it has gone away.
    if (errnoOf(error) !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  }
}

/** Nothing has gone over the line for so long: the reader's doing where something waits to go, else only a slow beginning. */
function cutWhenStalled(response: Response, stalledMs: number): void {
  response.setTimeout(stalledMs);
  response.on("timeout", () => {
    if (response.writableLength > 0) response.destroy();
    else response.setTimeout(stalledMs);
  });
}
