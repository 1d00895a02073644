import type { Timers } from "../lib/timers.ts";

/** Maximum wait of a batch for requests that are about to submit. */
const EXPECTED_REQUEST_MS = 2;

/** Time after a response within which its caller's next request is expected. */
const RETURNING_MS = 2;
/** Maximum wait of a batch, after an update, for callers that are being answered. */
export const RETURNED_WITHIN_MS = 12;

/** Weight of the newest sample in the moving average of update durations. */
const NEWEST_SHARE = 0.25;

/** Number of fruitless waits in a row after which `UNLINGERED_BATCHES` batches are sent without lingering. */
const FRUITLESS_MAX = 3;
const UNLINGERED_BATCHES = 32;

/** Minimum share of the callers waited for that must return for a wait to count as fruitful. */
const RETURNED_PART = 0.5;

/** Releases a counted request; a second call has no effect. */
export type Release = () => void;

/**
 * Decides how long a batch lingers for more commands. An update costs about as much with many commands as with one, and
 * takes longer than most callers need to receive a response and send the next request. Sending at once would split the
 * callers into groups, each waiting for the other groups' updates. A batch does not wait if no caller is expected, and
 * only briefly if expected callers have stayed away.
 */
export class BatchLinger {
  readonly #timers: Pick<Timers, "monotonicMs">;
  readonly #onRelease: () => void;
  /** Requests that are about to submit, and decided requests that are being answered. */
  #expecting = 0;
  #answering = 0;
  /** End and average duration of the last updates, and the time of the last response. */
  #endedMs = 0;
  #updateMs = 0;
  #answeredMs = -Infinity;
  /** Number of callers that the batch lingers for, and of its commands when that began; null if it does not linger. */
  #lingered: { readonly from: number; readonly were: number } | null = null;
  #fruitless = 0;
  #unlingered = 0;

  constructor(timers: Pick<Timers, "monotonicMs">, onRelease: () => void) {
    this.#timers = timers;
    this.#onRelease = onRelease;
  }

  get isEmpty(): boolean {
    return this.#expecting === 0 && this.#answering === 0;
  }

  /** Counts a request that is about to submit. */
  expecting(): Release {
    this.#expecting += 1;
    return this.#once(() => (this.#expecting -= 1));
  }

  /** Counts a decided request that is being answered. */
  answering(): Release {
    this.#answering += 1;
    return this.#once(() => {
      this.#answering -= 1;
      this.#answeredMs = this.#timers.monotonicMs();
    });
  }

  updated(tookMs: number): void {
    this.#endedMs = this.#timers.monotonicMs();
    const before = this.#updateMs === 0 ? tookMs : this.#updateMs;
    this.#updateMs = before + NEWEST_SHARE * (tookMs - before);
  }

  /**
   * Returns how much longer a batch lingers, given its number of commands and the arrival of the first; 0 to send it.
   */
  leftMs(waiting: number, sinceMs: number): number {
    const now = this.#timers.monotonicMs();
    const untilMs = Math.max(
      this.#expecting > 0 ? Math.max(sinceMs, this.#endedMs) + EXPECTED_REQUEST_MS : 0,
      this.#unlingered > 0 ? 0 : this.#returningUntilMs(),
    );
    if (untilMs > now) this.#lingered ??= { from: this.#answering, were: waiting };
    return Math.max(0, untilMs - now);
  }

  #returningUntilMs(): number {
    const lastMs = this.#endedMs + Math.min(this.#updateMs, RETURNED_WITHIN_MS);
    return this.#answering > 0 ? lastMs : Math.min(lastMs, this.#answeredMs + RETURNING_MS);
  }

  /** Notes that a batch was sent, and whether lingering for it paid off. */
  sent(commands: number): void {
    const lingered = this.#lingered;
    this.#lingered = null;
    this.#unlingered = Math.max(0, this.#unlingered - 1);
    if (lingered === null || lingered.from === 0) return;
    const returned = commands - lingered.were;
    this.#fruitless = returned >= RETURNED_PART * lingered.from ? 0 : this.#fruitless + 1;
    if (this.#fruitless < FRUITLESS_MAX) return;
    this.#fruitless = 0;
    this.#unlingered = UNLINGERED_BATCHES;
  }

  #once(release: () => void): Release {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      release();
      this.#onRelease();
    };
  }
}
