import { once } from "node:events";
import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { type Logger, pino } from "pino";
import { within } from "../activities/within.ts";
import { PlainError } from "../src/lib/plain-error.ts";

export type { Logger };

/**
 * JSON lines on standard output or into a file, which nobody but its owner may read, nor the folders that are made for it.
 * Credentials are redacted wherever a request is logged.
 */
export function createLogger(options: { level: string; file: string | null }): Logger {
  const { file, level } = options;
  const destination = file === null ? pino.destination(1) : fileOf(file);
  // A full disk costs lines of the log, and nothing else.
  destination.on("error", () => undefined);
  const logger = pino(
    {
      level,
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
 * Done when every line is written, in order, or after a second; nothing may be logged any more. What a process ends with is
 * lost without. Never rejects, and does nothing more where the log has ended.
 */
export async function endLog(logger: Logger): Promise<void> {
  const destination = destinations.get(logger);
  if (destination === undefined) return;
  // A log that has ended says so only by throwing.
  destinations.delete(logger);
  const closed = once(destination, "close");
  destination.end();
  try {
    await within(LAST_LINES_MS, closed);
  } catch {
    // A disk that takes nothing more, or a file that never was: the process's exit would write what is left again, and fail or
    // hang. By the event it is told that there is nothing left.
    destination.emit("close");
  }
}

const LAST_LINES_MS = 1_000;

function fileOf(dest: string): Destination {
  try {
    mkdirSync(dirname(dest), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new PlainError(`The log's folder ${dirname(dest)} can't be made; is DATA_DIR writable?`, {
      cause: error,
    });
  }
  refuseLink(dest);
  return pino.destination({ dest, mode: 0o600 });
}

/** What is made here in advance is opened as it is; a link would have the log written to another file. */
function refuseLink(dest: string): void {
  try {
    const flags = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW;
    closeSync(openSync(dest, flags, 0o600));
  } catch (error) {
    const isLink = error instanceof Error && "code" in error && error.code === "ELOOP";
    if (isLink) throw new PlainError(`The log ${dest} is a symbolic link: remove it.`, { cause: error });
  }
}
