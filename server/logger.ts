import { type Logger, pino } from "pino";

export type { Logger };

/** JSON lines on standard output or into a file. Credentials are redacted wherever a request is logged. */
export function createLogger(options: { level: string; file: string | null }): Logger {
  const { file, level } = options;
  const destination = file === null ? pino.destination(1) : pino.destination({ dest: file, mkdir: true });
  // A full disk costs lines of the log, and nothing else.
  destination.on("error", () => undefined);
  return pino(
    {
      level,
      redact: {
        paths: ["*.authorization", "*.password", "*.token", "*.refreshToken", "*.apiKey", "*.secret"],
        censor: "[redacted]",
      },
    },
    destination,
  );
}
