import { Auditor } from "./audit/auditor.ts";
import { type Domain, realDomain } from "./domain.ts";
import { Trail } from "./trail.ts";
import { Workload } from "./workload/workload.ts";
import { World } from "./world.ts";

/** Steps of one world; then a new one begins, with the next seed. Its books stay short, and every start is different. */
export const WORLD_STEPS = 40_000;

/** Steps between two rests, at which all books are compared. */
const BUSY_STEPS = 1_500;

/** Payments made one by one while nothing else is under way. */
const PROBES = 3;

const RESUMED_EVERY_STEPS = 100;
/** A world that does not come to rest in so many steps never will. */
const REST_STEPS_MAX = 200_000;

/** Result of a world, with its first violation. */
export interface WorldResult {
  readonly seed: number;
  readonly steps: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly violation: ViolationFound | null;
}

/** Time for what is under way by the clock as it was. */
const QUIET_MS = 15_000;

export interface ViolationFound {
  readonly message: string;
  readonly step: number;
  /** The last things that happened, the newest last. */
  readonly trail: readonly string[];
}

/** Runs one world of this seed for so many steps, or until the auditor objects. */
export async function runWorld(
  seed: number,
  stepsMax: number,
  domain: Domain = realDomain,
): Promise<WorldResult> {
  const auditor = new Auditor();
  const trail = new Trail(auditor);
  const world = new World(seed, domain, trail.observer);
  const workload = new Workload(world);
  let steps = 0;

  const mayGoOn = (): boolean => auditor.violation === null && steps < stepsMax;
  const step = async (): Promise<void> => {
    steps += 1;
    trail.step = steps;
    if (!(await world.timeline.step())) auditor.broke("the world", new Error("has come to a standstill"));
  };
  const isAtRest = (): boolean =>
    world.timeline.isAtRest &&
    !auditor.isBehindItsRail &&
    !workload.isAnyWaiting &&
    !world.isBehindItsNetwork;
  const rest = async (): Promise<void> => {
    for (let tries = 0; mayGoOn() && !isAtRest(); tries += 1) {
      // A payment of a paused agent rests only once the agent is resumed.
      if (tries % RESUMED_EVERY_STEPS === 0) {
        workload.resumeWaiting();
        // Networks are read once an hour where no hint came.
        if (world.isBehindItsNetwork) void world.readNetworks();
      }
      if (tries > REST_STEPS_MAX) auditor.broke("the world", new Error("does not come to rest"));
      await step();
    }
  };

  while (mayGoOn()) {
    world.setWeather(false);
    workload.resume();
    for (let busy = 0; busy < BUSY_STEPS && mayGoOn(); busy += 1) await step();
    workload.pause();
    world.setWeather(true);
    const quietAt = world.timeline.now + QUIET_MS;
    while (mayGoOn() && world.timeline.now < quietAt && !isAtRest()) await step();
    world.setClockRight();
    await rest();
    for (let probe = 0; probe <= PROBES && mayGoOn(); probe += 1) {
      auditor.atRest(world.books());
      if (probe === PROBES) break;
      workload.probe();
      await rest();
    }
  }
  const { violation } = auditor;
  const found = violation === null ? null : { message: violation.message, step: steps, trail: trail.lines() };
  return { seed, steps, counts: countsOf(auditor, world), violation: found };
}

const countsOf = (auditor: Auditor, world: World): Record<string, number> => ({
  ...Object.fromEntries(auditor.tally),
  messages: world.network.messages,
  sweeps: world.sweeps,
  "windows closed": world.expiries,
  crashes: world.crashes,
  stalls: world.stalls,
  fenced: world.fenced,
  "networks read": world.networkReads,
  "clocks set back": world.clockSetBack,
});

export interface RunResult {
  readonly worlds: number;
  readonly steps: number;
  readonly seconds: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly failed: WorldResult | null;
}

export interface RunOptions {
  readonly seed: number;
  readonly stepsMax: number;
  readonly secondsMax: number;
  readonly domain?: Domain;
  readonly onWorld?: (result: WorldResult, soFar: RunResult) => void;
}

/** Runs worlds of this seed and those after it, until steps or time are up, or something is wrong. */
export async function runWorlds({
  domain,
  onWorld,
  secondsMax,
  seed,
  stepsMax,
}: RunOptions): Promise<RunResult> {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1_000;
  const counts: Record<string, number> = {};
  let result: RunResult = { worlds: 0, steps: 0, seconds: 0, counts, failed: null };
  while (result.failed === null && result.steps < stepsMax && seconds() < secondsMax) {
    const world = await runWorld(
      seed + result.worlds,
      Math.min(WORLD_STEPS, stepsMax - result.steps),
      domain,
    );
    for (const [what, count] of Object.entries(world.counts)) counts[what] = (counts[what] ?? 0) + count;
    result = {
      worlds: result.worlds + 1,
      steps: result.steps + world.steps,
      seconds: seconds(),
      counts,
      failed: world.violation === null ? null : world,
    };
    onWorld?.(world, result);
  }
  return result;
}
