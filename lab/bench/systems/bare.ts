import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type Case, SPREAD_AGENTS } from "../cases.ts";
import { Child } from "../child.ts";
import type { BareConfig } from "../processes/bare.ts";
import type { Site, System } from "./system.ts";
import { portOf } from "./system.ts";

const TASK_QUEUE = "bench-bare";
const STARTS_TASK_QUEUE = "bench-bare-starts";
const RUNS_TASK_QUEUE = "bench-bare-runs";

function startProcess(
  { dataDir, profileDir, ...site }: Site,
  taskQueue: string,
  hasActivity = false,
): Promise<Child> {
  const config: BareConfig = {
    temporalAddress: site.temporalAddress,
    temporalNamespace: site.temporalNamespace,
    taskQueue,
    logFile: join(dataDir, "logs", `${taskQueue}.log`),
    hasActivity,
  };
  return Child.start({ entry: "processes/bare.ts", config, profileDir });
}

/** Bare starts: a new actor per request, and its first update. */
export const startBareStarts = async (site: Site): Promise<System> =>
  posting(await startProcess(site, STARTS_TASK_QUEUE), "/actors");

/** Bare runs: a new workflow per request, and its one activity, which does nothing. */
export const startBareRuns = async (site: Site): Promise<System> =>
  posting(await startProcess(site, RUNS_TASK_QUEUE, true), "/runs");

function posting(child: Child, path: string): System {
  return {
    port: portOf(child.port),
    pid: child.pid,
    templates: () => Promise.resolve([{ path, headers: {}, body: null }]),
    settle: () => Promise.resolve(),
    course: () => Promise.resolve(null),
    audit: () => Promise.resolve([]),
    stop: () => child.stop(),
  };
}

/** (a) Bare updates: what the engine can do at best, one update per request. */
export async function startBare(site: Site): Promise<System> {
  const child = await startProcess(site, TASK_QUEUE);

  async function actors(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => `bare/${randomUUID()}`);
    for (const workflowId of ids) {
      await site.temporal.workflow.start("bare", { workflowId, taskQueue: TASK_QUEUE });
    }
    return ids;
  }

  const spread = await actors(SPREAD_AGENTS);

  return {
    port: portOf(child.port),
    pid: child.pid,
    async templates(agents: Case["agents"]) {
      // Each time a new hot one: this actor never rolls over, and its history has an end.
      const ids = agents === "spread" ? spread : await actors(1);
      return ids.map((id) => ({ path: `/actors/${encodeURIComponent(id)}`, headers: {}, body: null }));
    },
    settle: () => Promise.resolve(),
    course: () => Promise.resolve(null),
    audit: () => Promise.resolve([]),
    stop: () => child.stop(),
  };
}
