import type { Timers } from "../lib/timers.ts";

/** So long a batch waits for requests that are about to ask. */
const ASKING_MS = 2;

/** So long after an answer whoever got it may ask again, and so long a batch waits for those that are being answered at the most. */
const RETURNING_MS = 2;
const ANSWERING_MS = 12;

/** An update's duration is taken for what most of the last ones have shown. */
const NEWEST_SHARE = 0.25;

/** Where waiting was for nothing so often in a row, so many batches go at once. */
const VAIN_MAX = 3;
const UNGATHERED_BATCHES = 32;

/** Of those that were being answered, this part has to come again while a batch waits for them. */
const RETURNED_PART = 0.5;

/** Counted until whoever it is for calls the answer, and then not twice. */
export type Release = () => void;

/**
 * How long a batch waits for more to go with it. An update costs about as much with many commands as with one, and takes longer than most
 * callers need to be answered and to ask again: who sends at once what has come meanwhile splits the callers into groups, each of which
 * waits for the updates of the others. Nothing waits where nobody is about to come, and not for long where those that were waited for did
 * not come.
 */
export class Gathering {
  readonly #timers: Pick<Timers, "monotonicMs">;
  readonly #onRelease: () => void;
  /** Requests that are about to ask, and those that were decided and are being answered. */
  #asking = 0;
  #answering = 0;
  /** When the last update ended, how long one takes, and who was answered last. */
  #endedMs = 0;
  #updateMs = 0;
  #answeredMs = -Infinity;
  /** How many were waited for, and how many were here then; null: nobody is waited for. */
  #gathered: { readonly from: number; readonly were: number } | null = null;
  #vain = 0;
  #ungathered = 0;

  constructor(timers: Pick<Timers, "monotonicMs">, onRelease: () => void) {
    this.#timers = timers;
    this.#onRelease = onRelease;
  }

  /** Whether anybody is counted. */
  get isEmpty(): boolean {
    return this.#asking === 0 && this.#answering === 0;
  }

  /** A request is about to ask. */
  asking(): Release {
    this.#asking += 1;
    return this.#once(() => (this.#asking -= 1));
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

  /** How much longer a batch waits of which so many commands are here, the first since then; 0: it goes. */
  leftMs(waiting: number, sinceMs: number): number {
    const now = this.#timers.monotonicMs();
    const untilMs = Math.max(
      this.#asking > 0 ? Math.max(sinceMs, this.#endedMs) + ASKING_MS : 0,
      this.#ungathered > 0 ? 0 : this.#returningUntilMs(),
    );
    if (untilMs > now) this.#gathered ??= { from: this.#answering, were: waiting };
    return Math.max(0, untilMs - now);
  }

  #returningUntilMs(): number {
    const lastMs = this.#endedMs + Math.min(this.#updateMs, ANSWERING_MS);
    return this.#answering > 0 ? lastMs : Math.min(lastMs, this.#answeredMs + RETURNING_MS);
  }

  /** A batch of so many goes. */
  sent(commands: number): void {
    const gathered = this.#gathered;
    this.#gathered = null;
    this.#ungathered = Math.max(0, this.#ungathered - 1);
    if (gathered === null || gathered.from === 0) return;
    const returned = commands - gathered.were;
    this.#vain = returned >= RETURNED_PART * gathered.from ? 0 : this.#vain + 1;
    if (this.#vain < VAIN_MAX) return;
    this.#vain = 0;
    this.#ungathered = UNGATHERED_BATCHES;
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
