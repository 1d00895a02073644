import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import pLimit from "p-limit";
import { z } from "zod";
import type { AnchorLine } from "../../domain/audit/anchor.ts";
import { ConfigError } from "../../lib/config-error.ts";
import { errnoOf, syncFolder } from "../../lib/durable-files.ts";
import type { Logger } from "../../lib/logger.ts";

const OWNER_ONLY = 0o600;
const NEW_LINE = "\n";

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const heads = {
  kind: z.literal("heads"),
  at: z.iso.datetime(),
  heads: z.array(z.strictObject({ organizationId: z.string(), sequence: z.int().min(1), hash })),
  root: hash,
  mac: hash,
};
const transaction = {
  kind: z.literal("transaction"),
  at: z.iso.datetime(),
  root: hash,
  chain: z.string(),
  from: z.string(),
  hash: z.string().regex(/^0x[0-9a-f]{64}$/),
};
const line = z.union([
  z.strictObject({ version: z.literal(1), ...heads }),
  z.strictObject({ version: z.literal(2), ...heads, writer: z.string(), follows: z.array(hash) }),
  z.strictObject({ version: z.literal(1), ...transaction }),
  z.strictObject({ version: z.literal(2), ...transaction, mac: hash }),
]);

/** A line of the file: its content; `torn` for the beginning of a line; `unreadable` for any other text. */
export interface ReadLine {
  readonly number: number;
  readonly line: AnchorLine | "torn" | "unreadable";
}

/** Destination of anchors outside the database. */
export interface AnchorSink {
  readonly headsPerLineMax: number;
  append(entry: AnchorLine): Promise<void>;
  /** Yields the lines that can be read back. */
  lines(): AsyncIterable<ReadLine>;
}

/** Returns the file as the sink, or the log if `path` is null. Throws `ConfigError` if the file can't be written. */
export async function openAnchorSink(path: string | null, logger: Logger): Promise<AnchorSink> {
  if (path === null) return new AnchorLog(logger);
  try {
    await (await openForAppending(path)).close();
  } catch (error) {
    throw new ConfigError(`AUDIT_ANCHOR_FILE: ${path} can't be written (${errnoOf(error)}).`);
  }
  return new AnchorFile(path);
}

/** Keeps lines below the 16 KiB above which container runtimes split lines of standard output. */
const HEADS_PER_LOG_LINE_MAX = 80;

/**
 * Anchors in the log, for processes whose files don't outlive them. A restarted process does not know what was
 * anchored, and anchors all chains again.
 */
export class AnchorLog implements AnchorSink {
  readonly headsPerLineMax = HEADS_PER_LOG_LINE_MAX;
  readonly #logger: Logger;

  constructor(logger: Logger) {
    // Anchors are logged regardless of LOG_LEVEL.
    this.#logger = logger.child({}, { level: "info" });
  }

  append(anchor: AnchorLine): Promise<void> {
    this.#logger.info({ anchor }, "audit log anchored");
    return Promise.resolve();
  }

  // eslint-disable-next-line require-yield
  async *lines(): AsyncGenerator<ReadLine> {}
}

/**
 * Anchors in a file, one JSON line each. A line is written as a whole and flushed to disk before anything continues. A
 * crash in between leaves a torn line, and the next anchor begins on a new line.
 */
export class AnchorFile implements AnchorSink {
  readonly headsPerLineMax = 1_000;
  readonly path: string;
  readonly #serial = pLimit(1);

  constructor(path: string) {
    this.path = path;
  }

  append(entry: AnchorLine): Promise<void> {
    return this.#serial(() => this.#append(entry));
  }

  async #append(entry: AnchorLine): Promise<void> {
    const file = await openForAppending(this.path);
    try {
      const { size } = await file.stat();
      const last = Buffer.alloc(1);
      if (size > 0) await file.read(last, 0, 1, size - 1);
      const wasTruncated = size > 0 && last.toString() !== NEW_LINE;
      await file.appendFile(`${wasTruncated ? NEW_LINE : ""}${JSON.stringify(entry)}${NEW_LINE}`);
      await file.sync();
      if (size === 0) await syncFolder(dirname(this.path));
    } finally {
      await file.close();
    }
  }

  /** Yields all lines; none if there is no file. */
  async *lines(): AsyncGenerator<ReadLine> {
    const input = createReadStream(this.path, "utf8");
    const opened = new Promise<void>((resolve, reject) => {
      input.once("ready", () => resolve());
      input.once("error", reject);
    });
    try {
      await opened;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return;
      throw error;
    }
    yield* anchorLines(input);
  }
}

async function openForAppending(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // Also for reading, to check whether the last line is torn.
  return open(path, "a+", OWNER_ONLY);
}

/** Yields all lines of a stream. */
export async function* anchorLines(input: Readable): AsyncGenerator<ReadLine> {
  let number = 0;
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1;
    if (text !== "") yield { number, line: parsed(text) };
  }
}

function parsed(text: string): ReadLine["line"] {
  try {
    const result = line.safeParse(JSON.parse(text));
    return result.success ? result.data : "unreadable";
  } catch {
    return isTruncated(text) ? "torn" : "unreadable";
  }
}

/** Whether a line is a beginning left by a crash: its first brace is never closed. */
function isTruncated(text: string): boolean {
  let depth = 0;
  // A string with its escapes is one token; the last string may be unterminated.
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[{}[\]]|[^"{}[\]]+/g)) {
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    if (depth <= 0) return false;
  }
  return depth > 0;
}
