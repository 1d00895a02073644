import { setTimeout as sleep } from "node:timers/promises";
import { generate } from "otplib";

const STEP_SECONDS = 30;
const STEP_MS = STEP_SECONDS * 1_000;
/** A code that is made for a test stays good for at least so long: typing it on a busy machine takes a while. */
const GOOD_MS = 10_000;

/**
 * The codes of one secret, by the real clock. Each is good once, and only codes of later steps after it, so each is of
 * a step of its own. The step before the current one is taken as well, and so is the step after it.
 */
export class TotpCodes {
  readonly #secret: string;
  #step = 0;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** The next one; it waits where that one is not good yet. */
  async next(): Promise<string> {
    const oldest = Math.floor((Date.now() + GOOD_MS) / STEP_MS) - 1;
    this.#step = Math.max(this.#step + 1, oldest);
    const goodFrom = (this.#step - 1) * STEP_MS;
    if (goodFrom > Date.now()) await sleep(goodFrom - Date.now());
    return generate({ secret: this.#secret, epoch: this.#step * STEP_SECONDS });
  }
}
