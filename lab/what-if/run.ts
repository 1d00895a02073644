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
const MIB = 2 ** 20;

/** Simulates what was in force, and measures it. */
export function measured(seed: number, count: number): Measured {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  const heap = (): number => {
    if (typeof collect === "function") collect();
    return process.memoryUsage().heapUsed;
  };
  const { agents, endedAt, lines, project, teams } = writtenHistory(seed, count);
  const before = heap();
  let [peak, cpuMicros] = [0, 0];
  const simulation = begun({ agents, project, teams });
  const every = Math.ceil(lines.length / SAMPLES);
  for (let from = 0; from < lines.length; from += every) {
    const began = process.cpuUsage();
    for (const line of lines.slice(from, from + every)) {
      const past: PastPayment = JSON.parse(line.toString());
      simulation.add(past, true);
    }
    const { system, user } = process.cpuUsage(began);
    cpuMicros += system + user;
    peak = Math.max(peak, heap() - before);
  }
  return { ...simulation.end(endedAt), cpuSeconds: cpuMicros / 1e6, heapMiB: peak / MIB };
}

/** Payments lie outside of the heap, as records do. */
function writtenHistory(seed: number, count: number) {
  const { payments, ...rest } = historyOf(new Random(seed), count);
  return { ...rest, lines: payments.map((past) => Buffer.from(JSON.stringify(past))) };
}
