import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEngines } from "../../src/engines/start.ts";
import { resolveTestServer } from "../../src/engines/test-server.ts";
import { startOwnAnvil } from "./own-anvil.ts";
import { plant, scanRun } from "./secret-scan.ts";
import { shardResult, type ShardResult } from "./shard-result.ts";

/**
 * `npm test`: brings up one MongoDB, one Temporal and one local chain for the whole run, hands their addresses to the tests in the
 * environment, runs every test file (or those named as arguments), and closes with the line `N passed, N failed`.
 *
 * The files run in processes side by side, in two phases, each process with a chain of its own: some tests have its mining in their own hands, and
 * a service that starts meanwhile would wait for its contracts, and then empty the chain's pool of everybody's transactions.
 * The output of each phase's first one is shown at once, the others' at the end. At the end the files of the engines and
 * the logs are searched for secrets, which counts as one test more.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const SHARD = fileURLToPath(new URL("shard.ts", import.meta.url));
const LOGGED_ERRORS_MAX = 20;
const LOGGED_CHARACTERS_MAX = 1_500;
const FAILURE_CHARACTERS_MAX = 1_000;
const SLOWEST_FILES = 20;
/**
 * What runs in which process, by the beginnings of the files' paths; what fits nowhere runs in the first process. First what
 * asks for the processor, even in time, in no more processes than two cores bear; what starts and kills processes is
 * together, so that it does not meet itself. Then, in quiet, what is promised to be answered within a time.
 */
const ELSE = "";
const PHASES: readonly (readonly (readonly string[])[])[] = [
  [
    [ELSE],
    ["chaos", "http/wallet", "restart"],
    [
      "architecture",
      "audit",
      "auth",
      "authorization",
      "chain",
      "domain",
      "engines",
      "limits",
      "mcp",
      "replay",
      "workflows",
    ],
  ],
  [
    ["outage", "http/busy", "http/unfinished-budgets"],
    ["restart/engines", "restart/roles", "http/machine-archive-chain"],
  ],
];

const dataDir = await mkdtemp(join(tmpdir(), "spending-control-test-"));
const engines = await startEngines({
  dataDir,
  env: process.env,
  ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
  // It stops the mining for a moment: not under tests that have it in their own hands.
  chainSnapshotMs: null,
  onProgress: say,
  onUnexpectedExit: (engine, detail) => say(`the tests' ${engine} ended: ${detail}`),
});
const logDir = join(dataDir, "logs");
const secretsDir = await mkdtemp(join(tmpdir(), "spending-control-secrets-"));
process.env["TEST_SECRETS_FILE"] = join(secretsDir, "noted");
const planted = await plant(engines, logDir);
const env = {
  ...process.env,
  TEST_LOG_DIR: logDir,
  TEST_KEY_DELIVERY_DIR: join(dataDir, "key-delivery"),
  TEST_MONGODB_URI: engines.mongodb.uri,
  TEST_TEMPORAL_ADDRESS: engines.temporal.address,
  TEST_TEMPORAL_NAMESPACE: engines.temporal.namespace,
  TEST_TIME_SKIPPING_SERVER: await resolveTestServer(process.env, say),
};

const named = process.argv.slice(2);
const files = named.length > 0 ? named : await testFiles();
const results: (ShardResult & { output: string })[] = [];
for (const phase of PHASES) results.push(...(await Promise.all(phase.map(runProcess))));
for (const { output } of results) process.stdout.write(output);
await engines.stop();
const leaks = await scanRun(dataDir, planted, say);
for (const leak of leaks) say(`  SECRET: ${leak}`);
const sum = (count: (result: ShardResult) => number): number =>
  results.reduce((total, result) => total + count(result), 0);
const [ran, broken] = [sum(({ passed }) => passed), sum(({ failed }) => failed)];
if (broken > 0) for (const line of await errorsLogged(logDir)) say(`  LOG: ${line}`);
for (const line of slowestFiles(results)) say(`  ${line}`);
for (const { title, message } of results.flatMap(({ failures }) => failures)) {
  say(`  FAILED: ${title}\n    ${message.slice(0, FAILURE_CHARACTERS_MAX)}`);
}
await rm(dataDir, { recursive: true, force: true });
await rm(secretsDir, { recursive: true, force: true });
const passed = ran + (leaks.length === 0 ? 1 : 0);
const failed = broken + (leaks.length === 0 ? 0 : 1);
say(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);

/** What the tests' services logged as errors: some tests mean to, but a failure is often explained there. */
async function errorsLogged(folder: string): Promise<string[]> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => /"level":[56]0/.test(line));
  return lines.slice(-LOGGED_ERRORS_MAX).map((line) => line.slice(0, LOGGED_CHARACTERS_MAX));
}

function seconds(ms: number): string {
  return `${String(Math.round(ms / 1_000))} s`;
}

/** Where the time of a run goes: the processes with the files that took longest. */
function slowestFiles(shards: readonly ShardResult[]): string[] {
  const timed = shards.flatMap(({ filesMs }, shard) => filesMs.map(([file, ms]) => ({ file, ms, shard })));
  const totals = shards.map(({ filesMs }) => seconds(filesMs.reduce((total, [, ms]) => total + ms, 0)));
  const slowest = timed.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_FILES);
  return [
    `time of the processes: ${totals.join(", ")}`,
    ...slowest.map(({ file, ms, shard }) => `process ${String(shard + 1)}: ${seconds(ms)} in ${file}`),
  ];
}

async function testFiles(): Promise<string[]> {
  const found = await readdir("test", { recursive: true });
  return found
    .filter((file) => file.endsWith(".test.ts"))
    .toSorted()
    .map((file) => join("test", file));
}

/** Of the beginnings that fit a file the longest: so a file can be taken out of its folder. */
function beginningOf(file: string): string {
  const fitting = PHASES.flat(2).filter((name) => name !== ELSE && file.includes(join("test", name)));
  return fitting.toSorted((a, b) => b.length - a.length)[0] ?? ELSE;
}

/** Runs what a process of a phase has to run; each but the very first has a chain of its own. */
async function runProcess(
  beginnings: readonly string[],
  process: number,
): Promise<ShardResult & { output: string }> {
  const own = files.filter((file) => beginnings.includes(beginningOf(file)));
  if (own.length === 0) return { passed: 0, failed: 0, failures: [], filesMs: [], output: "" };
  const chain = beginnings.includes(ELSE) ? null : await startOwnAnvil("--prune-history", "256");
  const result = await runShard(own, chain?.url ?? engines.chain.rpcUrl, process === 0);
  await chain?.kill();
  return result;
}

/** Runs files in a process of their own. One that ends without a result counts as a failure. */
async function runShard(
  shard: string[],
  evmRpcUrl: string,
  isShown: boolean,
): Promise<ShardResult & { output: string }> {
  const child = fork(SHARD, shard, {
    execArgv: ["--import", "tsx"],
    env: { ...env, TEST_EVM_RPC_URL: evmRpcUrl },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const output: string[] = [];
  const take = (chunk: unknown): void => {
    if (isShown) process.stdout.write(String(chunk));
    else output.push(String(chunk));
  };
  child.stdout?.on("data", take);
  child.stderr?.on("data", take);
  const result = await resultOf(child);
  return { ...result, output: output.join("") };
}

function resultOf(child: ChildProcess): Promise<ShardResult> {
  return new Promise((resolve) => {
    const message = "The process of these tests ended without a result; its output says why.";
    let result: ShardResult = {
      passed: 0,
      failed: 1,
      failures: [{ title: "a process", message }],
      filesMs: [],
    };
    child.on("message", (told) => {
      result = shardResult.parse(told);
    });
    child.on("close", () => resolve(result));
  });
}
