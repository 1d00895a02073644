import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { errnoOf } from "../../src/lib/durable-files.ts";
import { Gate } from "../../src/lib/gate.ts";
import type { FileStream } from "../handlers/types.ts";

/** Maximum files in flight, in total and per organization. Each takes as long as its reader needs. */
const FILES_MAX = 64;
const OF_ORGANIZATION_MAX = 8;

export class FileSender {
  readonly #sending = new Gate(FILES_MAX);

  /** Sends a file. Returns a refusal if too many are in flight, in which case nothing was sent. */
  async send(response: Response, file: FileStream, organizationId: string): Promise<Refusal | null> {
    const permit = this.#sending.enter({ name: organizationId, max: OF_ORGANIZATION_MAX });
    if (permit === null) return refusal("RATE_LIMITED", undefined, { retryAfterSeconds: 5 });
    await sendFile(response, file).finally(() => permit.release());
    return null;
  }
}

/**
 * Sends a file in pieces at the reader's pace; for HEAD, only the headers. Cuts the connection if a piece cannot be
 * read or the reader stalls: part of a file must not pass for the whole.
 */
async function sendFile(response: Response, file: FileStream): Promise<void> {
  response.status(200).setHeader("Content-Type", file.contentType);
  response.setHeader("Content-Disposition", `attachment; filename="${file.fileName}"`);
  if (response.req.method === "HEAD") return void response.end();
  try {
    await pipeline(Readable.from(file.pieces, { objectMode: false }), response);
  } catch (error) {
    // The reader has disconnected.
    if (errnoOf(error) !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  }
}
