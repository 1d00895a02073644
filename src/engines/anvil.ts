import { setTimeout as sleep } from "node:timers/promises";
import { callRpc } from "./anvil-rpc.ts";
import { BLOCKS_RETAINED, chainFolder, exitStateFile, newestState } from "./chain-state.ts";
import { childEnvironment } from "./environment.ts";
import { reasonOf } from "./errors.ts";
import { type LoopbackAddress, urlOf } from "./loopback-guard.ts";
import type { OnProgress } from "./progress.ts";
import type { EngineSpec } from "./supervisor.ts";
import { runTool } from "./tools.ts";

/** anvil's default chain id, which wallets know as a local chain. */
export const LOCAL_CHAIN_ID = 31_337;
const STOP_GRACE_MS = 10_000;
const POLL_INTERVAL_MS = 40;
const READ_TIMEOUT_MS = 60_000;
/** Maximum past states available to calls. Without a limit, anvil writes old states into the user's home folder. */
const PAST_STATES_MAX = 256;
/** anvil also writes its state periodically, and not atomically: an interval of a year disables that. */
const NEVER_SECONDS = 31_536_000;

async function waitUntilItAnswers(rpcUrl: string, signal: AbortSignal): Promise<void> {
  let last: unknown = new Error("it never answered");
  while (!signal.aborted) {
    try {
      const chainId = await callRpc(rpcUrl, "eth_chainId", [], signal);
      if (Number(chainId) === LOCAL_CHAIN_ID) return;
      last = new Error("another chain answers");
    } catch (error) {
      last = error; // not up yet: polled again
    }
    await sleep(POLL_INTERVAL_MS);
  }
  throw new Error("the local chain did not become usable", { cause: last });
}

export interface AnvilOptions {
  readonly binary: string;
  readonly dataDir: string;
  readonly at: LoopbackAddress;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
  readonly onProgress: OnProgress;
}

/**
 * Returns why this anvil refuses a state file, without starting a chain: it reads its arguments, files included, before
 * it runs the harmless command. Null if it accepts the file, or if that is unknown.
 */
async function refusal({ binary, env }: AnvilOptions, file: string): Promise<string | null> {
  try {
    await runTool(binary, ["--load-state", file, "completions", "bash"], {
      env: childEnvironment(env),
      timeoutMs: READ_TIMEOUT_MS,
    });
    return null;
  } catch (error) {
    const reason = reasonOf(error);
    return reason.includes("ended with code") ? reason : null;
  }
}

/** anvil on loopback, with the newest state that it wrote or that was saved. Ready once its chain id answers. */
export const anvilSpec = (options: AnvilOptions): EngineSpec => ({
  name: "anvil",
  binary: options.binary,
  args: [
    ["--host", options.at.host, "--port", String(options.at.port)],
    ["--chain-id", String(LOCAL_CHAIN_ID), "--quiet"],
    // This flag checks neither Host nor the Origin of WebSockets, so it does not suffice against web pages: see
    // loopback-guard.ts.
    ["--no-cors"],
    ["--prune-history", String(PAST_STATES_MAX), "--transaction-block-keeper", String(BLOCKS_RETAINED)],
    ["--dump-state", exitStateFile(chainFolder(options.dataDir)), "--state-interval", String(NEVER_SECONDS)],
  ].flat(),
  env: childEnvironment(options.env),
  logFile: options.logFile,
  stopGraceMs: STOP_GRACE_MS,
  remedy:
    `Look into ${options.logFile}. Where the disk is full, make room and start again; ` +
    `where its state is damaged, move ${chainFolder(options.dataDir)} away: the chain starts empty, and the service sends again ` +
    "what its records have; with EVM_RPC_URL the service uses a chain of your own.",
  async prepare() {
    const state = await newestState({
      folder: chainFolder(options.dataDir),
      examine: (file) => refusal(options, file),
      onProgress: options.onProgress,
    });
    return state === null ? [] : ["--load-state", state];
  },
  ready: (signal) => waitUntilItAnswers(urlOf(options.at), signal),
});
