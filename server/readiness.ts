import proto from "@temporalio/proto";
import type { Wallets } from "../src/rails/wallet/index.ts";
import type { Connections } from "../src/store/connections.ts";
import { withTimeout } from "../src/lib/with-timeout.ts";

/** Timeout for checking a usable engine. */
const LOOK_TIMEOUT_MS = 2_000;

/** Minimum time between checks of an engine, so that frequent probes cost it nothing. */
const LOOK_INTERVAL_MS = 1_000;

/** Time that a response waits for checks in progress: probes time out after a second. */
const ANSWER_TIMEOUT_MS = 500;

/** An engine, with its name in the metrics and in `/readyz`. */
export interface Engine {
  readonly label: string;
  readonly name: string;
  /** Rejects if the engine is unusable. */
  readonly look: () => Promise<unknown>;
}

export interface EngineState {
  readonly label: string;
  readonly name: string;
  readonly isUp: boolean;
}

/**
 * Returns the engines that all processes share: the database, the workflow engine with a polling worker, and the chain
 * if configured.
 */
export const enginesOf = (connections: Connections, wallets: Wallets | null): readonly Engine[] => [
  { label: "mongodb", name: "MongoDB", look: () => connections.db.command({ ping: 1 }) },
  { label: "temporal", name: "Temporal", look: () => pollers(connections) },
  {
    label: "worker",
    name: "a worker",
    look: async () => {
      if ((await pollers(connections)) === 0) throw new Error("no worker polls");
    },
  },
  ...(wallets === null
    ? []
    : [
        {
          label: "chain",
          name: "the chain",
          look: async () => {
            await wallets.rpc.check();
            await wallets.rpc.head();
          },
        },
      ]),
];

async function pollers({ addresses, temporal: client }: Connections): Promise<number> {
  const described = await client.withDeadline(Date.now() + LOOK_TIMEOUT_MS, () =>
    client.workflowService.describeTaskQueue({
      namespace: addresses.temporalNamespace,
      taskQueue: { name: addresses.taskQueue },
      taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    }),
  );
  return described.pollers.length;
}

/** Newest known states of the engines. Reading them is cheap and fast, whatever the engines do. */
export class EngineWatch {
  readonly #watched: readonly WatchedEngine[];

  /** `now`: a monotonic clock in milliseconds. */
  constructor(engines: readonly Engine[], now: () => number = () => performance.now()) {
    this.#watched = engines.map((engine) => new WatchedEngine(engine, now));
  }

  /** Returns the newest known states. Checks the engines again if the last check is old. */
  async states(): Promise<readonly EngineState[]> {
    const looks = Promise.all(this.#watched.map((each) => each.look()));
    await withTimeout(ANSWER_TIMEOUT_MS, looks).catch(() => undefined);
    return this.#watched.map(({ engine: { label, name }, isUp }) => ({ label, name, isUp }));
  }
}

class WatchedEngine {
  readonly engine: Engine;
  readonly #now: () => number;
  #hasFailed = false;
  #lookedAtMs = -Infinity;
  #looking: Promise<void> | null = null;

  constructor(engine: Engine, now: () => number) {
    this.engine = engine;
    this.#now = now;
  }

  /** Also false while a check exceeds its timeout. */
  get isUp(): boolean {
    const isSlow = this.#looking !== null && this.#now() - this.#lookedAtMs >= LOOK_TIMEOUT_MS;
    return !this.#hasFailed && !isSlow;
  }

  /** Resolves when the newest check has ended. Never rejects. */
  look(): Promise<void> {
    if (this.#looking !== null) return this.#looking;
    if (this.#now() - this.#lookedAtMs < LOOK_INTERVAL_MS) return Promise.resolve();
    this.#lookedAtMs = this.#now();
    return (this.#looking = this.#lookNow().finally(() => (this.#looking = null)));
  }

  async #lookNow(): Promise<void> {
    try {
      await this.engine.look();
      this.#hasFailed = false;
    } catch {
      this.#hasFailed = true;
    }
  }
}
