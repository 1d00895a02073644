import { cpus } from "node:os";
import { ALL_CASES, CASES, SYSTEM_TITLES } from "./cases.ts";
import type { Measurement } from "./measurement.ts";
import { shareOfOthers } from "./cpu.ts";
import type { IdleResult, Payments } from "./idle.ts";
import type { ListFigures, ListsResult, PageFigures } from "./lists.ts";
import type { BenchOptions } from "./options.ts";
import { type PendingResult, RECOVERIES } from "./pending.ts";
import type { Series } from "./rounds.ts";
import { median } from "./statistics.ts";
import { eventsPerRequest, type Target } from "./targets.ts";

/** Results of a run. */
export interface BenchResult {
  readonly startedAt: string;
  readonly seconds: number;
  readonly machine: string;
  readonly options: Pick<BenchOptions, "rounds" | "seconds" | "turns">;
  readonly series: readonly Series[];
  readonly targets: readonly Target[];
  /** Null: not asked for; a text: why there is none. */
  readonly idle: IdleResult | string | null;
  /** Null: not asked for. */
  readonly lists: ListsResult | null;
  /** Null: not asked for. */
  readonly pending: PendingResult | null;
  /** Null: not asked for. */
  /** Disagreements between books; empty: none. */
  readonly disagreements: readonly string[];
  readonly errors: number;
}

export const machine = (): string =>
  `${String(cpus().length)} x ${cpus()[0]?.model ?? "unknown processor"}, Node ${process.version}`;

const of = (series: Series, figure: (measured: Measurement) => number): number =>
  median(series.rounds.map(figure));

const COLUMNS = ["case", "system", "p50 ms", "p99 ms", "max ms", "per second", "errors"] as const;

function row(series: Series): string[] {
  const { rounds } = series;
  return [
    ALL_CASES[series.case].title,
    SYSTEM_TITLES[series.system],
    of(series, (measured) => measured.p50Ms).toFixed(1),
    of(series, (measured) => measured.p99Ms).toFixed(1),
    Math.max(...rounds.map(({ maxMs }) => maxMs)).toFixed(0),
    of(series, (measured) => measured.perSecond).toFixed(0),
    String(rounds.reduce((sum, { errors }) => sum + errors, 0)),
  ];
}

/** A table in Markdown, aligned, so that it reads the same in a terminal and in the documentation. */
function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  textColumns: number,
): string[] {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => pad(cell, widths[column] ?? 0, column < textColumns)).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column < textColumns ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [line(header), line(rule), ...rows.map(line)];
}

const pad = (cell: string, width: number, left: boolean): string =>
  left ? cell.padEnd(width) : cell.padStart(width);

const digits = (value: number): string => value.toFixed(Number.isInteger(value) || value >= 100 ? 0 : 2);

function targetRow({ atMost, limit, name, passed, unit, value }: Target): string[] {
  const shown = value === null ? "not measured" : `${digits(value)}${unit}`;
  const verdict = passed === null ? "-" : passed ? "PASS" : "FAIL";
  return [name, `${atMost ? "at most" : "at least"} ${String(limit)}${unit}`, shown, verdict];
}

function histories(series: readonly Series[]): string[] {
  return series.flatMap((each) => {
    const events = eventsPerRequest(each);
    if (events === null || each.course === null) return [];
    const { runs } = each.course;
    return [
      `${ALL_CASES[each.case].title}: ${events.toFixed(2)} events per payment, ${String(runs)} roll-overs to a new run`,
    ];
  });
}

/** Processor time per request: what is scarce when all of it runs on one machine. */
function cpuTable(series: readonly Series[]): string[] {
  const takePart = (name: string) => series.some(({ rounds }) => rounds.some(({ cpuMs }) => name in cpuMs));
  const names = ["service", "temporal", "mongod", "anvil", "receiver", "generator"].filter(takePart);
  const rows = series.map((each) => {
    // A process that takes no part has used nothing; the usage of one that does may be unknown.
    const perRequest = names.map((name) =>
      of(each, ({ cpuMs, requests }) => (name in cpuMs ? (cpuMs[name] ?? Number.NaN) : 0) / requests),
    );
    const cells = [...perRequest, perRequest.reduce((sum, value) => sum + value, 0)];
    return [ALL_CASES[each.case].title, SYSTEM_TITLES[each.system], ...cells.map((ms) => ms.toFixed(2))];
  });
  return table(["processor ms per request", "system", ...names, "all"], rows, 2);
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

/** Says how busy the machine was with something else, and so what the figures are worth. */
function noise(series: readonly Series[]): string {
  const shares = series.flatMap(({ rounds }) =>
    rounds.map(({ cpuMs, seconds }) => shareOfOthers(cpuMs, seconds)),
  );
  return `Other processes had ${percent(median(shares))} of the machine (median), ${percent(Math.max(...shares))} at the most.`;
}

const targetLines = (targets: readonly Target[]): string[] => [
  ...table(["target", "limit", "reached", "verdict"], targets.map(targetRow), 2),
  "",
];

const caseLines = (series: readonly Series[], targets: readonly Target[]): string[] => [
  ...table(COLUMNS, series.map(row), 2),
  "",
  ...targetLines(targets),
  ...cpuTable(series),
  "",
  ...histories(series),
];

const MEGABYTE = 1_000_000;
const KILOBYTE = 1_000;

const paymentCells = (name: string, payments: Payments | null): string[] =>
  payments === null
    ? [name, "0", "-", "-", "-"]
    : [
        name,
        String(payments.count),
        payments.p50Ms.toFixed(1),
        payments.maxMs.toFixed(0),
        payments.toWarm.toFixed(2),
      ];

function idleLines(idle: IdleResult | string | null): string[] {
  if (idle === null) return [];
  if (typeof idle === "string") return [`IDLE AGENTS WERE NOT MEASURED: ${idle}`, ""];
  const { agents, asked, cached, firstOfCached, firstOfEvicted, madeSeconds, residentBytes, warm } = idle;
  const { after, before } = residentBytes;
  const each = (count: number): string => ((after - before) / count / KILOBYTE).toFixed(0);
  return [
    `${String(agents)} idle agents on one worker (${String(asked)} asked for), made in ${madeSeconds.toFixed(0)} s; ${String(cached)} actors in its cache.`,
    `Its memory: ${(before / MEGABYTE).toFixed(0)} MB before, ${(after / MEGABYTE).toFixed(0)} MB after; ${each(agents)} kB per agent, ${each(cached)} kB per cached one.`,
    "",
    ...table(
      ["payment", "samples", "p50 ms", "max ms", "to warm"],
      [
        paymentCells("of a warm agent", warm),
        paymentCells("first of an idle agent, its actor cached", firstOfCached),
        paymentCells("first of an idle agent, its actor evicted", firstOfEvicted),
      ],
      1,
    ),
    "",
  ];
}

const MEBIBYTE = 2 ** 20;

const PAGE_COLUMNS = ["p50 ms", "to one", "processor ms"] as const;

const pageCells = ({ p50Ms, processorMs, toOne }: PageFigures): string[] => [
  p50Ms.toFixed(1),
  toOne.toFixed(2),
  processorMs?.toFixed(1) ?? "-",
];

const listCells = ({ by, deep, filter, first }: ListFigures): string[] => [
  by,
  filter,
  ...pageCells(first),
  String(deep.page),
  ...pageCells(deep),
];

function listLines(result: ListsResult | null): string[] {
  if (result === null) return [];
  const { agents, file, lists, oneMs, rows, seededSeconds, writing } = result;
  const { before, most } = file.residentBytes;
  const { indexes, insertMicroseconds: insert, settleMicroseconds: settle } = writing;
  return [
    `${String(rows)} transactions of ${String(agents)} agents, written in ${seededSeconds.toFixed(0)} s. One transaction by its id: p50 ${oneMs.toFixed(1)} ms.`,
    "",
    ...table(["key of", "filter", ...PAGE_COLUMNS, "page", ...PAGE_COLUMNS], lists.map(listCells), 2),
    "",
    `Export: ${String(file.rows)} rows, ${(file.bytes / MEBIBYTE).toFixed(0)} MiB, ${file.rowsPerSecond.toFixed(0)} rows a second; the bare cursor ${file.rawRowsPerSecond.toFixed(0)}.`,
    `The service's memory: ${(before / MEBIBYTE).toFixed(0)} MiB before, ${(most / MEBIBYTE).toFixed(0)} MiB at the most.`,
    `A record's insert, acknowledged: ${insert.all.toFixed(0)} µs with ${String(indexes.all)} indexes, ${insert.withoutLists.toFixed(0)} µs with the ${String(indexes.withoutLists)} that lists do not need; its settling ${settle.all.toFixed(0)} and ${settle.withoutLists.toFixed(0)} µs.`,
    "",
  ];
}

const turnsOf = ({ turns }: Pick<BenchOptions, "turns">): string =>
  turns === 1 ? "" : ` in ${String(turns)} turns`;

/** Returns lines for a reader. */
function pendingLines(result: PendingResult | null): string[] {
  if (result === null) return [];
  const { phases, settledSeconds } = result;
  const rows = phases.map(({ figures, pending }) => [
    String(pending),
    ...RECOVERIES.flatMap((each) => [figures[each].p50Ms.toFixed(1), figures[each].p95Ms.toFixed(1)]),
  ]);
  const columns = RECOVERIES.flatMap((each) => [`${each} p50 ms`, `${each} p95 ms`]);
  return [
    "",
    ...table(["pending", ...columns], rows, 0),
    "",
    `Once their chain had confirmed them, all were final within ${settledSeconds.toFixed(1)} s.`,
  ];
}

export function report(result: BenchResult): string {
  const { disagreements, errors, idle, lists, options, series, targets } = result;
  const sorted = CASES.flatMap((name) => series.filter((each) => each.case === name));
  return [
    result.machine,
    `${result.startedAt}, ${result.seconds.toFixed(0)} s; medians of ${String(options.rounds)} interleaved rounds of ${String(options.seconds)} s${turnsOf(options)}, max of all`,
    "",
    ...(series.length === 0
      ? targetLines(targets.filter(({ value }) => value !== null))
      : caseLines(sorted, targets)),
    ...idleLines(idle),
    ...listLines(lists),
    ...pendingLines(result.pending),
    ...(series.length === 0 ? [] : [noise(sorted)]),
    disagreements.length === 0
      ? "Books agree: answered = approved = ledger entries = spent by the ledger."
      : `BOOKS DISAGREE: ${disagreements.join("; ")}`,
    errors === 0 ? "No errors." : `${String(errors)} ERRORS.`,
  ].join("\n");
}
