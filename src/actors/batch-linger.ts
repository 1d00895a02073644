import type { Timers } from "../lib/timers.ts";

/** Maximum wait of a batch for requests that are about to submit. */
const EXPECTED_REQUEST_MS = 2;

/**
 * Maximum time between a response and its caller's next request, and maximum wait of a batch for callers that are
 * being answered.
 */
const RETURNING_MS = 2;
export const RETURNED_WITHIN_MS = 12;

/** An update's duration is taken for what most of the last ones have shown. */
const NEWEST_SHARE = 0.25;

/** Number of fruitless waits in a row after which as many batches are sent without lingering. */
const FRUITLESS_MAX = 3;
const UNLINGERED_BATCHES = 32;

/** Share of the callers being answered that has to send another request while a batch waits for them. */
const RETURNED_PART = 0.5;

/** Counted until released; a second release does nothing. */
export type Release = () => void;

/**
 * Decides how long a batch lingers for more commands. An update costs about as much with many commands as with one,
 * and takes longer than most callers need to be answered and to ask again: sending at once what has come meanwhile
 * splits the callers into groups, each of which waits for the updates of the others. A batch does not wait where no
 * caller is about to come, and not for long where those that were waited for did not come.
 */
export class BatchLinger {
  readonly #timers: Pick<Timers, "monotonicMs">;
  readonly #onRelease: () => void;
  /** Requests that are about to ask, and those that were decided and are being answered. */
  #expecting = 0;
  #answering = 0;
  /** End and duration of the last update, and the callers answered last. */
  #endedMs = 0;
  #updateMs = 0;
  #answeredMs = -Infinity;
  /** Number of callers that the batch lingers for, and of its commands at that time; null: none. */
  #lingered: { readonly from: number; readonly were: number } | null = null;
  #fruitless = 0;
  #unlingered = 0;

  constructor(timers: Pick<Timers, "monotonicMs">, onRelease: () => void) {
    this.#timers = timers;
    this.#onRelease = onRelease;
  }

  /** Whether any caller is counted. */
  get isEmpty(): boolean {
    return this.#expecting === 0 && this.#answering === 0;
  }

  /** A request is about to ask. */
  expecting(): Release {
    this.#expecting += 1;
    return this.#once(() => (this.#expecting -= 1));
  }

  /** A request was decided, and is being answered. */
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

  /** Returns how much longer a batch of so many commands lingers, the first of them since then; 0: it is sent. */
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

  /** A batch of so many goes. */
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
