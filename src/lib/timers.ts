/** Timers of a mailbox; the simulation has its own. */
export interface Timers {
  /** Runs something later, unless the caller calls the returned function first. */
  after(ms: number, run: () => void): () => void;
  /** Milliseconds that have passed since some moment, whatever is done to the clock. */
  monotonicMs(): number;
}

export const realTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  monotonicMs: () => performance.now(),
};
