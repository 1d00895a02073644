import { createRequire } from "node:module";
import { EngineError } from "./errors.ts";
import { probeVersion } from "./probe.ts";
import type { Engine } from "./resolver.ts";

/** The line whose state files, flags and JSON-RPC we know. */
const LEAST_VERSION = [1, 7] as const;

/** The architectures as the package's publisher calls them. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/**
 * The program inside the package for this system, an optional dependency of `@foundry-rs/anvil`. Null where npm has
 * installed none. The package's own launcher is passed over: it is a Node process around the program, which would
 * have to be ended too.
 */
function packagedAnvil(): string | null {
  const arch = ARCHITECTURES[process.arch] ?? process.arch;
  const own = createRequire(import.meta.url);
  try {
    // resolved from the package that depends on it: only there is it sure to be found
    const dependent = createRequire(own.resolve("@foundry-rs/anvil/package.json"));
    return dependent.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
  } catch {
    return null;
  }
}

/** anvil, the local chain. Its address is a JSON-RPC endpoint in EVM_RPC_URL, of any chain. */
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
    // the value is not repeated: it may hold a provider's key
    throw new EngineError("CONFIG", "EVM_RPC_URL is not an address that begins with http:// or https://.");
  },
  packaged: packagedAnvil,
  probe: (file, env) => probeVersion(file, env, /anvil Version: (\d+)\.(\d+)/, LEAST_VERSION),
  fetchers: [],
};
