import { resolveContext, resolveEngine } from "./resolver.ts";
import { TEST_SERVER } from "./test-server-binary.ts";
import type { OnProgress } from "./progress.ts";
import { EngineError } from "./errors.ts";

/**
 * Finds the time-skipping test server, in the same sources and order as the engines, for
 * `TestWorkflowEnvironment.createTimeSkipping({ server: { executable: { type: "existing-path", path } } })`. Starts the
 * server once to check that it works, so call this once per test run.
 * Throws EngineError BINARY_BROKEN or NO_SOURCE.
 */
export async function resolveTestServer(env: NodeJS.ProcessEnv, onProgress: OnProgress): Promise<string> {
  const resolution = await resolveEngine(TEST_SERVER, resolveContext(env, onProgress));
  if (resolution.kind === "binary") return resolution.path;
  throw new EngineError("CONFIG", "The test server has no address.");
}
