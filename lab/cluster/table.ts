import type { RunResult } from "../chaos/report.ts";

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** The run as tables in Markdown: each event, and the processor time per payment where it was measured. */
export function tableText({ rounds }: RunResult): string {
  const rows = rounds.map(
    ({ disaster, gapMs, retries, worstProjectGapMs }) =>
      `| ${disaster} | ${String(retries)} | ${seconds(gapMs)} | ${seconds(worstProjectGapMs)} |`,
  );
  const measured = rounds.flatMap(({ processorMsPerPayment }) =>
    processorMsPerPayment === null ? [] : [processorMsPerPayment],
  );
  const ofProcessors = measured.flatMap((each) => [
    "",
    `| ${Object.keys(each).join(" | ")} |`,
    `|${" --: |".repeat(Object.keys(each).length)}`,
    `| ${Object.values(each)
      .map((ms) => `${ms.toFixed(1)} ms`)
      .join(" | ")} |`,
  ]);
  return [
    "",
    "| event | failed tries | no payment for | worst project |",
    "| --- | --: | --: | --: |",
    ...rows,
    ...ofProcessors,
  ].join("\n");
}
