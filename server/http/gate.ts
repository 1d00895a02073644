/** Permits for so many concurrent requests of a kind; further ones are refused before any work is done for them. */
export class Gate {
  readonly #insideMax: number;
  #inside = 0;

  constructor(insideMax: number) {
    this.#insideMax = insideMax;
  }

  /** A permit, which its holder releases; null where there is none. */
  enter(): Permit | null {
    if (this.#inside >= this.#insideMax) return null;
    this.#inside += 1;
    let taken = true;
    const leave = (): void => {
      if (taken) this.#inside -= 1;
      taken = false;
    };
    return {
      release: leave,
      releaseWhile: async (work) => {
        leave();
        try {
          return await work;
        } finally {
          taken = true;
          this.#inside += 1;
        }
      },
    };
  }
}

export interface Permit {
  release(): void;
  /**
   * Releases the permit while waiting for the caller, so that slow callers do not keep others out, and takes it again after that,
   * even beyond the limit.
   */
  releaseWhile<T>(work: Promise<T>): Promise<T>;
}
