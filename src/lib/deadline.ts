import { TimeoutError } from "./with-timeout.ts";

/**
 * What an answer takes after the last thing that its handler waits for, the audit log's entry included, on a machine that
 * is busy.
 */
export const RESPONSE_MARGIN_MS = 700;

/** A request's age, and whether its caller still waits. */
export class Arrival {
  #at = performance.now();
  readonly #hasLeft: () => boolean;

  /** `hasLeft`: whether the caller's connection is closed. */
  constructor(hasLeft: () => boolean = () => false) {
    this.#hasLeft = hasLeft;
  }

  get isAbandoned(): boolean {
    return this.#hasLeft();
  }

  get elapsedMs(): number {
    return performance.now() - this.#at;
  }

  /** The same as if the work had taken no time: what the caller takes to send the rest of the request is not the service's. */
  async excluding<T>(work: Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work;
    } finally {
      this.#at += performance.now() - began;
    }
  }
}

type Arrived = Pick<Arrival, "elapsedMs"> & Partial<Pick<Arrival, "isAbandoned">>;

/**
 * When a request is answered at the latest, counted from its arrival: one for the whole request, so that bounds of its
 * parts do not add up beyond what callers are promised (docs/crashes.md). What takes longer goes on.
 */
export class Deadline {
  readonly #arrival: Arrived;
  #boundMs: number;
  /** Of the request, for its log lines; null: of none. */
  readonly requestId: string | null;

  constructor(boundMs: number, arrival: Arrived, requestId: string | null = null) {
    this.requestId = requestId;
    this.#arrival = arrival;
    this.#boundMs = boundMs;
  }

  /** Since the request arrived. */
  get elapsedMs(): number {
    return this.#arrival.elapsedMs;
  }

  get leftMs(): number {
    return this.#boundMs - this.elapsedMs;
  }

  /** How long a handler may wait for what its answer can do without: less than what is left, and never less than nothing. */
  get spareMs(): number {
    return Math.max(0, this.leftMs - RESPONSE_MARGIN_MS);
  }

  /** Once true, true for good, unless it is moved: the caller has been answered. */
  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** Whether the caller can still get the answer. */
  get isAwaited(): boolean {
    return !this.isOver && this.#arrival.isAbandoned !== true;
  }

  /** For who learns that the answer waits for something longer, before it is over. Never an earlier one. */
  moveTo(boundMs: number): void {
    this.#boundMs = Math.max(this.#boundMs, boundMs);
  }

  /** The work's outcome, or `TimeoutError` once the deadline is over, wherever it was moved to meanwhile; the work itself goes on. */
  async hold<T>(work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      const look = (): void => {
        if (this.isOver) reject(new TimeoutError(`not within ${String(this.#boundMs)} ms of its arrival`));
        else timer = setTimeout(look, Math.ceil(this.leftMs));
      };
      look();
    });
    try {
      return await Promise.race([work, over]);
    } finally {
      clearTimeout(timer);
    }
  }
}
