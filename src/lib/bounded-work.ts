import { FairQueue } from "./fair-queue.ts";
import { Gate, type Permit } from "./gate.ts";
import type { Unavailable } from "./unavailable.ts";

/** The queue was full, or the work's turn came too late; it was not begun. */
export class TooMuchWork extends Error implements Unavailable {
  override readonly name = "TooMuchWork";
  readonly isUnavailable = true;
}

/** Numbers of pieces of work. */
interface Places {
  readonly atOnceMax: number;
  readonly waitingMax: number;
}

export interface WorkBounds extends Places {
  /** Work that has waited longer is not begun: its caller was answered 503, or is about to be. */
  readonly waitMs: number;
  /** The share of one sender; missing: all of it. */
  readonly share?: Places;
}

interface Turn {
  readonly sender: string;
  readonly begin: (permit: Permit) => void;
}

/** Expensive work: so much of it at once, and a short queue in which senders take turns. */
export class BoundedWork {
  readonly #bounds: WorkBounds;
  readonly #share: Places;
  readonly #elapsed: () => number;
  readonly #running: Gate;
  readonly #waiting = new FairQueue<Turn>(() => "none");

  /** `elapsed`: a monotonic clock in milliseconds. */
  constructor(bounds: WorkBounds, elapsed: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#share = bounds.share ?? bounds;
    this.#elapsed = elapsed;
    this.#running = new Gate(bounds.atOnceMax);
  }

  /**
   * Carries the work out when its turn has come, that of one sender in the order of the calls. Throws `TooMuchWork`: at once where
   * the queue is full, or the sender's share of it, and in its turn where that has come too late.
   */
  async run<T>(work: () => Promise<T>, sender = ""): Promise<T> {
    const waiting = this.#waiting.sizeOf(sender);
    const permit = waiting === 0 ? this.#enter(sender) : null;
    if (permit !== null) return this.#carryOut(permit, work);
    const { waitMs, waitingMax } = this.#bounds;
    if (this.#waiting.size >= waitingMax || waiting >= this.#share.waitingMax) {
      throw new TooMuchWork(`${this.#waiting.size} pieces of work wait already, ${waiting} of this sender`);
    }
    const until = this.#elapsed() + waitMs;
    const turn = await new Promise<Permit>((begin) => this.#waiting.add(sender, { sender, begin }));
    return this.#carryOut(turn, () => {
      if (this.#elapsed() > until) throw new TooMuchWork(`its turn did not come within ${waitMs} ms`);
      return work();
    });
  }

  #enter(sender: string): Permit | null {
    return this.#running.enter({ name: sender, max: this.#share.atOnceMax });
  }

  async #carryOut<T>(permit: Permit, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      permit.release();
      this.#beginNext();
    }
  }

  #beginNext(): void {
    this.#waiting.take(({ begin, sender }) => {
      const permit = this.#enter(sender);
      if (permit !== null) begin(permit);
      return permit !== null;
    });
  }
}
