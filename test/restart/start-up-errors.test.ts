import { expect } from "chai";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child, cleanEnvironment, ServiceProcess } from "../support/process.ts";

/** Three of them start at once, on a machine that is busy. */
const QUICK_MS = 150_000;
/** Where engines come up first. */
const WITH_ENGINES_MS = 200_000;

/** Nothing listens there. */
const NOWHERE = "127.0.0.1:9";
const MASTER_KEY = "a-master-key-for-tests-long-enough-to-be-one";

/** Starts it in vain; answers the one line on standard error. */
async function reasonOf(
  env: NodeJS.ProcessEnv,
  {
    args = [],
    role = "start",
    withinMs = QUICK_MS,
  }: { args?: readonly string[]; role?: string; withinMs?: number } = {},
): Promise<string> {
  const child = Child.node("server/main.ts", [role, ...args], env);
  expect(await child.exit(withinMs)).to.deep.equal({ code: 1, signal: null });
  expect(child.stderr).to.match(/^error: [^\n]+\n$/);
  return child.stderr;
}

describe("A service that cannot start says why in one line, ends with 1, and leaves nothing running", () => {
  let running: ServiceProcess;
  let other: ServiceProcess;
  let scratch: string;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), "start-up-errors-"));
    other = await ServiceProcess.create();
    running = await ServiceProcess.create({ engines: "shared" });
    await running.start();
  });
  after(async () => {
    await running.dispose();
    await other.dispose();
    await rm(scratch, { recursive: true, force: true });
  });

  it("PORT is taken: named before anything is started", async () => {
    const port = new URL(running.runtime.baseUrl).port;
    expect(await reasonOf({ ...other.env, PORT: port }))
      .to.include(port)
      .and.include("PORT");
    expect(await other.processes()).to.deep.equal([]);
  });

  it("MASTER_KEY is too short: said before anything is started", async () => {
    const child = Child.node("server/main.ts", ["start"], { ...other.env, MASTER_KEY: "tooshort" });
    expect(await child.exit(QUICK_MS)).to.deep.equal({ code: 1, signal: null });
    expect(child.stderr)
      .to.match(/^error: MASTER_KEY [^\n]+\n$/)
      .and.not.include("tooshort");
    // Each engine's start is a line there.
    expect(child.stdout).to.equal("");
  });

  it("HOST lets other machines in while an engine is embedded: refused before one is started", async () => {
    const [open, chain] = await Promise.all([
      reasonOf({ ...other.env, HOST: "0.0.0.0" }),
      reasonOf({ ...other.env, HOST: "::", MONGODB_URI: "mongodb://x", TEMPORAL_ADDRESS: "x:1" }),
    ]);
    expect(open).to.match(/^error: HOST: .*MONGODB_URI, TEMPORAL_ADDRESS, EVM_RPC_URL/);
    expect(chain).to.match(/^error: HOST: .*with EVM_RPC_URL\./);
    expect(await other.processes()).to.deep.equal([]);
  });

  it("a setting is nonsense: a port, an engine's port, a role", async () => {
    const [port, beyond, enginePort, role, argument] = await Promise.all([
      reasonOf({ ...other.env, PORT: "eighty" }),
      reasonOf({ ...other.env, PORT: "70000" }),
      reasonOf({ ...other.env, TEMPORAL_PORT: "-1" }),
      reasonOf(other.env, { role: "everything" }),
      reasonOf(other.env, { role: "start", args: ["--port=80"] }),
    ]);
    for (const each of [port, beyond]) {
      expect(each).to.equal("error: PORT: must be a whole number from 0 to 65535.\n");
    }
    expect(argument).to.include("takes no arguments");
    expect(enginePort).to.include("TEMPORAL_PORT");
    expect(role).to.include("everything");
    expect(await other.processes()).to.deep.equal([]);
  });

  it("a role of its own is not told where the engines are, or they are not there", async () => {
    const env = { ...cleanEnvironment(), PORT: "0", MASTER_KEY };
    const { mongodb, temporal } = running.runtime;
    const there = {
      ...env,
      MONGODB_URI: mongodb.uri,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
    };
    const [untold, noMongodb, noTemporal] = await Promise.all([
      reasonOf(env, { role: "server" }),
      reasonOf({ ...there, MONGODB_URI: `mongodb://${NOWHERE}/x` }, { role: "server" }),
      reasonOf({ ...there, TEMPORAL_ADDRESS: NOWHERE }, { role: "worker" }),
    ]);
    expect(untold).to.include("MONGODB_URI").and.include("TEMPORAL_ADDRESS");
    expect(noMongodb).to.include("MONGODB_URI");
    expect(noTemporal).to.include("TEMPORAL_ADDRESS");
  });

  it("DATA_DIR is in use by a service, which goes on", async () => {
    const reason = await reasonOf(running.env);
    expect(reason).to.include(running.dataDir).and.include(String(running.runtime.pid));
    expect((await fetch(`${running.runtime.baseUrl}/readyz`)).status).to.equal(200);
  });

  it("MONGOD_BINARY is broken", async () => {
    const binary = join(scratch, "mongod");
    await writeFile(binary, "#!/bin/sh\necho 'cannot open shared object file' >&2\nexit 127\n");
    await chmod(binary, 0o755);
    const reason = await reasonOf({ ...other.env, MONGOD_BINARY: binary });
    expect(reason).to.include("MONGOD_BINARY").and.include("cannot open shared object file");
    expect(await other.processes()).to.deep.equal([]);
  });

  it("an engine that is there when asked for its version, and ends when it is run", async () => {
    const binary = join(scratch, "mongod-dies");
    await writeFile(
      binary,
      '#!/bin/sh\n[ "$1" = --version ] && echo "db version v7.0.1" && exit 0\necho "no space left" >&2\nexit 14\n',
    );
    await chmod(binary, 0o755);
    const reason = await reasonOf({ ...other.env, MONGOD_BINARY: binary }, { withinMs: WITH_ENGINES_MS });
    expect(reason).to.match(/mongod.*no space left.*logs\/mongod\.log.*MONGODB_URI/);
    expect(await other.processes()).to.deep.equal([]);
  });

  it("MASTER_KEY is not the one of the first start", async () => {
    expect((await running.child.end("SIGTERM")).code).to.equal(0);
    const masterKey = "another-master-key-that-is-long-enough-to-be-one";
    const env = { ...running.env, MASTER_KEY: masterKey };
    expect(await reasonOf(env))
      .to.include("MASTER_KEY")
      .and.not.include(masterKey);
    expect(await running.processes()).to.deep.equal([]);
  });
});
