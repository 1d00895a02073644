import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { SimulatedMoves } from "../../src/domain/simulation/moves.ts";
import { Simulation } from "../../src/domain/simulation/simulation.ts";
import type { PastPayment } from "../../src/domain/simulation/past-payment.ts";
import { Random } from "../random.ts";
import { type History, historyOf } from "./history.ts";

/** Simulations over random histories. */

/** Simulates a history; payments that are not judged count as they were decided. */
export function simulated(
  { agents, endedAt, payments, project, teams }: History,
  isJudged: (past: PastPayment) => boolean,
): SimulatedMoves {
  const simulation = begun({ agents, project, teams });
  for (const past of payments) simulation.add(past, isJudged(past));
  return simulation.end(endedAt);
}

function begun({ agents, project, teams }: Pick<History, "agents" | "project" | "teams">): Simulation {
  const simulation = new Simulation(project);
  for (const [teamId, team] of teams) simulation.addTeam(teamId, team);
  for (const agent of agents) simulation.addAgent(agent);
  return simulation;
}

export interface Measured extends SimulatedMoves {
  readonly cpuSeconds: number;
  readonly heapMiB: number;
}

const SAMPLES = 20;
/** Records that a server reads at once. */
const PAGE = 500;
const MIB = 2 ** 20;

/**
 * Simulates what was in force, once for its time and once for its memory: collecting garbage, which weighing needs, would
 * count as time. Making and reading payments is left out of the time, and so is what they leave to collect.
 */
export function measured(seed: number, count: number): Measured {
  const history = writtenHistory(seed, count);
  heapBytes();
  let cpuMicros = 0;
  const moves = inPages(history, (simulate) => {
    const began = process.cpuUsage();
    simulate();
    const { system, user } = process.cpuUsage(began);
    cpuMicros += system + user;
  });
  return { ...moves, cpuSeconds: cpuMicros / 1e6, heapMiB: weighed(history) / MIB };
}

/** Collects garbage. Returns the bytes of the heap that are left. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed;
}

/** Returns the most bytes of the heap that a simulation takes. */
function weighed(history: WrittenHistory): number {
  const before = heapBytes();
  const every = Math.ceil(history.lines.length / PAGE / SAMPLES);
  let [page, peak] = [0, 0];
  inPages(history, (simulate) => {
    simulate();
    page += 1;
    if (page % every === 0) peak = Math.max(peak, heapBytes() - before);
  });
  return peak;
}

/** Simulates a history, each page by `run`. */
function inPages(history: WrittenHistory, run: (simulate: () => void) => void): SimulatedMoves {
  const { endedAt, lines } = history;
  const simulation = begun(history);
  for (let from = 0; from < lines.length; from += PAGE) {
    const page = lines.slice(from, from + PAGE).map((line): PastPayment => JSON.parse(line.toString()));
    run(() => {
      for (const past of page) simulation.add(past, true);
    });
  }
  return simulation.end(endedAt);
}

type WrittenHistory = ReturnType<typeof writtenHistory>;

/** Payments lie outside of the heap, as records do. */
function writtenHistory(seed: number, count: number) {
  const { payments, ...rest } = historyOf(new Random(seed), count);
  return { ...rest, lines: payments.map((past) => Buffer.from(JSON.stringify(past))) };
}
