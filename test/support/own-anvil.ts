import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { ANVIL } from "../../src/engines/anvil-binary.ts";
import { callRpc } from "../../src/engines/anvil-rpc.ts";
import { LOCAL_CHAIN_ID } from "../../src/engines/anvil.ts";
import { urlOf } from "../../src/engines/loopback-guard.ts";
import { choosePorts, LOOPBACK } from "../../src/engines/ports.ts";
import { resolveContext, resolveEngine } from "../../src/engines/resolver.ts";

/** A local chain that only one test file uses: what is done to it harms no other test. */
export interface OwnAnvil {
  readonly url: string;
  call(method: string, params?: readonly unknown[]): Promise<unknown>;
  /** Lets it stand still, and go on: its connections stay open, and nothing is answered meanwhile. */
  hang(): void;
  goOn(): void;
  /** Ends it at once; all of its blocks are lost. */
  kill(): Promise<void>;
  /** Starts a fresh, empty chain on the same port. */
  revive(): Promise<void>;
}

const STARTED_MS = 120_000;
const LOOK_MS = 20;

export const startOwnAnvil = (...options: readonly string[]): Promise<OwnAnvil> =>
  startOwnChain(LOCAL_CHAIN_ID, ...options);

/** A chain under another chain's id, which stands for that chain. */
export async function startOwnChain(chainId: number, ...options: readonly string[]): Promise<OwnAnvil> {
  const found = await resolveEngine(
    ANVIL,
    resolveContext({ ...process.env, EVM_RPC_URL: "" }, () => undefined),
  );
  if (found.kind !== "binary") throw new Error("a chain of one's own needs the program");
  const { chain: port } = await choosePorts({ chain: { port: 0, variable: "none" } });
  const url = urlOf({ host: LOOPBACK, port });
  let child: ChildProcess | null = null;

  async function revive(): Promise<void> {
    if (found.kind !== "binary") return;
    const place = ["--host", LOOPBACK, "--port", String(port), "--chain-id", String(chainId)];
    const started = spawn(found.path, [...place, "--quiet", ...options], { stdio: "ignore" });
    child = started;
    // Also where a test's own end never comes, since its beginning failed.
    process.once("exit", () => started.kill("SIGKILL"));
    const until = performance.now() + STARTED_MS;
    for (;;) {
      // anvil does not report that it listens, so it is asked.
      const answer = await callRpc(url, "eth_chainId").catch(() => null);
      if (answer !== null) return;
      if (performance.now() > until) throw new Error("the chain did not start");
      await sleep(LOOK_MS);
    }
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  await revive();
  return {
    url,
    call: (method, params = []) => callRpc(url, method, params),
    hang: () => void child?.kill("SIGSTOP"),
    goOn: () => void child?.kill("SIGCONT"),
    kill,
    revive,
  };
}
