/** The part of a gate's permits that one name, such as an organization's id, may hold. */
export interface Share {
  readonly name: string;
  readonly max: number;
}

/**
 * Permits for a bounded number of concurrent pieces of work, each name limited to its share. Further work is refused
 * before anything is done for it.
 */
export class Gate {
  readonly #insideMax: number;
  readonly #insideOf = new Map<string, number>();
  #inside = 0;

  constructor(insideMax: number) {
    this.#insideMax = insideMax;
  }

  get inside(): number {
    return this.#inside;
  }

  isFull(...shares: readonly Share[]): boolean {
    const isUsedUp = ({ max, name }: Share): boolean => (this.#insideOf.get(name) ?? 0) >= max;
    return this.#inside >= this.#insideMax || shares.some(isUsedUp);
  }

  /** Returns a permit, which its holder must release; null if there is none left, or a share is used up. */
  enter(...shares: readonly Share[]): Permit | null {
    if (this.isFull(...shares)) return null;
    this.#count(shares, 1);
    let taken = true;
    const leave = (): void => {
      if (taken) this.#count(shares, -1);
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
          this.#count(shares, 1);
        }
      },
    };
  }

  #count(shares: readonly Share[], by: 1 | -1): void {
    this.#inside += by;
    for (const { name } of shares) {
      const inside = (this.#insideOf.get(name) ?? 0) + by;
      if (inside === 0) this.#insideOf.delete(name);
      else this.#insideOf.set(name, inside);
    }
  }
}

export interface Permit {
  release(): void;
  /**
   * Releases the permit while waiting for the caller, so that slow callers do not keep others out, and takes it again
   * afterwards, even beyond the limit.
   */
  releaseWhile<T>(work: Promise<T>): Promise<T>;
}
