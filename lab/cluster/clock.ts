import { pathToFileURL } from "node:url";
import { builtFile } from "../../src/lib/package-root.ts";
import { CLOCK_OFFSET, setClock } from "../chaos/wrong-clock.ts";
import { TEMPORAL_CLOCK } from "./tools.ts";

const DAY_SECONDS = 86_400;

/** The date of a cluster, which all its processes take over when they start. */
export class Clock {
  readonly #library: string;
  #seconds = 0;

  /** `library`: of Debian's package `faketime`, for programs in C. */
  constructor(library: string) {
    this.#library = library;
  }

  /** Settings of a program in Node. */
  get ofNode(): NodeJS.ProcessEnv {
    return {
      [CLOCK_OFFSET]: String(1_000 * this.#seconds),
      NODE_OPTIONS: `--import ${pathToFileURL(builtFile("lab/chaos/wrong-clock.ts")).href}`,
    };
  }

  get ofMongod(): NodeJS.ProcessEnv {
    return this.#seconds === 0
      ? {}
      : { LD_PRELOAD: this.#library, FAKETIME: `+${String(this.#seconds)}`, DONT_FAKE_MONOTONIC: "1" };
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
