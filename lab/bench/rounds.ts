import {
  ALL_CASES,
  type Case,
  type CaseName,
  type LoadMeasured,
  SYSTEM_TITLES,
  type SystemName,
} from "./cases.ts";
import type { Child } from "./child.ts";
import { cpuUsed, readCpu } from "./cpu.ts";
import type { Course } from "./histories.ts";
import { minus, NO_COURSE, plus } from "./histories.ts";
import { type Measurement, measurementOf, type Part } from "./measurement.ts";
import type { Load } from "./load/messages.ts";
import type { BenchOptions } from "./options.ts";
import type { System } from "./systems/system.ts";

export type Systems = ReadonlyMap<SystemName, System>;

/** One system in one case: its measurement in each round, and how its actors' histories grew over all of them. */
export interface Series {
  readonly system: SystemName;
  readonly case: CaseName;
  readonly rounds: Measurement[];
  course: Course | null;
}

const WARM_UP_CONNECTIONS = 16;

/** Duration of the load before each measurement: Node discards compiled code that was idle for minutes. */
const RUN_UP_SECONDS = 1;

/** Added to a load's own time before it counts as hanging. */
const LOAD_GRACE_MS = 30_000;

export interface RoundsOptions {
  readonly options: BenchOptions;
  readonly systems: Systems;
  readonly generator: Child;
  /** The engines' processes. */
  readonly pids: () => Readonly<Record<string, number | null>>;
  readonly onProgress: (line: string) => void;
}

/** One system in one case of one round, while it is measured. */
interface Running {
  readonly name: SystemName;
  readonly system: System;
  readonly before: Course | null;
  readonly parts: Part[];
}

/** Measures in interleaved rounds: in each round every case, in each case every system in turn, every second time from the last to the first. */
export class Rounds {
  readonly #dependencies: RoundsOptions;
  readonly #answered = new Map<SystemName, number>();
  readonly #series = new Map<string, Series>();
  #errors = 0;

  constructor(dependencies: RoundsOptions) {
    this.#dependencies = dependencies;
  }

  get series(): readonly Series[] {
    return [...this.#series.values()];
  }

  /** Requests that a system has answered with success, warm-up included. */
  answeredBy(system: SystemName): number {
    return this.#answered.get(system) ?? 0;
  }

  /** Requests that were not answered with success, warm-up included. */
  get errors(): number {
    return this.#errors;
  }

  async run(): Promise<void> {
    const { onProgress, options, systems } = this.#dependencies;
    for (const [name, system] of systems) {
      await this.#warmUp(name, system);
    }
    for (let round = 1; round <= options.rounds; round += 1) {
      // The first system meets the leftovers of the case before, so systems take turns in being first.
      const inTurn = round % 2 === 1 ? [...systems] : [...systems].toReversed();
      for (const each of options.cases.map((name) => ALL_CASES[name])) {
        const measured = inTurn.filter(([name]) => each.systems.includes(name));
        // A system that is measured in one part leaves nothing behind for the next one.
        const together = options.turns === 1 ? measured.map((one) => [one]) : [measured];
        for (const group of together) {
          for (const [name, measurement] of await this.#measure(group, each)) {
            onProgress(
              `round ${String(round)} of ${String(options.rounds)} · ${progressOf(each.title, name, measurement)}`,
            );
          }
        }
      }
    }
  }

  async #warmUp(name: SystemName, system: System): Promise<void> {
    const { onProgress, options } = this.#dependencies;
    for (const agents of ["spread", "hot"] as const) {
      const load = { agents, connections: WARM_UP_CONNECTIONS };
      const figures = await this.#load(name, system, load, options.warmUpSeconds / 2);
      onProgress(`warm-up · ${progressOf(`${agents} agents`, name, measurementOf([figures]))}`);
    }
    for (const agents of ["spread", "hot"] as const) await system.settle(agents, options.isQuick);
  }

  async #measure(
    group: readonly (readonly [SystemName, System])[],
    each: Case,
  ): Promise<readonly (readonly [SystemName, Measurement])[]> {
    const { turns } = this.#dependencies.options;
    const running: Running[] = [];
    for (const [name, system] of group) running.push(await this.#begin(name, system, each));
    for (let turn = 1; turn <= turns; turn += 1) {
      // Always in this order: a system with two turns in a row would meet what another has left behind less often.
      for (const one of running) await this.#takeTurn(one, each);
    }
    const ended: (readonly [SystemName, Measurement])[] = [];
    for (const one of running) ended.push([one.name, await this.#end(one, each)]);
    return ended;
  }

  async #begin(name: SystemName, system: System, each: Case): Promise<Running> {
    await this.#load(name, system, each, RUN_UP_SECONDS);
    return { name, system, before: await system.course(each.agents), parts: [] };
  }

  async #takeTurn({ name, parts, system }: Running, each: Case): Promise<void> {
    const { seconds, turns } = this.#dependencies.options;
    parts.push(await this.#load(name, system, each, (seconds * each.lengths) / turns));
  }

  async #end({ before, name, parts, system }: Running, each: Case): Promise<Measurement> {
    const { options } = this.#dependencies;
    const series = this.#seriesOf(name, each.name);
    // Leftovers of a single agent don't show in the next measurement.
    await system.settle(each.agents, options.isQuick || each.agents === "hot");
    const after = await system.course(each.agents);
    const measured = measurementOf(parts);
    series.rounds.push(measured);
    if (before !== null && after !== null) {
      series.course = plus(series.course ?? NO_COURSE, minus(after, before));
    }
    return measured;
  }

  async #load(
    name: SystemName,
    system: System,
    { agents, connections }: Pick<Case, "agents" | "connections">,
    seconds: number,
  ): Promise<Part> {
    const templates = await system.templates(agents);
    const load: Load = { port: system.port, connections, seconds, templates };
    const { generator, pids } = this.#dependencies;
    const receiver = system.receiverPid === undefined ? {} : { receiver: system.receiverPid };
    const running = () => readCpu({ ...pids(), service: system.pid, ...receiver, generator: generator.pid });
    const before = await running();
    const taken = await generator.request<LoadMeasured>(load, seconds * 1_000 + LOAD_GRACE_MS);
    const part = { ...taken, cpuMs: cpuUsed(before, await running()) };
    this.#answered.set(name, this.answeredBy(name) + taken.latenciesMs.length - taken.errors);
    this.#errors += taken.errors;
    return part;
  }

  #seriesOf(system: SystemName, name: CaseName): Series {
    const key = `${name} ${system}`;
    const existing = this.#series.get(key);
    if (existing !== undefined) return existing;
    const series: Series = { system, case: name, rounds: [], course: null };
    this.#series.set(key, series);
    return series;
  }
}

function progressOf(title: string, name: SystemName, measured: Measurement): string {
  const { errors, maxMs, p50Ms, perSecond } = measured;
  const figures = `${perSecond.toFixed(0)}/s, p50 ${p50Ms.toFixed(1)} ms, max ${maxMs.toFixed(0)} ms`;
  const failed = errors === 0 ? "" : `, ${String(errors)} ERRORS: ${String(measured.firstError)}`;
  return `${title} · ${SYSTEM_TITLES[name]}: ${figures}${failed}`;
}
