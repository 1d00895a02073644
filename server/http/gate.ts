/** Room for so many requests of a kind; whoever comes beyond them is turned away before anything is done for them. */
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
   * Gives the place up while the caller is waited for, so that nobody keeps others out by being slow, and takes it again after that,
   * whether there is room or not.
   */
  releaseWhile<T>(work: Promise<T>): Promise<T>;
}
