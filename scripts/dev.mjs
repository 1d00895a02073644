// `npm run dev`: builds, runs `npm start`'s program, and does both again whenever a source changes.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, watch } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const WATCHED = [
  "activities",
  "contracts/artifacts",
  "server",
  "src",
  "web",
  "workflows",
  "temporal-dev.yaml",
];
/** An editor writes several files, and some of them twice. */
const SETTLE_MS = 200;
/** As long as the service's own drain may take. */
const STOP_MS = 30_000;

let child = null;
let timer = null;
let isBusy = false;
let isStale = false;
let isEnding = false;

for (const path of WATCHED) {
  if (existsSync(join(ROOT, path))) watch(join(ROOT, path), { recursive: true }, changed);
}
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void end());
await again();

function changed() {
  clearTimeout(timer);
  timer = setTimeout(() => void again(), SETTLE_MS);
}

/** Builds and starts anew; what changes meanwhile is taken up afterwards. A build that fails leaves what runs running. */
async function again() {
  if (isBusy) {
    isStale = true;
    return;
  }
  isBusy = true;
  isStale = false;
  const { status } = spawnSync(process.execPath, [join(ROOT, "scripts", "build.mjs")], { stdio: "inherit" });
  if (status === 0 && !isEnding) {
    await stop();
    if (!isEnding) start();
  }
  isBusy = false;
  if (isStale && !isEnding) await again();
}

function start() {
  const started = spawn(process.execPath, [join(ROOT, "dist", "server", "main.js"), "start"], {
    stdio: "inherit",
  });
  child = started;
  started.once("exit", (code) => {
    if (child !== started) return;
    child = null;
    if (!isEnding)
      process.stdout.write(`The service ended (${code}); it starts again with the next change.\n`);
  });
}

async function stop() {
  const stopping = child;
  if (stopping === null) return;
  child = null;
  const ended = new Promise((resolve) => stopping.once("exit", resolve));
  const killer = setTimeout(() => stopping.kill("SIGKILL"), STOP_MS);
  stopping.kill("SIGTERM");
  await ended;
  clearTimeout(killer);
}

async function end() {
  if (isEnding) return;
  isEnding = true;
  await stop();
  process.exit(0);
}
