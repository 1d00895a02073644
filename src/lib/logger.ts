import { traceFields } from "./tracing.ts";
import { once } from "node:events";
import { closeSync, constants, fstatSync, mkdirSync, openSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { type Logger, pino } from "pino";
import { withTimeout } from "./with-timeout.ts";
import { hasErrorCode } from "./error-code.ts";
import { PlainError } from "./plain-error.ts";

export type { Logger };

/** Size at which a log file is renamed and a new one begun. */
const FILE_MAX_BYTES = 64 * 1024 * 1024;
/** Maximum renamed files kept; `.1` is the newest. */
const OLDER_FILES_MAX = 4;

export interface LoggerOptions {
  readonly level: string;
  /** Null for standard output. */
  readonly file: string | null;
  readonly fileMaxBytes?: number;
}

/**
 * Logs JSON lines to standard output or a file. Only its owner may read the file, and the folders created for it. A
 * large file is renamed and a few older ones are kept, so that logs never fill a disk. Credentials are redacted
 * wherever a request is logged.
 */
export function createLogger({ file, fileMaxBytes = FILE_MAX_BYTES, level }: LoggerOptions): Logger {
  const destination = file === null ? pino.destination(1) : fileOf(file, fileMaxBytes);
  // A full disk costs log lines, and nothing else.
  destination.on("error", () => undefined);
  const logger = pino(
    {
      level,
      mixin: traceFields,
      redact: {
        paths: ["*.authorization", "*.password", "*.token", "*.refreshToken", "*.apiKey", "*.secret"],
        censor: "[redacted]",
      },
    },
    destination,
  );
  destinations.set(logger, destination);
  return logger;
}

type Destination = ReturnType<typeof pino.destination>;

const destinations = new WeakMap<Logger, Destination>();

/**
 * Resolves when every line is written, in order, or after a second; nothing may be logged afterwards. Without it, the
 * last lines of a process are lost. Never rejects, and does nothing if the log has already ended.
 */
export async function endLog(logger: Logger): Promise<void> {
  const destination = destinations.get(logger);
  if (destination === undefined) return;
  // A log that has ended says so only by throwing.
  destinations.delete(logger);
  const closed = once(destination, "close");
  destination.end();
  try {
    await withTimeout(LAST_LINES_TIMEOUT_MS, closed);
  } catch {
    // The disk is full, or the file never existed: at exit the process would write the rest again, and fail or hang.
    // The event signals that there is nothing left.
    destination.emit("close");
  }
}

const LAST_LINES_TIMEOUT_MS = 1_000;

function fileOf(dest: string, maxBytes: number): Destination {
  try {
    mkdirSync(dirname(dest), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new PlainError(`The log's folder ${dirname(dest)} can't be made; is DATA_DIR writable?`, {
      cause: error,
    });
  }
  const size = sizeUnlessLink(dest);
  const destination = pino.destination({ dest, mode: 0o600 });
  rotate(destination, { dest, maxBytes, size });
  return destination;
}

interface Rotation {
  readonly dest: string;
  readonly maxBytes: number;
  /** Size of the file when it was opened. */
  readonly size: number;
}

/** Rotates without losing or cutting a line: lines go to the renamed file until the new one is open. */
function rotate(destination: Destination, { dest, maxBytes, size }: Rotation): void {
  let bytes = size;
  destination.on("write", (written: number) => {
    bytes += written;
    if (bytes < maxBytes) return;
    bytes = 0;
    try {
      for (let number = OLDER_FILES_MAX; number > 0; number -= 1) renameOlder(dest, number);
      destination.reopen();
    } catch {
      // Logging continues in the current file; the next attempt follows once it has grown by as much again.
    }
  });
}

/** Renames the file before it to number `number`; the last one is replaced. */
function renameOlder(dest: string, number: number): void {
  const from = number === 1 ? dest : `${dest}.${number - 1}`;
  try {
    renameSync(from, `${dest}.${number}`);
  } catch (error) {
    if (!hasErrorCode(error, "ENOENT")) throw error;
  }
}

/** Returns the file's size, creating the file. Never follows a link, which would redirect the log. */
function sizeUnlessLink(dest: string): number {
  try {
    const flags = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW;
    const file = openSync(dest, flags, 0o600);
    const { size } = fstatSync(file);
    closeSync(file);
    return size;
  } catch (error) {
    if (hasErrorCode(error, "ELOOP")) {
      throw new PlainError(`The log ${dest} is a symbolic link: remove it.`, { cause: error });
    }
    return 0;
  }
}
