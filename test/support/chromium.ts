import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { type Browser, launch } from "puppeteer-core";
import { treeMs } from "./processor-time.ts";
import { atEnd } from "./at-end.ts";

/** The first draws no window, and takes less of the processor. */
const NAMES = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
];
/** Debian's; the second for releases that lack the first. */
const PACKAGES = ["chromium-headless-shell", "chromium"];
/** The download is about 100 MB. */
const INSTALL_MS = 240_000;
/** For what else such tests begin with, their service too. */
const START_MS = 60_000;

/** Resolves to this machine, for the browser alone; it is no secure context. */
export const NETWORK_NAME = "spend.lan";

const run = promisify(execFile);

/** A browser's executable: `CHROMIUM_PATH`, what is on PATH, or Debian's. Null: there is none. */
export async function findChromium(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  const named = env["CHROMIUM_PATH"] ?? "";
  const folders = [...(env["PATH"] ?? "").split(delimiter), "/usr/bin"].filter((folder) => folder !== "");
  const candidates = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  for (const path of named === "" ? candidates : [named]) {
    if (await isExecutable(path)) return path;
  }
  return null;
}

/** The same, after Debian's package was installed where that can be: as root, where there is apt. */
async function ensureChromium(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  const there = await findChromium(env);
  const mayInstall = process.getuid?.() === 0 && (await isExecutable("/usr/bin/apt-get"));
  if (there !== null || !mayInstall || (env["CHROMIUM_PATH"] ?? "") !== "") return there;
  const until = Date.now() + INSTALL_MS;
  const installs = PACKAGES.map((name) => ["install", "--yes", "--no-install-recommends", name]);
  // A fresh image has no lists of packages yet.
  for (const attempt of [
    ...installs.map((install) => [install]),
    ...installs.map((install) => [["update"], install]),
  ]) {
    try {
      for (const step of attempt) await apt(step, until - Date.now());
      return await findChromium(env);
    } catch {
      // Without a network, say: the caller says what stands in.
    }
  }
  return null;
}

const apt = (args: readonly string[], timeoutMs: number) =>
  run("/usr/bin/apt-get", [...args], {
    timeout: Math.max(timeoutMs, 1),
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Starts it without a window, on a profile of its own that goes with it. */
export const launchChromium = (executablePath: string): Promise<Browser> =>
  launch({
    executablePath,
    headless: true,
    args: [
      // A name on a company's network, for what works over plain http.
      `--host-resolver-rules=MAP ${NETWORK_NAME} 127.0.0.1`,
      // Its sandbox does not work for root, which containers run as.
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--no-first-run",
      // Every process costs, and none of these pages holds another site's.
      "--in-process-gpu",
      "--disable-site-isolation-trials",
      "--process-per-site",
      // Each frame of an animation is drawn by the processor, and waited for.
      "--force-prefers-reduced-motion",
    ],
  });

/** The browser of this process, which its test files share: each test has a context of its own in it. */
let shared: Promise<Browser> | null = null;

async function sharedChromium(path: string): Promise<Browser> {
  const running = await shared?.catch(() => null);
  // One that broke off fails the tests that used it, and no others.
  if (running?.connected === true) return running;
  return await (shared = launchChromium(path));
}

/** What it has used of the processor since it was started. */
export async function sharedChromiumMs(): Promise<number> {
  const pid = (await shared?.catch(() => null))?.process()?.pid;
  return pid === undefined ? 0 : treeMs(pid);
}

atEnd(async () => (await shared?.catch(() => null))?.close());

/**
 * A browser for the tests of a suite, which close the contexts that they open in it and not the browser; where none can be
 * had they are pending, and that is said, with what stands in for it.
 */
export async function chromiumOrPending(suite: Mocha.Context, standIn = ""): Promise<Browser> {
  suite.timeout(INSTALL_MS + START_MS);
  const path = await ensureChromium();
  if (path !== null) return await sharedChromium(path);
  process.stdout.write(
    `    pending: there is no Chromium and none could be installed (CHROMIUM_PATH names one)${standIn}\n`,
  );
  return suite.skip();
}
