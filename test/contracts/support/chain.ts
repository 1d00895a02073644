import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { type Address, createTestClient, http, publicActions, walletActions } from "viem";
import { anvil } from "viem/chains";

const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
const POLLING_INTERVAL_MS = 10;

/** Calls in parallel go in one request; nothing is tried again. */
const connect = (url: string) =>
  createTestClient({
    mode: "anvil",
    chain: anvil,
    transport: http(url, { batch: true, retryCount: 0 }),
    pollingInterval: POLLING_INTERVAL_MS,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions);

/** A chain of the tests' own: a block for each transaction, the node's own unlocked and funded accounts. */
export interface Chain {
  readonly client: ReturnType<typeof connect>;
  /** Ten; the node signs for them. */
  readonly accounts: readonly Address[];
  stop(): Promise<void>;
}

/** The node's executable in the package of this platform, beside which `@foundry-rs/anvil` is only a launcher. */
function anvilPath(): string {
  const launcher = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  return createRequire(launcher).resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
}

/** Starts a node on a free loopback port. It ends with `stop`, and at the latest with this process. */
export async function startChain(): Promise<Chain> {
  const node = spawn(anvilPath(), ["--host", "127.0.0.1", "--port", "0", "--chain-id", String(anvil.id)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = (): void => void node.kill("SIGKILL");
  process.once("exit", kill);
  const client = connect(await listening(node));
  const stop = async (): Promise<void> => {
    process.off("exit", kill);
    const exited = once(node, "exit", { signal: AbortSignal.timeout(STOP_TIMEOUT_MS) });
    node.kill("SIGTERM");
    await exited.catch(kill);
  };
  return { client, accounts: await client.getAddresses(), stop };
}

/** The URL that the node says it listens on. */
async function listening(node: ChildProcess): Promise<string> {
  if (node.stdout === null) throw new Error("anvil's output is piped");
  const lines = createInterface(node.stdout);
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  try {
    return await new Promise<string>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("anvil did not listen in time")));
      node.once("error", reject);
      node.once("exit", (code) => reject(new Error(`anvil ended with ${String(code)}`)));
      lines.on("line", (line) => {
        const address = /^Listening on (\S+)$/.exec(line)?.[1];
        if (address !== undefined) resolve(`http://${address}`);
      });
    });
  } finally {
    // Read on, so that the node never waits for a full pipe.
    lines.removeAllListeners("line");
    lines.resume();
  }
}

/** The account at an index, which is there. */
export function accountAt(chain: Chain, index: number): Address {
  const account = chain.accounts[index];
  if (account === undefined) throw new Error(`anvil has no account ${String(index)}`);
  return account;
}
