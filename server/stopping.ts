export interface Stopping {
  readonly signal: AbortSignal;
  /** Registers an action for a second signal, before the process exits at once. */
  readonly beforeEndingAtOnce: (act: () => void) => void;
}

/** A shell's exit code for a program ended by Ctrl-C. */
const SIGINT_EXIT_CODE = 130;

/**
 * Starts listening for signals. Called before anything else, so that a process stopped during its start cleans up. A
 * second signal ends the process at once.
 */
export function heedSignals(): Stopping {
  const stopRequested = new AbortController();
  const atLast: (() => void)[] = [];
  const onSignal = (): void => {
    if (stopRequested.signal.aborted) {
      for (const act of atLast) act();
      process.exit(SIGINT_EXIT_CODE);
    }
    stopRequested.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return { signal: stopRequested.signal, beforeEndingAtOnce: (act) => void atLast.push(act) };
}
