import { DefaultLogger, Runtime } from "@temporalio/worker";

/**
 * The time-skipping server has let an update into a task of a workflow that was just being completed: it refuses what the worker has done in that task,
 * again and again, and the workflow stands still for ever. The real server says neither.
 */
const MIXED_UP = /invalid history builder state|Already accepted update/;

let mixedUp = 0;

/** How often a time-skipping server of this process has got a workflow's task and an update mixed up. */
export const timesMixedUp = (): number => mixedUp;

/** For all workers of a process of tests: what the engine's client warns of is read, and printed. */
export function installTestRuntime(): void {
  Runtime.install({
    logger: new DefaultLogger("WARN", ({ message, meta }) => {
      const line = `${message} ${JSON.stringify(meta)}`;
      if (MIXED_UP.test(line)) mixedUp += 1;
      process.stderr.write(`${line}\n`);
    }),
    telemetryOptions: { logging: { forward: {}, filter: { core: "WARN", other: "ERROR" } } },
    shutdownSignals: [],
  });
}
