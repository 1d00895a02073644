import { readFileSync } from "node:fs";
import { expect } from "chai";

/** What callers are promised is 5 s, whatever is down; the rest is for noticing it. */
export const ANSWER_MS = 5_400;

/** The answer to a payment, whatever its rail does: the OpenAI Agents SDK gives up after 5 s. */
export const PAYMENT_ANSWER_MS = 3_500;

/** Of a busy machine's part so much is left out at the most: not all that waits for a core makes this answer late. */
export const MACHINE_MS_MAX = 3_000;

export interface Timed<T> {
  readonly value: T;
  readonly ms: number;
  /** The same without the time in which the service, which runs in this thread, was ready to go on and had no core; to a bound. */
  readonly ownMs: number;
}

/**
 * How long a process's main thread has waited for a core since it began, in milliseconds: a busy machine's part in
 * whatever is late, which is not the service's. Where the kernel doesn't tell, none.
 */
export function waitedForCoreMs(pid: number | "self" = "self"): number {
  try {
    // Nanoseconds: on a core, waiting for one, and how many turns.
    const [, waited = "0"] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
    return Number(waited) / 1_000_000;
  } catch {
    return 0;
  }
}

export async function timed<T>(work: Promise<T>): Promise<Timed<T>> {
  const [began, waitedBefore] = [performance.now(), waitedForCoreMs()];
  const value = await work;
  const ms = performance.now() - began;
  return { value, ms, ownMs: ms - Math.min(MACHINE_MS_MAX, waitedForCoreMs() - waitedBefore) };
}

/** What came of the work, which a service in this process does, and was done within its time. */
export async function inTime<T>(what: string, work: Promise<T>, withinMs = ANSWER_MS): Promise<T> {
  const { value, ownMs } = await timed(work);
  expect(ownMs, `${what} was answered after`).to.be.below(withinMs);
  return value;
}
