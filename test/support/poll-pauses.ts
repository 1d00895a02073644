import { setTimeout as sleep } from "node:timers/promises";

const FIRST_MS = 20;
const LONGEST_MS = 250;
const GROWTH = 1.2;

/**
 * The pause before something is looked at again: short at first, longer the longer it takes. A test that waits for seconds
 * and looks all the while takes the processor from those beside it.
 */
export const pauseBefore = (look: number): Promise<void> =>
  sleep(Math.min(LONGEST_MS, FIRST_MS * GROWTH ** look));
