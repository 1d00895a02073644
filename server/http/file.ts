import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { errnoOf } from "../../src/lib/durable-files.ts";
import { Gate } from "../../src/lib/gate.ts";
import type { FileStream } from "../handlers/types.ts";

/** Files that are sent at once, each as slowly as its reader takes it, and those of one organization. */
const FILES_MAX = 64;
const OF_ORGANIZATION_MAX = 8;

/** Sends the files of a process, a bounded number at once. */
export class FileSender {
  readonly #sending = new Gate(FILES_MAX);

  /** Sends a file; a refusal where too many are being sent, and nothing was. */
  async send(response: Response, file: FileStream, organizationId: string): Promise<Refusal | null> {
    const permit = this.#sending.enter({ name: organizationId, max: OF_ORGANIZATION_MAX });
    if (permit === null) return refusal("RATE_LIMITED", undefined, { retryAfterSeconds: 5 });
    await sendFile(response, file).finally(() => permit.release());
    return null;
  }
}

/**
 * Sends a file piece by piece, as fast as its reader takes it; to HEAD its headers alone. Where a piece can't be had, or the
 * reader takes none for too long, the connection is cut: a part of a file must not pass for the whole.
 */
async function sendFile(response: Response, file: FileStream): Promise<void> {
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
