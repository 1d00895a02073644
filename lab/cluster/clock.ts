import { pathToFileURL } from "node:url";
import { builtFile } from "../../src/lib/package-root.ts";
import { CLOCK_OFFSET, setClock } from "../chaos/wrong-clock.ts";
import { TEMPORAL_CLOCK } from "./tools.ts";

const DAY_SECONDS = 86_400;

/**
 * The date of a cluster, which the service's processes and Temporal's take over when they start. MongoDB and PostgreSQL keep the machine's:
 * neither decides anything by its own clock but when it removes what has expired.
 */
export class Clock {
  #seconds = 0;

  /** Settings of a program in Node. */
  get ofNode(): NodeJS.ProcessEnv {
    return {
      [CLOCK_OFFSET]: String(1_000 * this.#seconds),
      NODE_OPTIONS: `--import ${pathToFileURL(builtFile("lab/chaos/wrong-clock.ts")).href}`,
    };
  }

  get ofTemporal(): NodeJS.ProcessEnv {
    return { [TEMPORAL_CLOCK]: String(this.#seconds) };
  }

  /** Sets this process's clock forward, and that of each process that starts from now on. */
  forward(days: number): void {
    this.#seconds += days * DAY_SECONDS;
    setClock(1_000 * this.#seconds);
  }
}
