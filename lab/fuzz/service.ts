import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { z } from "zod";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import type { Owner } from "./credentials.ts";

const PASSWORD = "quartz lantern under nine bridges";
const created = z.object({ teamId: z.string() });

const STARTED_MS = 180_000;

/** A whole service with engines of its own. */
export interface FuzzedService {
  readonly baseUrl: string;
  /** Environment of an admin command for it. */
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/**
 * As `npm start`, on free ports and a folder of its own. Callers without a credential are counted by address, so each request says
 * where it comes from; and webhooks may go to this machine.
 */
export async function startService(dataDir: string): Promise<FuzzedService> {
  const ports = { PORT: "0", MONGODB_PORT: "0", TEMPORAL_PORT: "0", TEMPORAL_UI_PORT: "0", CHAIN_PORT: "0" };
  const settings = { TRUSTED_PROXIES: "loopback", WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8, ::1/128" };
  const env = { ...process.env, ...ports, ...settings, DATA_DIR: dataDir };
  const child = spawn(process.execPath, [builtFile("server/main.ts"), "start"], {
    cwd: PACKAGE_ROOT,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const timer = setTimeout(() => child.kill(), STARTED_MS);
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  process.once("exit", () => child.kill("SIGTERM"));
  for await (const line of createInterface({ input: child.stdout })) {
    const [, baseUrl] = /REST +(\S+)\/v1/.exec(line) ?? [];
    if (baseUrl === undefined) continue;
    clearTimeout(timer);
    // Drains the rest of the output, so that it does not fill the pipe.
    child.stdout.resume();
    return { baseUrl, env, stop };
  }
  throw new Error("the service did not start");
}

/** Creates an organization without limits per minute, by the command that an operator uses. */
export async function createOrganization({ env }: Pick<FuzzedService, "env">): Promise<Owner> {
  const email = `owner-${String(Date.now())}@example.com`;
  const limits = ["--plan", "enterprise", "--rest-per-minute", "1000000", "--mcp-per-minute", "1000000"];
  const command = [builtFile("server/main.ts"), "admin", "create-organization"];
  const args = [...command, "--name", "Fuzz", "--owner-email", email, ...limits];
  const running = promisify(execFile)(process.execPath, args, { env });
  running.child.stdin?.end(PASSWORD);
  return { email, password: PASSWORD, ...created.parse(JSON.parse((await running).stdout)) };
}
