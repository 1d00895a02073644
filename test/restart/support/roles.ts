import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Child, cleanEnvironment } from "../../support/process.ts";

const START_MS = 150_000;

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests with \`npm test\``);
  return value;
}

/** A deployment in roles of its own, on the run's engines. */
export function roleEnvironment(): NodeJS.ProcessEnv & { readonly MONGODB_URI: string } {
  const id = `test_${randomBytes(8).toString("hex")}`;
  const uri = new URL(required("TEST_MONGODB_URI"));
  uri.pathname = `/${id}`;
  return {
    ...cleanEnvironment(),
    MONGODB_URI: uri.toString(),
    TEMPORAL_ADDRESS: required("TEST_TEMPORAL_ADDRESS"),
    TEMPORAL_NAMESPACE: required("TEST_TEMPORAL_NAMESPACE"),
    TEMPORAL_TASK_QUEUE: id,
    MASTER_KEY: "a-master-key-for-tests-long-enough-to-be-one",
    KEY_DELIVERY_DIR: join(required("TEST_KEY_DELIVERY_DIR"), id),
    AUDIT_ANCHOR_FILE: join(required("TEST_KEY_DELIVERY_DIR"), "audit-anchors", `${id}.jsonl`),
    HOST: "127.0.0.1",
    PORT: "0",
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

  async startWorker(): Promise<Child> {
    const child = this.#run("worker");
    await child.printed(/^The worker is running\.$/m, START_MS);
    return child;
  }

  #run(role: "server" | "worker"): Child {
    const child = Child.node("server/main.ts", [role], this.#env);
    this.#children.push(child);
    return child;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.end("SIGKILL")));
  }
}
