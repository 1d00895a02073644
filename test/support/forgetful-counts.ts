import type { Counts } from "../../src/limits/counts.ts";
import { MemoryCounts } from "../../src/limits/memory-counts.ts";

/** Counts that a test can start anew, where it asks more often than people may and is about something else. */
export class ForgetfulCounts implements Counts {
  #counts = new MemoryCounts();

  forget(): void {
    this.#counts = new MemoryCounts();
  }

  add(key: string, points: number): Promise<number> {
    return this.#counts.add(key, points);
  }

  read(key: string): Promise<number> {
    return this.#counts.read(key);
  }
}
