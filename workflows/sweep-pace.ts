/** What keeps failing is tried at a slowing pace: the last pause is 2^6 times the first. */
const SLOWED_MAX = 6;
/** Payments somewhat sooner: somebody waits for each. */
const PAYMENTS_SLOWED_MAX = 5;

/** How often something has failed in this run since it succeeded, and until when it is let alone. */
interface Slowed {
  /** What it waits for: a rail, or records. */
  readonly place: string;
  readonly failures: number;
  readonly triedAt: number;
  readonly until: number;
  /** It was tried sooner once, since its rail had answered somebody else. */
  readonly isHurried: boolean;
}

/** When what a sweep could not do is tried again. Known in one run of the ledger; the next one begins anew. */
export class SweepPace {
  readonly #pauseMs: number;
  readonly #slowed = new Map<string, Slowed>();

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  /** Until when it is let alone; 0: it is not. */
  letAloneUntil(name: string): number {
    return this.#slowed.get(name)?.until ?? 0;
  }

  done(name: string): void {
    this.#slowed.delete(name);
  }

  /** It is let alone for a while, the longer the more often it has failed. */
  failed(name: string, place: string, now: number): void {
    const before = this.#slowed.get(name);
    const failures = (before?.failures ?? 0) + 1;
    const slowedMax = place === "records" ? SLOWED_MAX : PAYMENTS_SLOWED_MAX;
    this.#slowed.set(name, {
      place,
      failures,
      triedAt: now,
      until: now + this.#pauseMs * 2 ** Math.min(failures - 1, slowedMax),
      isHurried: before?.isHurried ?? false,
    });
  }

  /**
   * A rail has answered: what it had failed is tried at the first pace again, once. What fails all the same is nothing that the rail's
   * being back helps, and keeps its own pace. Answers when the first of them is due; Infinity: none is.
   */
  answered(place: string): number {
    let soonest = Infinity;
    for (const [name, each] of this.#slowed) {
      if (each.place !== place || each.isHurried) continue;
      const until = Math.min(each.until, each.triedAt + this.#pauseMs);
      this.#slowed.set(name, { ...each, until, isHurried: true });
      soonest = Math.min(soonest, until);
    }
    return soonest;
  }
}
