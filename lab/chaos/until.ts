import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 200;

/** It did not come to be in time; the message says what was missing last. */
export class WaitTimeout extends Error {
  override readonly name = "WaitTimeout";
}

/**
 * Asks until nothing is missing: for what happens in other processes, which send no events. An error counts as not yet:
 * what is asked may be down. Answers how long it took.
 */
export async function untilNothingIsMissing(
  what: string,
  withinMs: number,
  missing: () => Promise<string | null>,
): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const last = await missing().catch(
      (error: unknown) => `it can't be asked: ${reasonsOf(error).join(": ")}`,
    );
    const ms = performance.now() - startedAt;
    if (last === null) return ms;
    if (ms >= withinMs) throw new WaitTimeout(`${what}: not within ${String(withinMs / 1_000)} s: ${last}`);
    await sleep(POLL_MS);
  }
}

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** An error's message, and those of what caused it. */
export function reasonsOf(error: unknown): string[] {
  const cause = error instanceof Error ? error.cause : undefined;
  return [reasonOf(error), ...(cause === undefined ? [] : reasonsOf(cause))];
}
