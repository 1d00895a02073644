import type { RunResult, WorldResult } from "./run.ts";

/** Returns speed and counts, so that a workload that does nothing shows. */
export function summaryText({ counts, seconds, steps, worlds }: RunResult): string {
  const rate = Math.round((steps / Math.max(seconds, 0.001)) * 60).toLocaleString("en");
  const lines = Object.entries(counts)
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, count]) => `  ${count.toLocaleString("en").padStart(12)}  ${what}`);
  const head = `${steps.toLocaleString("en")} steps in ${String(worlds)} worlds, ${seconds.toFixed(1)} s: ${rate} a minute.`;
  return [head, ...lines].join("\n");
}

/** Returns the violation, its history, and how to reproduce it. */
export function violationText({ seed, violation }: WorldResult): string {
  if (violation === null) return `Seed ${String(seed)}: nothing is wrong.`;
  const { message, step, trail } = violation;
  return [
    `VIOLATION at step ${String(step)} of seed ${String(seed)}: ${message}`,
    ...trail.map((line) => `  ${line}`),
    `Replay: npm run simulate -- --seed ${String(seed)} --steps ${String(step)}`,
  ].join("\n");
}
