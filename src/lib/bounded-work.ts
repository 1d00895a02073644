import { FairQueue } from "./fair-queue.ts";
import { Gate, type Permit } from "./gate.ts";
import type { Unavailable } from "./unavailable.ts";

/** The work was not begun: the queue was full, or the work's turn came too late. */
export class TooMuchWork extends Error implements Unavailable {
  override readonly name = "TooMuchWork";
  readonly isUnavailable = true;
}

/** Maximum numbers of running and waiting pieces of work. */
interface Places {
  readonly atOnceMax: number;
  readonly waitingMax: number;
}

export interface WorkBounds extends Places {
  /** Maximum wait: afterwards the work is not begun, since its caller has been answered 503, or is about to be. */
  readonly waitMs: number;
  /** Share of one sender; all places if missing. */
  readonly share?: Places;
  /** Whether more urgent work is under way; meanwhile, only one piece of work is run. */
  readonly isYielding?: () => boolean;
}

interface Turn {
  readonly sender: string;
  readonly begin: (permit: Permit) => void;
}

/** Runs expensive work, a bounded amount at a time, with a short queue in which senders take turns. */
export class BoundedWork {
  readonly #bounds: WorkBounds;
  readonly #share: Places;
  readonly #elapsed: () => number;
  readonly #running: Gate;
  readonly #waiting = new FairQueue<Turn>(() => "none");

  /** `elapsed` is a monotonic clock in milliseconds. */
  constructor(bounds: WorkBounds, elapsed: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#share = bounds.share ?? bounds;
    this.#elapsed = elapsed;
    this.#running = new Gate(bounds.atOnceMax);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Runs the work when its turn comes; one sender's work runs in the order of the calls. Throws `TooMuchWork` at once
   * if the queue or the sender's share of it is full, and after `waitMs` if the turn has not come.
   */
  async run<T>(work: () => Promise<T>, sender = "", waitMs = this.#bounds.waitMs): Promise<T> {
    const waiting = this.#waiting.sizeOf(sender);
    const permit = waiting === 0 ? this.#enter(sender) : null;
    if (permit !== null) return this.#carryOut(permit, work);
    const { waitingMax } = this.#bounds;
    if (this.#waiting.size >= waitingMax || waiting >= this.#share.waitingMax) {
      throw new TooMuchWork(
        `the queue is full: ${this.#waiting.size} waiting, ${waiting} of them of this sender`,
      );
    }
    const until = this.#elapsed() + waitMs;
    const tooLate = (): TooMuchWork =>
      new TooMuchWork(`its turn did not come within ${Math.round(waitMs)} ms`);
    const permitted = await new Promise<Permit>((begin, refuse) => {
      const turn: Turn = {
        sender,
        begin: (given) => {
          clearTimeout(timer);
          begin(given);
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.remove((each) => each === turn);
        refuse(tooLate());
      }, waitMs);
      this.#waiting.add(sender, turn);
    });
    return this.#carryOut(permitted, () => {
      if (this.#elapsed() > until) throw tooLate();
      return work();
    });
  }

  #enter(sender: string): Permit | null {
    if (this.#running.inside > 0 && this.#bounds.isYielding?.() === true) return null;
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
