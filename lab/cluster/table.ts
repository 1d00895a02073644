import type { RunResult, Usage } from "../chaos/report.ts";

/** Component whose work no further machine can share. */
export const PRIMARY = "MongoDB, primary";
/** Payments a second for which cores are computed, and the part of them that is used. */
const RATES = [1_000, 10_000] as const;
const USED_SHARE = 0.6;

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
  const last = usages.at(-1);
  const paper = last === undefined ? [] : RATES.map((rate) => [String(rate), ...coresFor(last, rate)]);
  return [
    table(["event", "failed tries", "engine itself", "no payment for", "worst project"], events),
    table(["payments of", "a second", ...components], costs),
    table(["payments a second", "cores", "of them MongoDB's primary"], paper),
  ].join("");
}

/** Cores that would do it, by the cost of a payment that was measured. */
function coresFor({ processorMsPerPayment }: Usage, rate: number): readonly string[] {
  const cores = (ms: number): string => ((ms * rate) / 1_000 / USED_SHARE).toFixed(0);
  const all = Object.values(processorMsPerPayment).reduce((sum, ms) => sum + ms, 0);
  return [cores(all), cores(processorMsPerPayment[PRIMARY] ?? 0)];
}

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_none, index) => (index === 0 ? "---" : "--:"));
  return rows.length === 0 ? "" : `\n${[head, rule, ...rows].map(line).join("\n")}\n`;
}
