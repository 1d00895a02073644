/** A process that is told to end, by SIGTERM or SIGINT. */
export interface Stopping {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** What a second signal does before the process ends at once. */
  readonly beforeEndingAtOnce: (act: () => void) => void;
}

/** What a shell says of a program that was ended by Ctrl-C. */
const ENDED_AT_ONCE = 130;

/**
 * Hears signals from now on: called before anything else, so that whoever is told to end while it starts ends what it has begun.
 * A second signal ends the process at once.
 */
export function heedSignals(): Stopping {
  const told = new AbortController();
  const atLast: (() => void)[] = [];
  const onSignal = (): void => {
    if (told.signal.aborted) {
      for (const act of atLast) act();
      process.exit(ENDED_AT_ONCE);
    }
    told.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return { signal: told.signal, beforeEndingAtOnce: (act) => void atLast.push(act) };
}
