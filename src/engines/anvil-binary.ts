import { createRequire } from "node:module";
import { EngineError } from "./errors.ts";
import { probeVersion } from "./probe.ts";
import type { Engine } from "./resolver.ts";

/** Oldest supported version: its state files, flags and JSON-RPC are known to work. */
const LEAST_VERSION = [1, 7] as const;

/** Architectures as named by the package's publisher. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/**
 * Returns the program for this system inside the optional dependency of `@foundry-rs/anvil`; null if npm has installed
 * none. Bypasses the package's own launcher, a Node process around the program that would have to be ended too.
 */
function packagedAnvil(): string | null {
  const arch = ARCHITECTURES[process.arch] ?? process.arch;
  const own = createRequire(import.meta.url);
  try {
    // resolved from the package that depends on it: found reliably only from there
    const dependent = createRequire(own.resolve("@foundry-rs/anvil/package.json"));
    return dependent.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
  } catch {
    return null;
  }
}

/** anvil, the local chain. Its address, in EVM_RPC_URL, is the JSON-RPC endpoint of any chain. */
export const ANVIL: Engine<string> = {
  name: "anvil",
  variable: "ANVIL_BINARY",
  remedy:
    "Run npm ci, which installs it as a dependency; or install Foundry 1.7 or newer so that anvil is on PATH, " +
    "or set ANVIL_BINARY to it, or EVM_RPC_URL to a chain's JSON-RPC endpoint.",
  address(env) {
    const url = env["EVM_RPC_URL"] ?? "";
    if (url === "") return null;
    if (/^https?:$/.test(URL.parse(url)?.protocol ?? "")) return url;
    // the value is not repeated: it may contain a provider's key
    throw new EngineError("CONFIG", "EVM_RPC_URL is not an address that begins with http:// or https://.");
  },
  packaged: packagedAnvil,
  probe: (file, env) => probeVersion(file, env, /anvil Version: (\d+)\.(\d+)/, LEAST_VERSION),
  fetchers: [],
};
