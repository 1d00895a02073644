import type { RunResult } from "../chaos/report.ts";

const seconds = (ms: number | null): string => (ms === null ? "" : `${(ms / 1_000).toFixed(1)} s`);

/** The runs as tables in Markdown: their events, and the processor time per payment where it was measured. */
export function tableText(runs: readonly RunResult[]): string {
  const rounds = runs.flatMap((run) => run.rounds);
  const events = rounds.flatMap(({ disaster, engineGapMs, gapMs, retries, usage, worstProjectGapMs }) =>
    usage === null
      ? [[disaster, String(retries), ...[engineGapMs, gapMs, worstProjectGapMs].map(seconds)]]
      : [],
  );
  const usages = rounds.flatMap(({ usage }) => (usage === null ? [] : [usage]));
  const components = Object.keys(usages[0]?.processorMsPerPayment ?? {});
  const costs = usages.map(({ paymentsPerSecond, processorMsPerPayment, projects }) => [
    `${String(projects)} project${projects === 1 ? "" : "s"}`,
    paymentsPerSecond.toFixed(0),
    ...Object.values(processorMsPerPayment).map((ms) => ms.toFixed(1)),
  ]);
  return [
    table(["event", "failed tries", "engine itself", "no payment for", "worst project"], events),
    table(["payments of", "a second", ...components], costs),
  ].join("");
}

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_none, index) => (index === 0 ? "---" : "--:"));
  return rows.length === 0 ? "" : `\n${[head, rule, ...rows].map(line).join("\n")}\n`;
}
