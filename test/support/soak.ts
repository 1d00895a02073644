import { Random } from "../../lab/random.ts";
import { seed } from "./seed.ts";

/** Whether this is the long run: `npm run soak`. */
export const isSoak = process.env["TEST_SOAK"] === "1";

/** How often, or how long, something random is tried: a short pass in `npm test`, a long one in `npm run soak`. */
export const shortOrSoak = (short: number, soak: number): number => (isSoak ? soak : short);

/** So many of those alike, picked by the run's seed, in `npm test`; all of them in `npm run soak`. */
export function someOrAll<T>(all: readonly T[], count: number): readonly T[] {
  if (isSoak || all.length <= count) return all;
  const picked = new Set(new Random(seed).shuffled(all).slice(0, count));
  return all.filter((each) => picked.has(each));
}

/** Tests that need nothing of each other, by their titles: some of them in `npm test`, all of them in `npm run soak`. */
export function someTests(count: number, tests: Readonly<Record<string, () => Promise<void> | void>>): void {
  for (const [title, play] of someOrAll(Object.entries(tests), count)) it(title, play);
}
