import { PlainError } from "../lib/plain-error.ts";

/** An engine can't be used. The message is one line for a person, without the address's credentials. */
export class EngineUnreachable extends PlainError {
  override readonly name = "EngineUnreachable";
}
