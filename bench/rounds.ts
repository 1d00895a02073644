import {
  ALL_CASES,
  type Case,
  type CaseName,
  type LoadFigures,
  type Measurement,
  SYSTEM_TITLES,
  type SystemName,
} from "./cases.ts";
import type { Child } from "./child.ts";
import { cpuUsed, readCpu } from "./cpu.ts";
import type { Course } from "./histories.ts";
import { minus, NO_COURSE, plus } from "./histories.ts";
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

/** The same load just before each measurement: Node forgets compiled code of who has done nothing for minutes. */
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
      // Who comes first meets what the case before has left behind; that must not always be the same one.
      const inTurn = round % 2 === 1 ? [...systems] : [...systems].toReversed();
      for (const each of options.cases.map((name) => ALL_CASES[name])) {
        for (const [name, system] of inTurn) {
          if (!each.systems.includes(name)) continue;
          const measured = await this.#measure(name, system, each);
          onProgress(
            `round ${String(round)} of ${String(options.rounds)} · ${progressOf(each.title, name, measured)}`,
          );
        }
      }
    }
  }

  async #warmUp(name: SystemName, system: System): Promise<void> {
    const { onProgress, options } = this.#dependencies;
    for (const agents of ["spread", "hot"] as const) {
      const load = { agents, connections: WARM_UP_CONNECTIONS };
      const figures = await this.#load(name, system, load, options.warmUpSeconds / 2);
      onProgress(`warm-up · ${progressOf(`${agents} agents`, name, figures)}`);
    }
    for (const agents of ["spread", "hot"] as const) await system.settle(agents, options.inAHurry);
  }

  async #measure(name: SystemName, system: System, each: Case): Promise<Measurement> {
    const { options } = this.#dependencies;
    const series = this.#seriesOf(name, each.name);
    await this.#load(name, system, each, RUN_UP_SECONDS);
    const before = await system.course(each.agents);
    const measured = await this.#load(name, system, each, options.seconds * each.lengths);
    // What a single agent leaves behind does not show in what comes next.
    await system.settle(each.agents, options.inAHurry || each.agents === "hot");
    const after = await system.course(each.agents);
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
  ): Promise<Measurement> {
    const templates = await system.templates(agents);
    const load: Load = { port: system.port, connections, seconds, templates };
    const { generator, pids } = this.#dependencies;
    const running = () => readCpu({ ...pids(), service: system.pid, generator: generator.pid });
    const before = await running();
    const figures = await generator.request<LoadFigures>(load, seconds * 1_000 + LOAD_GRACE_MS);
    const measured: Measurement = { ...figures, cpuMs: cpuUsed(before, await running()) };
    this.#answered.set(name, this.answeredBy(name) + measured.requests - measured.errors);
    this.#errors += measured.errors;
    return measured;
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
