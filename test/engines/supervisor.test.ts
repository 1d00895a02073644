import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { isAlive, listProcesses } from "../../src/engines/processes.ts";
import { type EngineSpec, FAST_FAILURES_MAX, Supervisor } from "../../src/engines/supervisor.ts";
import { engineErrorOf, removeFolder, scratchFolder, writeScript } from "./support/scratch.ts";

interface Told {
  readonly exits: { readonly detail: string; readonly fatal: boolean }[];
  readonly restarts: number[];
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()) && tries < 6_000; tries += 1) await sleep(20);
  expect(await condition()).to.equal(true);
}

const commandLineOf = async (pid: number): Promise<string | undefined> =>
  (await listProcesses()).find((one) => one.pid === pid)?.commandLine;

const never = (signal: AbortSignal): Promise<void> => sleep(60_000, undefined, { signal });

describe("The supervisor of an engine", () => {
  let folder: string;
  let told: Told;

  beforeEach(async () => {
    folder = await scratchFolder();
    told = { exits: [], restarts: [] };
  });
  afterEach(() => removeFolder(folder));

  const spec = async (script: string, more: Partial<EngineSpec> = {}): Promise<EngineSpec> => ({
    name: "toy",
    binary: await writeScript(path.join(folder, "toy"), script),
    args: ["an argument", "'quoted' $HOME"],
    env: { PATH: "/usr/bin:/bin" },
    logFile: path.join(folder, "toy.log"),
    ready: () => sleep(50),
    stopGraceMs: 300,
    remedy: "Oil it.",
    ...more,
  });
  const start = (of: EngineSpec, signal?: AbortSignal): Promise<Supervisor> =>
    Supervisor.start(
      of,
      {
        onUnexpectedExit: (detail, fatal) => told.exits.push({ detail, fatal }),
        onRestarted: (pid) => told.restarts.push(pid),
      },
      signal,
    );

  it("gives the engine its arguments as they are, tells its own pid, and ends it", async () => {
    const supervisor = await start(await spec('for a in "$@"; do echo "[$a]"; done; exec sleep 60'));
    const pid = supervisor.pid ?? 0;
    await until(async () => (await commandLineOf(pid)) === "sleep 60 ");
    expect(await readFile(path.join(folder, "toy.log"), "utf8")).to.equal(
      "[an argument]\n['quoted' $HOME]\n",
    );
    await supervisor.stop();
    expect(await isAlive(pid)).to.equal(false);
    expect(told.exits).to.deep.equal([]);
  });

  it("kills an engine that does not heed SIGTERM", async () => {
    const supervisor = await start(await spec("trap '' TERM; while :; do sleep 0.05; done"));
    const pid = supervisor.pid ?? 0;
    await supervisor.stop();
    expect(await isAlive(pid)).to.equal(false);
  });

  it("starts an engine again that was killed, and says both", async () => {
    const supervisor = await start(await spec("exec sleep 60"));
    const first = supervisor.pid ?? 0;
    process.kill(first, "SIGKILL");
    await until(() => told.restarts.length === 1);
    expect(told.exits).to.have.length(1);
    expect(told.exits[0]?.fatal).to.equal(false);
    expect(told.exits[0]?.detail).to.include("toy ended by signal 9");
    expect(supervisor.pid).to.equal(told.restarts[0]).and.not.equal(first);
    await supervisor.stop();
  });

  it("leaves no second engine beside the new one when the guardian is killed", async function () {
    if (process.platform !== "linux") this.skip(); // the guardian is found by /proc
    const supervisor = await start(await spec("exec sleep 60"));
    const first = supervisor.pid ?? 0;
    const stat = await readFile(`/proc/${String(first)}/stat`, "utf8");
    process.kill(Number(stat.split(" ")[3]), "SIGKILL");
    await until(() => told.restarts.length === 1);
    expect(await isAlive(first)).to.equal(false);
    await supervisor.stop();
  });

  it("gives up after fast failures in a row, and says that this is final and what to do", async () => {
    const full = path.join(folder, "full");
    const script = `until [ -e '${full}' ]; do sleep 0.02; done; echo 'Error: the disk is full'; exit 3`;
    const supervisor = await start(await spec(script));
    await writeFile(full, "");
    await until(() => told.exits.some(({ fatal }) => fatal));
    expect(told.exits).to.have.length(FAST_FAILURES_MAX);
    expect(told.exits.at(-1)?.detail).to.match(/the disk is full.*given up.*\. Oil it\.$/);
    expect(told.exits.filter(({ detail }) => detail.includes("Oil it."))).to.have.length(1);
    expect(supervisor.pid).to.equal(null);
    await supervisor.stop();
  });

  it("tells in one line that an engine ended at once, with which last words, and what to do", async () => {
    const broken = await spec("echo 'Error: bad flag'; exit 2", { ready: never });
    const error = await engineErrorOf(start(broken), "START_FAILED");
    expect(error.message).to.include(broken.binary).and.include("code 2").and.include("Error: bad flag");
    expect(error.message).to.match(/ Oil it\.$/);
  });

  it("a start that is given up ends the engine, tells of no exit, and leaves nothing running", async () => {
    const over = new AbortController();
    const begun = path.join(folder, "begun");
    const slow = await spec(`echo $$ > '${begun}.new'; mv '${begun}.new' '${begun}'; exec sleep 60`, {
      ready: never,
    });
    const starting = engineErrorOf(start(slow, over.signal), "START_FAILED");
    await until(() => existsSync(begun));
    over.abort();
    await starting;
    expect(await isAlive(Number(await readFile(begun, "utf8")))).to.equal(false);
    await engineErrorOf(start(slow, over.signal), "START_FAILED");
    expect(await isAlive(Number(await readFile(begun, "utf8")))).to.equal(false);
    expect(told.exits).to.deep.equal([]);
  });
});
