import { Child } from "../child.ts";
import type { TransfersConfig } from "../processes/transfers.ts";
import type { Site, System } from "./system.ts";
import { portOf } from "./system.ts";

const AUDIT_MS = 10_000;

/** Bare token transfers by viem on the same chain. */
export async function startTransfers({ evmRpcUrl, profileDir }: Site): Promise<System> {
  const config: TransfersConfig = { rpcUrl: evmRpcUrl };
  const child = await Child.start({ entry: "processes/transfers.ts", config, profileDir });
  return {
    port: portOf(child.port),
    pid: child.pid,
    templates: () => Promise.resolve([{ path: "/transfers", headers: {}, body: {} }]),
    settle: () => Promise.resolve(),
    course: () => Promise.resolve(null),
    async audit(answered) {
      const arrived = await child.request<number>(null, AUDIT_MS);
      return arrived === answered
        ? []
        : [`transfers: ${String(answered)} answered, ${String(arrived)} arrived`];
    },
    stop: () => child.stop(),
  };
}
