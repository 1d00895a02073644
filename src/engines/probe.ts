import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { childEnvironment } from "./environment.ts";
import { EngineError, reasonOf } from "./errors.ts";
import { accepts, choosePorts } from "./ports.ts";
import { runTool, meaningfulLine } from "./tools.ts";

const VERSION_TIMEOUT_MS = 20_000;
const LISTEN_TIMEOUT_MS = 20_000;
const POLL_INTERVAL_MS = 50;

export type Version = readonly [major: number, minor: number];

/**
 * Runs a binary with `--version`. Null if its version is at least the required one, else why it cannot be used.
 * `pattern` finds major and minor in the output.
 */
export async function probeVersion(
  file: string,
  env: NodeJS.ProcessEnv,
  pattern: RegExp,
  least: Version,
): Promise<string | null> {
  try {
    const output = await runTool(file, ["--version"], {
      env: childEnvironment(env),
      timeoutMs: VERSION_TIMEOUT_MS,
    });
    const match = pattern.exec(output);
    if (match === null) throw new EngineError("BINARY_BROKEN", "it does not print its version");
    const [major, minor] = [Number(match[1]), Number(match[2])];
    if (major > least[0] || (major === least[0] && minor >= least[1])) return null;
    return `it is version ${String(major)}.${String(minor)}, at least ${least.join(".")} is needed`;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Runs a server that takes its port as the only argument. Null once it listens, else why it does not. */
export async function probeListens(file: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const { port } = await choosePorts({ port: { port: 0, variable: "" } });
  const child = spawn(file, [String(port)], {
    env: childEnvironment(env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let ended: string | null = null;
  const collect = (chunk: Buffer): void => {
    output += chunk.toString("utf8");
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  child.once("error", (error) => (ended = reasonOf(error)));
  child.once("close", () => (ended ??= `it ended at once: ${meaningfulLine(output)}`));
  try {
    const deadline = Date.now() + LISTEN_TIMEOUT_MS;
    while (Date.now() < deadline) {
      if (ended !== null) return ended;
      if (await accepts(port)) return null;
      await sleep(POLL_INTERVAL_MS);
    }
    return `it did not listen within ${String(LISTEN_TIMEOUT_MS / 1_000)} s`;
  } finally {
    child.kill("SIGKILL");
  }
}
