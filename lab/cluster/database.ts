import { execFile } from "node:child_process";
import { chmod, chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { childEnvironment } from "../../src/engines/environment.ts";
import { LOOPBACK } from "../../src/engines/ports.ts";
import { signalProcess } from "../../src/engines/processes.ts";
import { Member } from "./member.ts";
import type { Tools } from "./tools.ts";

const run = promisify(execFile);

/** Ids of `nobody` and `nogroup`, under which it runs where this process is root's. */
const NOBODY = 65_534;
const POLL_MS = 100;
const STOP_GRACE_MS = 20_000;

export const DATABASE_USER = "temporal";

export interface DatabaseOptions {
  readonly tools: Tools;
  readonly dataDir: string;
  readonly port: number;
  readonly password: string;
  readonly env: NodeJS.ProcessEnv;
}

/** PostgreSQL for Temporal. */
export class Database {
  readonly #member: Member;
  /** Settings of PostgreSQL's own tools. */
  readonly settings: NodeJS.ProcessEnv;
  /** Command and arguments before a program that works on its files. */
  readonly asOwner: readonly string[];

  private constructor(member: Member, settings: NodeJS.ProcessEnv, asOwner: readonly string[]) {
    this.#member = member;
    this.settings = settings;
    this.asOwner = asOwner;
  }

  static async start({ dataDir, env, password, port, tools }: DatabaseOptions): Promise<Database> {
    const folder = join(dataDir, "postgresql");
    const passwordFile = join(folder, "password");
    const tables = join(folder, "tables");
    await mkdir(folder);
    await writeFile(passwordFile, password, { mode: 0o600 });
    if (tools.unprivileged.length > 0) {
      // It must pass through the folder above, and owns its own.
      await chmod(dataDir, 0o711);
      for (const owned of [folder, passwordFile]) await chown(owned, NOBODY, NOBODY);
    }
    const command = (program: string, args: readonly string[]) => {
      const [binary = program, ...rest] = [...tools.unprivileged, program, ...args];
      return { binary, args: rest };
    };
    const initdb = command(
      tools.initdb,
      [
        ["--pgdata", tables, "--username", DATABASE_USER, "--pwfile", passwordFile],
        ["--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale"],
      ].flat(),
    );
    await run(initdb.binary, initdb.args, { cwd: "/", env: childEnvironment(env) });
    const settings = {
      PATH: `${dirname(tools.postgres)}:${env["PATH"] ?? ""}`,
      PGDATA: tables,
      PGHOST: LOOPBACK,
      PGPORT: String(port),
      PGUSER: DATABASE_USER,
      PGPASSWORD: password,
    };
    const member = new Member({
      name: "postgresql",
      ...command(
        tools.postgres,
        [
          ["-D", tables, "-p", String(port), "-k", tables, "-c", `listen_addresses=${LOOPBACK}`],
          ["-c", "max_connections=200", "-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB"],
        ].flat(),
      ),
      env: childEnvironment(env),
      logFile: join(dataDir, "logs", "postgresql.log"),
      stopGraceMs: STOP_GRACE_MS,
      remedy: "See its log.",
      ready: (signal) => untilAccepts(settings, signal),
    });
    return new Database(await member.start(), settings, tools.unprivileged);
  }

  get pid(): number {
    return this.#member.pid;
  }

  get fatal(): string | null {
    return this.#member.fatal;
  }

  /** Halts all of its processes for so long: it holds its connections and answers nothing. */
  async halt(forMs: number): Promise<void> {
    const { pid } = this.#member;
    const all = [pid, ...(await childrenOf(pid))];
    for (const each of all) signalProcess(each, "SIGSTOP");
    await sleep(forMs);
    for (const each of all) signalProcess(each, "SIGCONT");
  }

  stop(): Promise<void> {
    return this.#member.stop();
  }

  /** Gives a folder to the user that it runs as. */
  async own(folder: string): Promise<void> {
    if (this.asOwner.length > 0) await chown(folder, NOBODY, NOBODY);
  }

  /** Stops it, and starts it again after the work on its folder. */
  async away(work: () => Promise<void>): Promise<void> {
    await this.stop();
    await work();
    await this.#member.start();
  }
}

/** Not before it has recovered: it listens earlier, and refuses. */
async function untilAccepts(settings: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const isReady = await run("pg_isready", [], { env: settings }).then(
      () => true,
      () => false,
    );
    if (isReady) return;
    await sleep(POLL_MS);
  }
  throw new Error("it never answered");
}

/** Children of a process, as Linux has them. */
async function childrenOf(pid: number): Promise<readonly number[]> {
  const pids = (await readdir("/proc")).map(Number).filter((each) => Number.isInteger(each));
  const stats = await Promise.all(
    pids.map(async (each) => {
      const stat = await readFile(`/proc/${String(each)}/stat`, "utf8").catch(() => "");
      const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return { pid: each, parent: Number(parent) };
    }),
  );
  return stats.flatMap((each) => (each.parent === pid ? [each.pid] : []));
}
