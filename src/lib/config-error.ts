import { PlainError } from "./plain-error.ts";

/** A wrong setting; the message is one line for a person. */
export class ConfigError extends PlainError {
  override readonly name = "ConfigError";
}
