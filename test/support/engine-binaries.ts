import { ANVIL } from "../../src/engines/anvil-binary.ts";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import type { OnProgress } from "../../src/engines/progress.ts";
import { resolveContext, resolveEngine } from "../../src/engines/resolver.ts";
import { TEMPORAL } from "../../src/engines/temporal-binary.ts";

/** The variables that name the engines' binaries. */
export type EngineBinaries = Readonly<Record<"MONGOD_BINARY" | "TEMPORAL_CLI" | "ANVIL_BINARY", string>>;

/** Tests start engines of their own, whatever the environment has of others. */
export const NO_OTHER_ENGINES = {
  MONGODB_URI: "",
  TEMPORAL_ADDRESS: "",
  TEMPORAL_NAMESPACE: "",
  EVM_RPC_URL: "",
} as const;

/** Finds the binaries as `npm start` does, wherever they come from. */
export async function engineBinaries(
  env: NodeJS.ProcessEnv,
  onProgress: OnProgress,
): Promise<EngineBinaries> {
  const context = resolveContext({ ...env, ...NO_OTHER_ENGINES }, onProgress);
  const [mongod, temporal, anvil] = await Promise.all([
    resolveEngine(MONGOD, context),
    resolveEngine(TEMPORAL, context),
    resolveEngine(ANVIL, context),
  ]);
  if (mongod.kind !== "binary" || temporal.kind !== "binary" || anvil.kind !== "binary") {
    throw new Error("binaries were expected");
  }
  return { MONGOD_BINARY: mongod.path, TEMPORAL_CLI: temporal.path, ANVIL_BINARY: anvil.path };
}
