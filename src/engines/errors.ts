import { PlainError } from "../lib/plain-error.ts";

/** Cause of an error, for callers and tests; people read the message. */
export type EngineErrorCode =
  /** A setting or a file of the service is malformed or incomplete. */
  | "CONFIG"
  /** DATA_DIR cannot be written, or another live service holds it. */
  | "DATA_DIR"
  | "PORT_TAKEN"
  /** A binary named in the environment is missing, not executable, too old, or ends at once. */
  | "BINARY_BROKEN"
  /** No source has a binary. */
  | "NO_SOURCE"
  /** A download or a build failed, or its SHA-256 is not the expected one. */
  | "FETCH_FAILED"
  /** The engine runs but did not become usable, or ended while starting. */
  | "START_FAILED";

const MESSAGE_CHARS_MAX = 2_000;

/**
 * Turns outside text (a log line, a tool's output) into one line: control characters and line breaks become spaces, so
 * that the text can neither forge a log line nor control a terminal.
 */
export function oneLine(text: string, charsMax: number = MESSAGE_CHARS_MAX): string {
  const flat = text
    // eslint-disable-next-line no-control-regex -- control characters are what is removed here
    .replace(/\u001b\[[0-9;]*m|[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
    .replace(/ {2,}/g, " ")
    .trim();
  return flat.length <= charsMax ? flat : `${flat.slice(0, charsMax - 1)}…`;
}

/** An expected failure around the embedded engines. Its message is one line, written for the person at the terminal. */
export class EngineError extends PlainError {
  override readonly name = "EngineError";
  readonly code: EngineErrorCode;

  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(oneLine(message), options);
    this.code = code;
  }
}

/** Returns a one-line reason for any thrown value. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return oneLine(String(error));
  // an EngineError's message already includes its cause
  const cause = error.cause instanceof Error && !(error instanceof EngineError);
  const text = error.message === "" ? error.name : error.message;
  return oneLine(cause ? `${text}: ${reasonOf(error.cause)}` : text);
};
