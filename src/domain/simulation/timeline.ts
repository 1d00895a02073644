/** Future actions, ordered by time. */
export class Timeline {
  /** Latest first. */
  readonly #entries: { readonly at: number; readonly run: (at: number) => void }[] = [];

  /** Runs an action at `at`; actions of the same time run in the order of their addition. */
  at(at: number, run: (at: number) => void): void {
    let [from, to] = [0, this.#entries.length];
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      if ((this.#entries[middle]?.at ?? 0) > at) from = middle + 1;
      else to = middle;
    }
    this.#entries.splice(from, 0, { at, run });
  }

  runUntil(now: number): void {
    for (let next = this.#entries.at(-1); next !== undefined && next.at <= now; next = this.#entries.at(-1)) {
      this.#entries.pop();
      next.run(next.at);
    }
  }
}
