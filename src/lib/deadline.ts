import { TimeoutError } from "./with-timeout.ts";

/** Time that an answer takes after its handler's last wait, audit entry included, on a busy machine. */
export const RESPONSE_MARGIN_MS = 700;

/** Age of a request, and whether its caller still waits. */
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

  /** Excludes the time of the work, such as receiving the rest of a request, which is up to the caller. */
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
 * Latest time of a request's answer, counted from its arrival: one for the whole request, so that the bounds of its
 * parts do not add up (docs/payments.md). Work that takes longer goes on.
 */
export class Deadline {
  readonly #arrival: Arrived;
  #boundMs: number;
  /** Id of the request, for its log lines; null without one. */
  readonly requestId: string | null;

  constructor(boundMs: number, arrival: Arrived, requestId: string | null = null) {
    this.requestId = requestId;
    this.#arrival = arrival;
    this.#boundMs = boundMs;
  }

  /** Time since the request arrived. */
  get elapsedMs(): number {
    return this.#arrival.elapsedMs;
  }

  get leftMs(): number {
    return this.#boundMs - this.elapsedMs;
  }

  /** Time that a handler may spend on optional parts of its answer; never negative. */
  get spareMs(): number {
    return Math.max(0, this.leftMs - RESPONSE_MARGIN_MS);
  }

  /** Whether the caller has been answered. Stays true unless the deadline is moved. */
  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** Whether the caller can still get the answer. */
  get isAwaited(): boolean {
    return !this.isOver && this.#arrival.isAbandoned !== true;
  }

  /** Moves the deadline later, for an answer that turns out to wait for something longer. Never earlier. */
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
