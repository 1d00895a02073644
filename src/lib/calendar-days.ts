import { offsetOf } from "./zone-offset.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export interface CalendarDay {
  /** For example 2026-03-29. */
  readonly day: string;
  readonly from: Date;
  readonly until: Date;
}

/** Calendar days of an IANA zone; they have 23 to 25 hours when the clocks change. */
export class CalendarDays {
  readonly #offsetAt: (atMs: number) => number;

  constructor(timezone = "UTC") {
    this.#offsetAt = offsetOf(timezone);
  }

  /** Returns the day that contains an instant. */
  of(at: Date): CalendarDay {
    return this.named(
      new Date(at.getTime() + this.#offsetAt(at.getTime()) * MINUTE_MS).toISOString().slice(0, 10),
    );
  }

  named(day: string): CalendarDay {
    const midnight = Date.parse(`${day}T00:00:00.000Z`);
    return { day, from: this.#firstOf(midnight), until: this.#firstOf(midnight + DAY_MS) };
  }

  before({ day }: CalendarDay): CalendarDay {
    return this.named(new Date(Date.parse(`${day}T00:00:00.000Z`) - DAY_MS).toISOString().slice(0, 10));
  }

  /**
   * Returns the instant of a day's midnight in the zone. A skipped midnight is the moment of the skip; a repeated one
   * is the first. No offset exceeds a day.
   */
  #firstOf(midnightMs: number): Date {
    const isReached = (atMs: number): boolean => atMs + this.#offsetAt(atMs) * MINUTE_MS >= midnightMs;
    let [not, reached] = [midnightMs - DAY_MS, midnightMs + DAY_MS];
    while (reached - not > MINUTE_MS) {
      const middle = not + Math.floor((reached - not) / 2 / MINUTE_MS) * MINUTE_MS;
      if (isReached(middle)) reached = middle;
      else not = middle;
    }
    return new Date(reached);
  }
}
