import { join } from "node:path";
import { Child, cleanEnvironment } from "../../support/process.ts";
import { requiredSetting, sharedEngines } from "../../support/shared-engines.ts";

const START_MS = 150_000;

/** A deployment in roles of its own, on the run's engines. */
export function roleEnvironment(): NodeJS.ProcessEnv & { readonly MONGODB_URI: string } {
  const { EVM_RPC_URL: _chain, ...engines } = sharedEngines();
  const id = engines.TEMPORAL_TASK_QUEUE;
  return {
    ...cleanEnvironment(),
    ...engines,
    AUDIT_ANCHOR_FILE: join(requiredSetting("TEST_DATA_DIR"), "audit-anchors", `${id}.jsonl`),
    HOST: "127.0.0.1",
    PORT: "0",
    INTERNAL_URL: "http://127.0.0.1:0",
    LOG_LEVEL: "error",
  };
}

/** Servers and workers as processes of their own. */
export class Roles {
  readonly #env: NodeJS.ProcessEnv;
  readonly #children: Child[] = [];

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  get children(): readonly Child[] {
    return this.#children;
  }

  async startServer(): Promise<{ readonly child: Child; readonly baseUrl: string }> {
    const child = this.#run("server");
    const [, baseUrl = ""] = await child.printed(/^ +REST +(\S+)\/v1$/m, START_MS);
    return { child, baseUrl };
  }

  async startWorker(settings: NodeJS.ProcessEnv = {}): Promise<Child> {
    const child = this.#run("worker", settings);
    await child.printed(/^The worker is running\.$/m, START_MS);
    return child;
  }

  #run(role: "server" | "worker", settings: NodeJS.ProcessEnv = {}): Child {
    const child = Child.node("server/main.ts", [role], { ...this.#env, ...settings });
    this.#children.push(child);
    return child;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.end("SIGKILL")));
  }
}
