import { type CaseName, SYSTEM_TITLES, type SystemName } from "./cases.ts";
import type { Measurement } from "./measurement.ts";
import type { IdleResult } from "./idle.ts";
import type { KeyName, ListsResult } from "./lists.ts";
import { type PendingResult, ratioOf, RECOVERIES } from "./pending.ts";
import type { Series } from "./rounds.ts";
import { median } from "./statistics.ts";

/** A target of an issue and its result; `value` is null where this run did not measure it. */
export interface Target {
  readonly name: string;
  readonly limit: number;
  readonly atMost: boolean;
  readonly unit: string;
  readonly value: number | null;
  /** Null where this run did not measure it. */
  readonly passed: boolean | null;
}

/** The measured series, found by case and system. */
class Results {
  readonly #series: readonly Series[];

  constructor(series: readonly Series[]) {
    this.#series = series;
  }

  of(name: CaseName, system: SystemName): Series | null {
    return this.#series.find((each) => each.case === name && each.system === system) ?? null;
  }

  /** Payments to what is bare: each round's own ratio, and of these the median, so that slow drift cancels out. */
  ratio(
    name: CaseName,
    figure: (measured: Measurement) => number,
    [ours, theirs]: readonly [SystemName, SystemName] = ["payments", "bare"],
  ): number | null {
    const payments = this.of(name, ours)?.rounds;
    const bare = this.of(name, theirs)?.rounds;
    if (payments === undefined || bare === undefined) return null;
    return median(
      payments.map((measured, round) => {
        const beside = bare[round];
        return beside === undefined ? Number.NaN : figure(measured) / figure(beside);
      }),
    );
  }

  /** Returns how much longer a system's requests take at the median than another's: the median over rounds. */
  beyondMs(name: CaseName, system: SystemName, bare: SystemName): number | null {
    const rounds = this.of(name, system)?.rounds;
    const beside = this.of(name, bare)?.rounds;
    if (rounds === undefined || beside === undefined) return null;
    return median(rounds.map(({ p50Ms }, round) => p50Ms - (beside[round]?.p50Ms ?? Number.NaN)));
  }

  slowestMs(name: CaseName): number | null {
    const rounds = this.of(name, "payments")?.rounds;
    return rounds === undefined ? null : Math.max(...rounds.map(({ maxMs }) => maxMs));
  }

  /** Returns the roll-overs of a hot agent's actor. */
  rollOvers(name: CaseName): number | null {
    return this.of(name, "payments")?.course?.runs ?? null;
  }

  eventsPerPayment(name: CaseName): number | null {
    const series = this.of(name, "payments");
    return series === null ? null : eventsPerRequest(series);
  }
}

export function eventsPerRequest({ course, rounds }: Series): number | null {
  const requests = rounds.reduce((sum, measured) => sum + measured.requests, 0);
  return course === null || requests === 0 ? null : course.events / requests;
}

const perSecond = (measured: Measurement): number => measured.perSecond;
const p50 = (measured: Measurement): number => measured.p50Ms;
const p99 = (measured: Measurement): number => measured.p99Ms;

/** Of all that takes part, but for who sends the requests; NaN where the system does not tell. */
const cpuPerRequest = ({ cpuMs, requests }: Measurement): number =>
  Object.entries(cpuMs)
    .filter(([name]) => name !== "machine" && name !== "generator")
    .reduce((sum, [, ms]) => sum + (ms ?? Number.NaN), 0) / requests;

function target(name: string, value: number | null, bound: "<=" | ">=", limit: number, unit: string): Target {
  const atMost = bound === "<=";
  const passed = value === null ? null : atMost ? value <= limit : value >= limit;
  return { name, limit, atMost, unit, value, passed };
}

/** A run in which the hot agent never rolled over proves nothing here, unless it fails. */
function slowestOfHotAgent(results: Results): Target {
  const rollOvers = results.rollOvers("hot");
  const name = `slowest payment of the hot agent, ${String(rollOvers ?? 0)} roll-overs meanwhile`;
  const slowest = target(name, results.slowestMs("hot"), "<=", 1_000, " ms");
  return slowest.passed === true && rollOvers === 0 ? { ...slowest, passed: null } : slowest;
}

/** Cost of authentication and limits: a read by each credential, beyond the same read without. */
const costOfAuthentication = (results: Results): Target[] =>
  (["key-read", "session-read"] as const).map((system) =>
    target(
      `p50 of a ${SYSTEM_TITLES[system]} beyond the bare read`,
      results.beyondMs("read-1", system, "bare-read"),
      "<=",
      1.5,
      " ms",
    ),
  );

/** Cost of the audit log for payments: each round beside one without. */
function costOfAuditLog(results: Results): Target[] {
  const pair = ["payments", "unaudited"] as const;
  return [
    target(
      "p50 one after another, to without the audit log",
      results.ratio("one", p50, pair),
      "<=",
      1.05,
      "x",
    ),
    ...(["spread-16", "spread-50", "hot"] as const).map((name) =>
      target(
        `rate, ${name}, to without the audit log`,
        results.ratio(name, perSecond, pair),
        ">=",
        0.95,
        "x",
      ),
    ),
  ];
}

/** Cost of encrypted payloads: each round beside one in the clear. */
const costOfEncryption = (results: Results): Target[] =>
  (["spread-16", "spread-50"] as const).map((name) =>
    target(
      `rate, ${name}, to payloads in the clear`,
      results.ratio(name, perSecond, ["encrypted", "payments"]),
      ">=",
      0.95,
      "x",
    ),
  );

/** Cost of creating an agent, relative to starting a workflow and its first update. */
const costOfCreating = (results: Results): Target[] =>
  (
    [
      ["p50 of a create one after another, to a bare start", "create-1"],
      ["the same at 16 in flight", "create-16"],
    ] as const
  ).map(([name, each]) => target(name, results.ratio(each, p50, ["creates", "bare-start"]), "<=", 4, "x"));

/** Cost of caps on both levels, relative to payments without any, and to levels in a transaction. */
const costOfCaps = (results: Results): Target[] => {
  const beside = ["capped", "payments"] as const;
  return [
    ...(["caps-16", "caps-50"] as const).map((name) =>
      target(
        `rate under caps on both levels, ${name}, to payments without`,
        results.ratio(name, perSecond, beside),
        ">=",
        0.95,
        "x",
      ),
    ),
    target(
      "p50 under caps one after another, to payments without",
      results.ratio("caps-1", p50, beside),
      "<=",
      1.05,
      "x",
    ),
    target(
      "rate at 50 connections under caps, to the plain endpoint with three levels",
      results.ratio("caps-50", perSecond, ["capped", "plain-levels"]),
      ">=",
      4,
      "x",
    ),
  ];
};

/** Payments beside what a user would write instead. */
const comparedWithPlain = (results: Results): Target[] => {
  const pair = ["payments", "plain"] as const;
  return [
    target(
      "rate at 50 connections, to the plain endpoint",
      results.ratio("spread-50", perSecond, pair),
      ">=",
      0.8,
      "x",
    ),
    target(
      "rate at 200 connections, to the plain endpoint",
      results.ratio("spread-200", perSecond, pair),
      ">=",
      1.1,
      "x",
    ),
    target(
      "processor time per payment at 50 connections, to the plain endpoint",
      results.ratio("spread-50", cpuPerRequest, pair),
      "<=",
      1.3,
      "x",
    ),
  ];
};

/** Cost of a project's many agents, and of one that sends too much, for the others. */
const comparedWithOthers = (results: Results): Target[] => [
  ...(
    [
      ["large-1000", 200],
      ["large-10000", 400],
    ] as const
  ).map(([system, limit]) => slowestInRollOver(results, system, limit)),
  target(
    "p99 of quiet agents while another sends 200 at once, to without",
    results.ratio("runaway-4", p99, ["runaway", "payments"]),
    "<=",
    1.5,
    "x",
  ),
];

/** A run in which the ledger never rolled over proves nothing here, unless it fails. */
function slowestInRollOver(results: Results, system: SystemName, limit: number): Target {
  const series = results.of("roll-over", system);
  const rollOvers = series?.course?.runs ?? 0;
  const value = series === null ? null : Math.max(...series.rounds.map(({ maxMs }) => maxMs));
  const name = `slowest of ${SYSTEM_TITLES[system]}, ${String(rollOvers)} roll-overs meanwhile`;
  const slowest = target(name, value, "<=", limit, " ms");
  return slowest.passed === true && rollOvers === 0 ? { ...slowest, passed: null } : slowest;
}

/** Cost of webhooks: a delivery relative to the least possible, and payments with and without an endpoint. */
const costOfWebhooks = (results: Results): Target[] => [
  target(
    "rate of deliveries at 50 under way, to bare runs",
    results.ratio("deliver-50", perSecond, ["deliveries", "bare-runs"]),
    ">=",
    0.6,
    "x",
  ),
  ...(["delivered-16", "delivered-50"] as const).map((name) =>
    target(
      `rate with an endpoint for every event, ${name}, to without`,
      results.ratio(name, perSecond, ["delivered", "payments"]),
      ">=",
      0.6,
      "x",
    ),
  ),
  ...(["stuck-1", "stuck-16"] as const).map((name) =>
    target(
      `p50 beside stuck deliveries, ${name}, to without`,
      results.ratio(name, p50, ["stuck", "payments"]),
      "<=",
      1.15,
      "x",
    ),
  ),
];

/** Cost of waiting calls for the payments beside them. */
const costOfWaiting = (results: Results): Target[] => [
  target(
    "rate beside 1,000 calls that wait, to without",
    results.ratio("waiting-16", perSecond, ["waiting", "payments"]),
    ">=",
    0.95,
    "x",
  ),
];

/** Cost of agents that ask at shops which never finish. */
const costOfShops = (results: Results): Target[] => [
  target(
    "rate beside 1,000 slow or endless shops, to without",
    results.ratio("shops-16", perSecond, ["shops", "payments"]),
    ">=",
    0.95,
    "x",
  ),
];

/** Cost of open pages for the payments beside them. */
const costOfPages = (results: Results): Target[] =>
  (["streamed-16", "streamed-50"] as const).map((name) =>
    target(
      `rate beside 500 open pages, ${name}, to without`,
      results.ratio(name, perSecond, ["streamed", "payments"]),
      ">=",
      0.95,
      "x",
    ),
  );

/** Judges a run by the targets of the issues. */
export function judge(series: readonly Series[]): Target[] {
  const results = new Results(series);
  return [
    target("p50 one after another, to bare", results.ratio("one", p50), "<=", 1.7, "x"),
    target(
      "rate at 16 connections over 50 agents, to bare",
      results.ratio("spread-16", perSecond),
      ">=",
      1.5,
      "x",
    ),
    target(
      "rate at 50 connections over 50 agents, to bare",
      results.ratio("spread-50", perSecond),
      ">=",
      0.6,
      "x",
    ),
    target("rate of one hot agent, to bare on one actor", results.ratio("hot", perSecond), ">=", 1.7, "x"),
    slowestOfHotAgent(results),
    ...(["spread-16", "spread-50", "hot"] as const).map((name) =>
      target(`history events per payment, ${name}`, results.eventsPerPayment(name), "<=", 10, ""),
    ),
    ...costOfAuthentication(results),
    target(
      "rate of payments from one wallet at 16 in flight, to bare transfers from one account",
      results.ratio("wallet-16", perSecond, ["wallet", "transfers"]),
      ">=",
      0.5,
      "x",
    ),
    target(
      "the same over 50 agents' wallets",
      results.ratio("wallet-spread", perSecond, ["wallet", "transfers"]),
      ">=",
      0.5,
      "x",
    ),
    ...costOfCreating(results),
    ...comparedWithPlain(results),
    ...costOfCaps(results),
    ...comparedWithOthers(results),
    ...costOfAuditLog(results),
    ...costOfEncryption(results),
    ...costOfWebhooks(results),
    ...costOfWaiting(results),
    ...costOfShops(results),
    ...costOfPages(results),
  ];
}

/** Maximum memory of a worker for all idle agents. */
const IDLE_MEGABYTES = 200;
const IDLE_AGENTS = 10_000;

/** Judges the memory of the idle agents that were made; nothing where it was not measured. */
export function judgeIdle(result: IdleResult | string | null): Target[] {
  if (result === null || typeof result === "string") return [];
  const { agents, residentBytes } = result;
  const megabytes = (residentBytes.after - residentBytes.before) / 1_000_000;
  const name = `memory for ${String(agents)} idle agents on one worker`;
  return [target(name, megabytes, "<=", (IDLE_MEGABYTES * agents) / IDLE_AGENTS, " MB")];
}

/** Recovery beside pending wallet payments, to recovery without. */
const PENDING_RATIO = 1.2;
const RECOVERY_TITLES = { approval: "an approval", sweep: "a sweep", expiry: "an expiry" } as const;

export const judgePending = (result: PendingResult | null): Target[] =>
  result === null
    ? []
    : RECOVERIES.map((recovery) =>
        target(
          `p50 of ${RECOVERY_TITLES[recovery]} beside 1,000 pending wallet payments, to without`,
          ratioOf(result, recovery),
          "<=",
          PENDING_RATIO,
          "",
        ),
      );

/** Judges pages of lists and the export; nothing where they were not measured. */
export function judgeLists(result: ListsResult | null): Target[] {
  if (result === null) return [];
  const { file, lists, oneMs } = result;
  // At the run's own median speed: what the machine was slower or faster in the moment of a page is in the record beside it, too.
  const slowest = (by: KeyName, page: "first" | "deep"): number =>
    oneMs * Math.max(...lists.filter((each) => each.by === by).map((each) => each[page].toOne));
  const grown = file.residentBytes.most - file.residentBytes.before;
  return [
    ...(["organization", "small team"] as const).flatMap((by) => [
      target(`slowest p50 of a first page, key of ${by}`, slowest(by, "first"), "<=", 10, " ms"),
      target(`slowest p50 of page 1,000 or the last, key of ${by}`, slowest(by, "deep"), "<=", 10, " ms"),
    ]),
    target(
      "rate of an export, to the bare cursor",
      file.rowsPerSecond / file.rawRowsPerSecond,
      ">=",
      0.3,
      "x",
    ),
    target("memory that an export takes", grown / 2 ** 20, "<=", 64, " MiB"),
  ];
}
