import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callRpc } from "./anvil-rpc.ts";
import { childEnvironment } from "./environment.ts";
import { LOOPBACK } from "./ports.ts";
import type { EngineSpec } from "./supervisor.ts";

/** anvil's own chain id, which wallets know for a local chain. */
export const LOCAL_CHAIN_ID = 31_337;
const STOP_GRACE_MS = 10_000;
const POLL_INTERVAL_MS = 40;

/** Where the local chain keeps its state, inside DATA_DIR. */
export const chainFolder = (dataDir: string): string => path.join(dataDir, "chain");

/** The JSON-RPC endpoint of the embedded chain. */
export const chainUrl = (port: number): string => `http://${LOOPBACK}:${String(port)}`;

async function waitUntilItAnswers(rpcUrl: string, signal: AbortSignal): Promise<void> {
  let last: unknown = new Error("it never answered");
  while (!signal.aborted) {
    try {
      const chainId = await callRpc(rpcUrl, "eth_chainId", [], signal);
      if (Number(chainId) === LOCAL_CHAIN_ID) return;
      last = new Error("another chain answers");
    } catch (error) {
      last = error; // not up yet: asked again
    }
    await sleep(POLL_INTERVAL_MS);
  }
  throw new Error("the local chain did not become usable", { cause: last });
}

export interface ChainPlace {
  readonly binary: string;
  readonly dataDir: string;
  readonly port: number;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
}

/** anvil on loopback, on the state it left; ready once its chain id answers. */
export const anvilSpec = (place: ChainPlace): EngineSpec => ({
  name: "anvil",
  binary: place.binary,
  args: [
    ["--host", LOOPBACK, "--port", String(place.port)],
    ["--chain-id", String(LOCAL_CHAIN_ID), "--quiet"],
    // without it any web page that a person has open could speak to the chain
    ["--no-cors"],
    ["--state", path.join(chainFolder(place.dataDir), "state.json")],
  ].flat(),
  env: childEnvironment(place.env),
  logFile: place.logFile,
  stopGraceMs: STOP_GRACE_MS,
  ready: (signal) => waitUntilItAnswers(chainUrl(place.port), signal),
});
