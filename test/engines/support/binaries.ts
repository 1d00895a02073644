import { ANVIL } from "../../../src/engines/anvil-binary.ts";
import { MONGOD } from "../../../src/engines/mongod-binary.ts";
import { resolveContext, resolveEngine } from "../../../src/engines/resolver.ts";
import { TEMPORAL } from "../../../src/engines/temporal-binary.ts";

const progress = (line: string): void => {
  process.stderr.write(`    ${line}\n`);
};

let found: Promise<NodeJS.ProcessEnv> | undefined;

async function find(): Promise<NodeJS.ProcessEnv> {
  const env: NodeJS.ProcessEnv = { ...process.env };
  // these tests start engines of their own
  for (const name of ["MONGODB_URI", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "EVM_RPC_URL"]) env[name] = "";
  const context = resolveContext(env, progress);
  const [mongod, temporal, anvil] = await Promise.all([
    resolveEngine(MONGOD, context),
    resolveEngine(TEMPORAL, context),
    resolveEngine(ANVIL, context),
  ]);
  if (mongod.kind !== "binary" || temporal.kind !== "binary" || anvil.kind !== "binary") {
    throw new Error("binaries were expected");
  }
  return { ...env, MONGOD_BINARY: mongod.path, TEMPORAL_CLI: temporal.path, ANVIL_BINARY: anvil.path };
}

/** An environment that names the real binaries, found once per run, wherever they come from. */
export const engineEnvironment = (): Promise<NodeJS.ProcessEnv> => (found ??= find());
