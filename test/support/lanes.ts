import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { builtFile } from "../../src/lib/package-root.ts";
import { type FileResult, laneMessage, type LaneOrder } from "./lane-messages.ts";
import { type OwnAnvil, startOwnAnvil } from "./own-anvil.ts";
import { FreeCores } from "./free-cores.ts";
import { needsTestServer, Plan, type PlanOptions, waitsForEngines } from "./plan.ts";
import { shortOrSoak } from "./soak.ts";

export interface LanesOptions extends PlanOptions {
  readonly grep: string | null;
  /** Settings of all files. */
  readonly env: LaneOrder["env"];
  /** Addresses of the engines. Files that need none run while these are fetched and come up. */
  readonly enginesEnv: Promise<LaneOrder["env"]>;
  /** Settings of the time-skipping server, which the files that need it wait for. */
  readonly testServerEnv: Promise<LaneOrder["env"]>;
  /** How many processes run files side by side where the machine is theirs; fewer while others use it, so that no test is late for that. */
  readonly lanes: number;
  /** Whether each has a local chain of its own: some tests have its mining in their own hands. */
  readonly withChains: boolean;
  readonly onResult: (result: FileResult) => void;
}

/** A file that takes this long hangs outside of its tests, which have a time-out of their own: in the soak up to two hours. */
const FILE_MS = shortOrSoak(600_000, 10_800_000);
/** For what a process closes when no file is left for it; a worker whose engine was taken away may need a minute. */
const EXIT_MS = 90_000;
const READ_MS = 2_000;
/** Between looks at how busy others keep the machine. */
const LOOK_MS = 5_000;

/** Runs test files in processes side by side, each taking the next file when it is done with one. */
export async function runInLanes(options: LanesOptions): Promise<void> {
  const plan = new Plan(options);
  const lanes: Lane[] = [];
  const free = new FreeCores();
  let busyMax = options.lanes;
  const hasRoom = (): boolean => lanes.filter(({ isBusy }) => isBusy).length < Math.min(busyMax, plan.lanes);
  const feedAll = (): void => {
    for (const lane of lanes) {
      if (plan.left === 0 || lanes.filter(({ isOpen }) => isOpen).length > plan.lanes) lane.close();
      else if (hasRoom()) lane.feed();
    }
  };
  const looking = setInterval(() => {
    busyMax = Math.max(1, Math.round(options.lanes * free.share()));
    feedAll();
  }, LOOK_MS);
  const count = Math.min(options.lanes, options.files.length);
  for (let index = 0; index < count; index += 1)
    lanes.push(new Lane(plan, options, feedAll, index >= count / 2));
  await Promise.all(lanes.map((lane) => lane.run()));
  clearInterval(looking);
}

class Lane {
  readonly #plan: Plan;
  readonly #options: LanesOptions;
  /** This lane waits for a file, or is done with one: another may have waited for that. */
  readonly #onFree: () => void;
  /** See `Plan.take`. */
  readonly #sharesFirst: boolean;
  #child: ChildProcess | null = null;
  #file: string | null = null;
  #isIdle = false;
  #isOpen = true;
  /** Kills a process that hangs, so that one file cannot stop the run. */
  #watchdog: NodeJS.Timeout | null = null;
  /** Addresses of the engines and of the lane's chain; null until they are up. */
  #enginesEnv: LaneOrder["env"] | null = null;
  /** Null until there is a time-skipping server. */
  #testServerEnv: LaneOrder["env"] | null = null;

  constructor(plan: Plan, options: LanesOptions, onFree: () => void, sharesFirst: boolean) {
    this.#plan = plan;
    this.#options = options;
    this.#onFree = onFree;
    this.#sharesFirst = sharesFirst;
  }

  /** Whether it runs a file. */
  get isBusy(): boolean {
    return this.#file !== null;
  }

  /** Whether it takes further files. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Ends once it is closed. A process that ends before is a failure of the file at hand, and another goes on. */
  async run(): Promise<void> {
    const chain = this.#options.withChains ? startOwnAnvil("--prune-history", "256") : null;
    await Promise.all([this.#engines(chain), this.#testServer(), this.#processes()]);
    await (await chain)?.kill();
  }

  async #engines(chain: Promise<OwnAnvil> | null): Promise<void> {
    const [env, own] = await Promise.all([this.#options.enginesEnv, chain]);
    this.#enginesEnv = own === null ? env : { ...env, TEST_EVM_RPC_URL: own.url };
    this.#onFree();
  }

  async #testServer(): Promise<void> {
    this.#testServerEnv = await this.#options.testServerEnv;
    this.#onFree();
  }

  #isReady(file: string): boolean {
    const hasEngines = this.#enginesEnv !== null || !waitsForEngines(file);
    return hasEngines && (this.#testServerEnv !== null || !needsTestServer(file));
  }

  async #processes(): Promise<void> {
    let isUsable = true;
    do isUsable = await this.#process();
    while (isUsable && this.#isOpen && this.#plan.left > 0);
    this.#isOpen = false;
  }

  /** Whether another may be started after it: not after one that failed without a file, since so would the next. */
  async #process(): Promise<boolean> {
    const child = fork(builtFile("test/support/lane.ts"), {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: ["--import", pathToFileURL(builtFile("test/support/no-stack-traces.ts")).href],
    });
    this.#child = child;
    this.#isIdle = false;
    const output: string[] = [];
    child.stdout?.on("data", (chunk) => output.push(String(chunk)));
    child.stderr?.on("data", (chunk) => output.push(String(chunk)));
    const take = (told: unknown): void => {
      const message = laneMessage.parse(told);
      if (message.kind === "result") {
        const printed = output.splice(0).join("");
        this.#done({ ...message, output: `${printed}${message.output}` });
      }
      this.#isIdle = true;
      this.#onFree();
    };
    child.on("message", take);
    const code = await ended(child);
    this.#watch(null, 0);
    this.#child = null;
    this.#isIdle = false;
    if (this.#file !== null) {
      this.#done(lost(this.#file, output.join("")));
      return true;
    }
    if (code !== 0) this.#options.onResult(lost("a process between two files of tests", output.join("")));
    return code === 0;
  }

  #watch(child: ChildProcess | null, ms: number): void {
    if (this.#watchdog !== null) clearTimeout(this.#watchdog);
    this.#watchdog = child === null ? null : setTimeout(() => child.kill("SIGKILL"), ms);
  }

  #done(result: FileResult): void {
    this.#watch(null, 0);
    this.#plan.done(result.file);
    this.#file = null;
    this.#options.onResult(result);
    this.#onFree();
  }

  /** Gives the next file to a process that waits for one. */
  feed(): void {
    if (!this.#isIdle) return;
    const file = this.#plan.take((each) => this.#isReady(each), this.#sharesFirst);
    if (file === null) return;
    this.#file = file;
    this.#order(file, FILE_MS);
  }

  /** Ends a process that waits for a file. */
  close(): void {
    if (!this.#isIdle) return;
    this.#isOpen = false;
    this.#order(null, EXIT_MS);
  }

  #order(file: string | null, withinMs: number): void {
    const child = this.#child;
    if (child === null) return;
    this.#isIdle = false;
    this.#watch(child, withinMs);
    const env = { ...this.#options.env, ...this.#enginesEnv, ...this.#testServerEnv };
    child.send({ file, grep: this.#options.grep, env } satisfies LaneOrder);
  }
}

/**
 * Its exit code, once what it printed has been read; not longer after its end than `READ_MS`, since what it started may
 * hold its output open.
 */
async function ended(child: ChildProcess): Promise<number | null> {
  const closed = once(child, "close");
  const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
  await Promise.race([closed, sleep(READ_MS, undefined, { ref: false })]);
  return code;
}

const lost = (file: string, output: string): FileResult => ({
  kind: "result",
  file,
  passed: 0,
  failed: 1,
  pending: 0,
  failures: [
    { title: file, message: "The process of these tests ended without a result; its output says why." },
  ],
  output,
  ms: 0,
  ownCpuMs: 0,
  childCpuMs: 0,
  repeats: 0,
  replays: 0,
});
