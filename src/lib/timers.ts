/** Timers of a mailbox; the simulation provides its own. */
export interface Timers {
  /** Runs something later, unless the returned function is called first. */
  after(ms: number, run: () => void): () => void;
  /** Monotonic time in milliseconds, unaffected by changes of the clock. */
  monotonicMs(): number;
}

export const realTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  monotonicMs: () => performance.now(),
};
