import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { EngineError, reasonOf } from "./errors.ts";

export interface DownloadLimits {
  /** Maximum time until the headers arrive. */
  readonly connectTimeoutMs: number;
  /** Maximum time without a byte. */
  readonly stallTimeoutMs: number;
  /** Maximum time for the whole download. */
  readonly overallTimeoutMs: number;
  readonly bytesMax: number;
}

export const DOWNLOAD_LIMITS: DownloadLimits = {
  connectTimeoutMs: 8_000,
  stallTimeoutMs: 15_000,
  overallTimeoutMs: 900_000,
  bytesMax: 1_000_000_000,
};

const TEXT_BYTES_MAX = 65_536;

/** Aborts when no data arrives for a while, or when the whole download takes too long. */
class Watchdog {
  readonly #controller = new AbortController();
  readonly #host: string;
  readonly #overall: NodeJS.Timeout;
  #quiet: NodeJS.Timeout | undefined;

  constructor(host: string, overallTimeoutMs: number) {
    this.#host = host;
    this.#overall = this.#timer(overallTimeoutMs, "did not finish");
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  expect(timeoutMs: number, what: string): void {
    clearTimeout(this.#quiet);
    this.#quiet = this.#timer(timeoutMs, what);
  }

  stop(): void {
    clearTimeout(this.#quiet);
    clearTimeout(this.#overall);
  }

  #timer(timeoutMs: number, what: string): NodeJS.Timeout {
    return setTimeout(() => {
      const seconds = String(Math.round(timeoutMs / 100) / 10);
      this.#controller.abort(new EngineError("FETCH_FAILED", `${this.#host} ${what} within ${seconds} s`));
    }, timeoutMs);
  }
}

async function* bytesOf(
  url: URL,
  limits: DownloadLimits,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const watchdog = new Watchdog(url.host, limits.overallTimeoutMs);
  try {
    watchdog.expect(limits.connectTimeoutMs, "did not answer");
    const response = await fetch(url, { redirect: "follow", signal: watchdog.signal });
    if (!response.ok || response.body === null) {
      throw new EngineError("FETCH_FAILED", `${url.host} answered ${String(response.status)}`);
    }
    if (url.protocol === "https:" && !response.url.startsWith("https:")) {
      throw new EngineError("FETCH_FAILED", `${url.host} redirected to an address without TLS`);
    }
    let bytes = 0;
    watchdog.expect(limits.stallTimeoutMs, "sent nothing more");
    for await (const chunk of Readable.fromWeb(response.body)) {
      if (!(chunk instanceof Uint8Array)) continue;
      watchdog.expect(limits.stallTimeoutMs, "sent nothing more");
      bytes += chunk.length;
      if (bytes > bytesMax) throw new EngineError("FETCH_FAILED", `${url.host} sent more than expected`);
      yield chunk;
    }
  } catch (error) {
    const cause: unknown = watchdog.signal.aborted ? watchdog.signal.reason : error;
    if (cause instanceof EngineError) throw cause;
    throw new EngineError("FETCH_FAILED", `${url.host}: ${reasonOf(cause)}`, { cause });
  } finally {
    watchdog.stop();
  }
}

/**
 * Downloads to a file. Gives up within the limits on a host that does not answer, stalls or never ends; throws
 * EngineError FETCH_FAILED. The caller checks the digest.
 */
export async function downloadFile(
  url: URL,
  file: string,
  limits: DownloadLimits = DOWNLOAD_LIMITS,
): Promise<void> {
  await pipeline(bytesOf(url, limits, limits.bytesMax), createWriteStream(file, { mode: 0o600 }));
}

/** Downloads a small text, under the same limits. */
export async function downloadText(url: URL, limits: DownloadLimits = DOWNLOAD_LIMITS): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytesOf(url, limits, TEXT_BYTES_MAX)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

const READ_CHUNK_BYTES = 1_048_576;

export async function sha256OfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: READ_CHUNK_BYTES }), hash);
  return hash.digest("hex");
}
