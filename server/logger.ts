import { type Logger, pino } from "pino";

export type { Logger };

/** JSON lines on standard output or into a file. Credentials are redacted wherever a request is logged. */
export const createLogger = (options: { level: string; file: string | null }): Logger =>
  pino(
    {
      level: options.level,
      redact: {
        paths: ["*.authorization", "*.password", "*.token", "*.refreshToken", "*.apiKey", "*.secret"],
        censor: "[redacted]",
      },
    },
    options.file === null ? pino.destination(1) : pino.destination({ dest: options.file, mkdir: true }),
  );
