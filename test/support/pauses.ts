import { waitedForCoreMs } from "./in-time.ts";

const ownTime = (): number => performance.now() - waitedForCoreMs();

/**
 * The longest time, in milliseconds, for which this process did nothing else while the work went on. The time in which it
 * was ready to go on and had no core is left out.
 */
export async function longestPauseMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = ownTime();
  const look = (): void => {
    const now = ownTime();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  await work();
  look();
  clearInterval(timer);
  return longest;
}
