import { TimeoutError } from "./with-timeout.ts";

/** Time of an answer after its handler's last wait, audit entry included, on a busy machine. */
export const RESPONSE_MARGIN_MS = 700;

export class Arrival {
  #at = performance.now();
  readonly #hasLeft: () => boolean;

  /** `hasLeft` returns whether the caller's connection is closed. */
  constructor(hasLeft: () => boolean = () => false) {
    this.#hasLeft = hasLeft;
  }

  get isAbandoned(): boolean {
    return this.#hasLeft();
  }

  get elapsedMs(): number {
    return performance.now() - this.#at;
  }

  /** Excludes the duration of work that depends on the caller, such as receiving the rest of a request. */
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
 * Deadline of a request's answer, measured from its arrival: one deadline for the whole request, so that the timeouts
 * of its parts do not add up. Work that takes longer goes on.
 */
export class Deadline {
  readonly #arrival: Arrived;
  #boundMs: number;
  /** Request id for log lines; null without a request. */
  readonly requestId: string | null;

  constructor(boundMs: number, arrival: Arrived, requestId: string | null = null) {
    this.requestId = requestId;
    this.#arrival = arrival;
    this.#boundMs = boundMs;
  }

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

  /** Whether the deadline has passed. Stays true unless the deadline is moved. */
  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  /** Whether the caller can still get the answer. */
  get isAwaited(): boolean {
    return !this.isOver && this.#arrival.isAbandoned !== true;
  }

  /** Moves the deadline later, for an answer that has to wait for something longer. Never moves it earlier. */
  moveTo(boundMs: number): void {
    this.#boundMs = Math.max(this.#boundMs, boundMs);
  }

  /**
   * Resolves to the work's outcome, or throws `TimeoutError` once the deadline has passed, even if it was moved
   * meanwhile; the work itself goes on.
   */
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
