import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type RunningEngines, startEngines } from "../../src/engines/start.ts";
import { resolveTestServer } from "../../src/engines/test-server.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { runInLanes } from "./lanes.ts";
import type { FileResult } from "./lane-messages.ts";
import { needsEngines, needsTestServer, selected, sharingFiles } from "./plan.ts";
import { processorTime } from "./processor-time.ts";
import { type EngineBinaries, engineBinaries } from "./engine-binaries.ts";
import { withClassArchive } from "./class-archive.ts";
import { runFolder } from "./run-folder.ts";
import { plant, scanRun } from "./secret-scan.ts";
import { shortOrSoak } from "./soak.ts";

/**
 * `npm test`: brings up one MongoDB and one Temporal for the whole run, hands their addresses to the tests in the
 * environment, runs every test file (or those that the arguments name), and closes with the line `N passed, N failed`.
 * At the end the files of the engines and the logs are searched for secrets, which counts as one test more.
 */
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const LOGGED_ERRORS_MAX = 20;
const LOGGED_CHARACTERS_MAX = 1_500;
const FAILURE_CHARACTERS_MAX = 1_000;
const SLOWEST_FILES = 10;
/** Retries of a whole run, of which a good one needs a handful: more would hide a service, or scenes, that often fail. */
const MAX_REPEATS = shortOrSoak(30, Infinity);
const MAX_REPLAYS = shortOrSoak(12, Infinity);
/** Files that a whole run plays once more, alone: a stall of the machine fails a few, a defect fails again or fails more. */
const MAX_ALONE = 3;
/** More than the cores, since many tests wait most of their time; fewer than what makes them late for each other. */
const LANES = Number(process.env["TEST_LANES"] ?? 4);

const began = performance.now();
const { beginWithinMs, files, grep } = await selected(process.argv.slice(2));
const beginUntil = beginWithinMs === null ? null : began + beginWithinMs;
if (files.length === 0) {
  say(
    beginWithinMs === null ? "No test fits these words.\n0 passed, 0 failed" : "No test reaches the change.",
  );
  process.exit(beginWithinMs === null ? 1 : 0);
}
const folder = await runFolder();
const dataDir = join(folder, "engines");
const logDir = join(dataDir, "logs");
process.env["TEST_SECRETS_FILE"] = join(folder, "noted-secrets");
// Of this process, and of all that it starts.
process.env["TMPDIR"] = folder;
const binaries = files.some(needsEngines) ? engineBinaries(process.env, say) : null;
const bringsUp = binaries === null ? null : binaries.then(bringUp);
// Beside the first files.
const planted = bringsUp === null ? null : bringsUp.then((running) => plant(running, logDir));
// Awaited at the end; what it failed with is told there.
planted?.catch(() => undefined);
const env = { TEST_LOG_DIR: logDir, TEST_DATA_DIR: join(dataDir, "services") };
const enginesEnv = enginesSettings(bringsUp, binaries);
const testServerEnv = testServerSettings();

const results = await play(files, LANES);
const overtaken = await playAlone(results.filter(({ failed: count }) => count > 0));
const [engines, hidden] = await Promise.all([bringsUp, planted]);
const engineMs = engines === null ? 0 : enginesProcessorMs(engines);
await engines?.stop();
const leaks = hidden === null ? [] : await scanRun(dataDir, hidden, say);
const notRun = files.filter((file) => results.every((result) => result.file !== file));
const unheard = beginUntil === null ? notRun : [];
const excesses = [
  ...excess(
    "calls repeated after a 503",
    total(({ repeats }) => repeats),
    MAX_REPEATS,
  ),
  ...excess(
    "scenes played again",
    total(({ replays }) => replays),
    MAX_REPLAYS,
  ),
];
const allFailures = [...results.flatMap(({ failures }) => failures), ...excesses];
const failed = total(({ failed: count }) => count) + leaks.length + unheard.length + excesses.length;
if (failed > 0) for (const line of await logged(logDir)) say(`  LOG: ${line}`);
for (const leak of leaks) say(`  SECRET: ${leak}`);
for (const file of unheard) say(`  FAILED: ${file}\n    It was not run.`);
for (const line of whereTheTimeWent()) say(`  ${line}`);
if (beginUntil !== null && notRun.length > 0)
  say(`  left out, farther from the change: ${String(notRun.length)} of ${String(files.length)} files`);
for (const { title, message } of overtaken) {
  say(`  FAILED BESIDE OTHERS, PASSED ALONE: ${title}\n    ${message.slice(0, FAILURE_CHARACTERS_MAX)}`);
}
for (const { title, message } of allFailures) {
  say(`  FAILED: ${title}\n    ${message.slice(0, FAILURE_CHARACTERS_MAX)}`);
}
const passed = total(({ passed: count }) => count) + (hidden !== null && leaks.length === 0 ? 1 : 0);
say(`${String(passed)} passed, ${String(failed)} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);

async function play(these: readonly string[], lanes: number): Promise<FileResult[]> {
  const played: FileResult[] = [];
  await runInLanes({
    files: these,
    grep,
    beginUntil,
    // What a change can break keeps its order.
    sharing: beginUntil === null ? await sharingFiles(these) : new Set(),
    env,
    enginesEnv,
    testServerEnv,
    lanes,
    withChains: bringsUp !== null,
    onResult(result) {
      played.push(result);
      const count = these.length === 1 ? "" : ` (${String(played.length)} of ${String(these.length)})`;
      say(`\n${timesOf(result)}${count}`);
      if (result.output !== "") say(result.output);
    },
  });
  return played;
}

/** Plays failed files of a whole run alone, whose result then counts. Returns failures that did not come again, which are printed. */
async function playAlone(failing: readonly FileResult[]): Promise<FileResult["failures"]> {
  const isWhole = process.argv.length === 2 && beginUntil === null;
  if (!isWhole || failing.length === 0 || failing.length > MAX_ALONE) return [];
  const again = await play(
    failing.map(({ file }) => file),
    1,
  );
  const alone = again.filter(({ failed: count }) => count === 0);
  const isPassed = (file: string): boolean => alone.some((result) => result.file === file);
  results.splice(0, results.length, ...results.filter(({ file }) => !isPassed(file)), ...alone);
  return failing.filter(({ file }) => isPassed(file)).flatMap(({ failures }) => failures);
}

async function bringUp(found: EngineBinaries): Promise<RunningEngines> {
  return startEngines({
    dataDir,
    env: { ...process.env, ...found, TEMPORAL_UI: "false" },
    ports: { mongodb: 0, temporal: 0, temporalUi: 0, chain: 0 },
    // It stops the mining for a moment: not under tests that have it in their own hands.
    chainSnapshotMs: null,
    onProgress: say,
    onUnexpectedExit: (engine, detail) => say(`the tests' ${engine} ended: ${detail}`),
  });
}

async function enginesSettings(
  up: Promise<RunningEngines> | null,
  found: Promise<EngineBinaries> | null,
): Promise<Readonly<Record<string, string>>> {
  if (up === null) return {};
  const [{ chain, mongodb, temporal }] = await Promise.all([up, bundle()]);
  return {
    // Services that tests start with engines of their own need not look for them, which takes a look at every byte.
    ...(await found),
    TEST_MONGODB_URI: mongodb.uri,
    TEST_TEMPORAL_ADDRESS: temporal.address,
    TEST_TEMPORAL_NAMESPACE: temporal.namespace,
    TEST_EVM_RPC_URL: chain.directUrl,
  };
}

/** What tests start as processes, they start from it. */
async function bundle(): Promise<void> {
  const { stderr } = await promisify(execFile)(process.execPath, [
    join(PACKAGE_ROOT, "scripts", "bundle.mjs"),
  ]);
  if (stderr !== "") say(stderr.trimEnd());
}

async function testServerSettings(): Promise<Readonly<Record<string, string>>> {
  if (!files.some(needsTestServer)) return {};
  const testServer = await resolveTestServer(process.env, say);
  return { TEST_TIME_SKIPPING_SERVER: testServer, ...(await withClassArchive(testServer, folder)) };
}

function total(count: (result: FileResult) => number): number {
  return results.reduce((sum, result) => sum + count(result), 0);
}

/**
 * What the tests' services logged about the requests that failures name, and their last errors: some tests mean to, but a failure
 * is often explained there.
 */
async function logged(inFolder: string): Promise<string[]> {
  const names = (await readdir(inFolder).catch(() => [])).filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(names.map((name) => readFile(join(inFolder, name), "utf8")));
  const lines = texts.flatMap((text) => text.split("\n"));
  const messages = results.flatMap(({ failures }) => failures.map(({ message }) => message)).join("\n");
  const requestIds = [...messages.matchAll(/"requestId":"([\w-]+)"/g)].map((match) => match[1] ?? "");
  const ofFailures = lines.filter((line) => requestIds.some((id) => line.includes(id)));
  const errors = lines.filter((line) => /"level":[56]0/.test(line)).slice(-LOGGED_ERRORS_MAX);
  return [...new Set([...errors, ...ofFailures])].map((line) => line.slice(0, LOGGED_CHARACTERS_MAX));
}

/** Failure of a run that retried too often, though each of its tests passed. */
function excess(what: string, count: number, max: number): FileResult["failures"] {
  return count > max
    ? [{ title: what, message: `${String(count)}, of which at most ${String(max)} may be` }]
    : [];
}

function enginesProcessorMs({ chain, mongodb, temporal }: RunningEngines): number {
  const pids = [mongodb.pid, temporal.pid, chain.pid].filter((pid) => pid !== null);
  return pids.reduce((sum, pid) => sum + processorTime(pid).ownMs, 0);
}

function seconds(ms: number): string {
  return `${ms < 10_000 ? (ms / 1_000).toFixed(1) : String(Math.round(ms / 1_000))} s`;
}

/** A file's wall time, its processor time, and that of the processes it started. */
function timesOf({ childCpuMs, file, ms, ownCpuMs, repeats }: FileResult): string {
  const again = repeats === 0 ? "" : `, ${String(repeats)} calls repeated after a 503`;
  return `${file}: ${seconds(ms)}, processor ${seconds(ownCpuMs)} + ${seconds(childCpuMs)}${again}`;
}

/** Wall and processor time of the run, and its slowest files. */
function whereTheTimeWent(): string[] {
  const { childrenMs, ownMs } = processorTime();
  const inProcess = total(({ ownCpuMs }) => ownCpuMs);
  const slowest = results.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_FILES);
  return [
    `time: ${seconds(performance.now() - began)}`,
    `processor time: ${seconds(ownMs + childrenMs)}; the tests' own processes ${seconds(inProcess)}, MongoDB and Temporal ${seconds(engineMs)}`,
    `calls repeated after a 503: ${String(total(({ repeats }) => repeats))}; scenes played again: ${String(total(({ replays }) => replays))}`,
    ...slowest.map(timesOf),
  ];
}
