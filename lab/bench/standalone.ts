import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Child } from "./child.ts";
import { type CpuMs, cpuUsed, readCpu } from "./cpu.ts";
import { prepareSite, Undo } from "./run.ts";
import { createOrganizationWithAgents } from "./systems/payments.ts";
import { type PayingAgent, postTo } from "./systems/payments-agents.ts";
import { portOf, serviceEnvironment, type Site } from "./systems/system.ts";

/** A service with an organization of 50 agents, for a measurement that compares no systems. */
export interface OneService {
  readonly site: Site;
  readonly env: NodeJS.ProcessEnv;
  readonly port: number;
  readonly agents: readonly PayingAgent[];
  /** The owner's session. */
  readonly session: string;
  readonly undo: Undo;
  /** Answer of the service's process to a request over its channel. */
  readonly ask: <T>() => Promise<T>;
  /** Processor time used so far, by process; `client` is this one. */
  readonly cpu: () => Promise<CpuMs>;
}

const ASKED_MS = 10_000;

/** Measures on a service of its own, and ends the process. `PROFILE_DIR` takes a CPU profile of the service. */
export async function onOneService(
  name: string,
  settings: NodeJS.ProcessEnv,
  measure: (service: OneService) => Promise<void>,
  entry = "processes/payments.ts",
): Promise<never> {
  const undo = new Undo();
  try {
    const site = await prepareSite({ profileDir: null }, undo, () => undefined);
    const env = { ...serviceEnvironment(site, `bench_${name}`), ...settings };
    const logFile = join(site.dataDir, "logs", `${name}.log`);
    const profileDir = process.env["PROFILE_DIR"] ?? null;
    const child = await Child.start({ entry, config: { env, logFile }, profileDir });
    undo.add(() => child.stop());
    const port = portOf(child.port);
    const { agents, token } = await createOrganizationWithAgents(env, port, 1);
    const cpu = () => readCpu({ service: child.pid, ...site.pids(), client: process.pid });
    const ask = <T>() => child.request<T>(null, ASKED_MS);
    await measure({ ask, site, env, port, agents, session: token, undo, cpu });
  } finally {
    await undo.all();
  }
  process.exit(0);
}

/** Makes a payment under a new key. */
export const payAs = (
  port: number,
  { apiKey }: PayingAgent,
  order: Readonly<Record<string, unknown>>,
): Promise<unknown> => postTo(port, "/v1/payments", { ...order, idempotencyKey: randomUUID() }, apiKey);

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Processor time per piece of work, by process. */
export function cpuEach(before: CpuMs, after: CpuMs, count: number): string {
  const { machine: _machine, anvil: _anvil, ...processes } = cpuUsed(before, after);
  const each = Object.entries(processes).map(([name, used]) => `${name} ${((used ?? 0) / count).toFixed(1)}`);
  return `${each.join(", ")} ms`;
}

export const ms = (value: number): string => `${value.toFixed(1)} ms`;

export const ofTarget = (value: number, most: number): string =>
  `${value.toFixed(3)} (at most ${String(most)}${value <= most ? "" : ": MISSED"})`;
