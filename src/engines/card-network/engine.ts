import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { builtFile } from "../../lib/package-root.ts";
import { childEnvironment } from "../environment.ts";
import { EngineError } from "../errors.ts";
import { LOOPBACK } from "../ports.ts";
import type { EngineSpec } from "../supervisor.ts";

const STOP_GRACE_MS = 2_000;
const POLL_INTERVAL_MS = 25;

export interface CardNetworkEngineOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
}

export const cardNetworkFolder = (dataDir: string): string => path.join(dataDir, "card-network");

/** Whether the environment asks for the simulated card network. Throws EngineError CONFIG for any other value. */
export function isCardNetworkWanted(env: NodeJS.ProcessEnv): boolean {
  const wanted = env["CARD_ISSUER"] ?? "";
  if (wanted === "" || wanted === "simulator") return wanted !== "";
  throw new EngineError("CONFIG", "CARD_ISSUER must be empty or simulator.");
}

/** The simulated card network on loopback. Ready once it answers. */
export const cardNetworkSpec = ({ dataDir, env, logFile, port }: CardNetworkEngineOptions): EngineSpec => ({
  name: "card-network",
  binary: process.execPath,
  args: [
    builtFile("src/engines/card-network/main.ts"),
    "--port",
    String(port),
    "--books",
    cardNetworkFolder(dataDir),
  ],
  env: childEnvironment(env),
  logFile,
  stopGraceMs: STOP_GRACE_MS,
  remedy: `Look into ${logFile}; ${cardNetworkFolder(dataDir)} holds its books. Without CARD_ISSUER it is not started.`,
  async ready(signal) {
    for (;;) {
      const answer = await fetch(`http://${LOOPBACK}:${port}/v1/account`, { signal }).catch(() => null);
      // Without a key the network answers 401.
      if (answer?.status === 401) return;
      signal.throwIfAborted();
      await sleep(POLL_INTERVAL_MS);
    }
  },
});
