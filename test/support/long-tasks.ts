import type { Page } from "puppeteer-core";
import { z } from "zod";

const MICROSECONDS = 1_000;
const CATEGORIES = ["-*", "disabled-by-default-devtools.timeline", "__metadata"];

const trace = z.object({
  traceEvents: z.array(
    z.object({
      name: z.string(),
      pid: z.number(),
      tid: z.number(),
      dur: z.number().optional(),
      tdur: z.number().optional(),
      args: z.object({ name: z.unknown().optional() }).optional(),
    }),
  ),
});

/** Once what was begun is drawn, and the thread has nothing to do. */
const IDLE = `new Promise((resolve) =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(resolve, { timeout: 5_000 }))))`;

/** The longest task of the page's main thread: for so long at a stretch a user could do nothing on it. */
export interface LongestTask {
  readonly ms: number;
  /** The longest by the processor alone: without what the thread waited for a core, on a machine that others use as well. */
  readonly ownMs: number;
}

/** What the browser itself has noted of its tasks while this was done. */
export async function longestTask(page: Page, act: () => Promise<unknown>): Promise<LongestTask> {
  await page.tracing.start({ categories: CATEGORIES });
  let recorded: Uint8Array | undefined;
  try {
    await act();
    await page.evaluate(IDLE);
  } finally {
    recorded = await page.tracing.stop();
  }
  const { traceEvents } = trace.parse(JSON.parse(Buffer.from(recorded ?? []).toString("utf8")));
  const mains = traceEvents.flatMap(({ args, name, pid, tid }) =>
    name === "thread_name" && args?.name === "CrRendererMain" ? [`${pid}/${tid}`] : [],
  );
  const tasks = traceEvents.filter(
    ({ name, pid, tid }) => name === "RunTask" && mains.includes(`${pid}/${tid}`),
  );
  if (tasks.length === 0) throw new Error("the browser has noted no task of the page");
  const longest = (of: (task: (typeof tasks)[number]) => number | undefined): number =>
    Math.max(...tasks.map((task) => of(task) ?? 0)) / MICROSECONDS;
  return { ms: longest(({ dur }) => dur), ownMs: longest(({ tdur, dur }) => tdur ?? dur) };
}

interface Rounds {
  readonly max: number;
  /** A run as good as this need not be repeated. */
  readonly enoughMs: number;
  /** Makes everything as it was before the first round; the page may be loaded anew. */
  readonly reset: () => Promise<unknown>;
}

/** The best of some rounds: a busy machine's caches only ever make it longer. */
export async function leastTask(
  page: Page,
  { enoughMs, max, reset }: Rounds,
  act: (round: number) => Promise<unknown>,
): Promise<LongestTask> {
  let least: LongestTask = { ms: Infinity, ownMs: Infinity };
  for (let round = 0; round < max && least.ownMs >= enoughMs; round += 1) {
    if (round > 0) await reset();
    const longest = await longestTask(page, () => act(round));
    if (longest.ownMs < least.ownMs) least = longest;
  }
  return least;
}
