import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../../src/engines/cache.ts";
import { EngineError } from "../../src/engines/errors.ts";
import { isExecutable, runTool } from "../../src/engines/tools.ts";

const VERSION = "4.32.5";
const VENV_TIMEOUT_MS = 60_000;
const PIP_TIMEOUT_MS = 240_000;
/** An index that can't be reached is given up in seconds. */
const PIP_QUICK = [
  "--timeout",
  "8",
  "--retries",
  "0",
  "--disable-pip-version-check",
  "--no-input",
  "--quiet",
];

/** Why there is no fuzzer: what to install, or to reach. */
export interface Unavailable {
  readonly reason: string;
}

/**
 * The fuzzer's command, in a Python environment of its own in the cache folder, made where there is none yet: that takes half a
 * minute and PyPI.
 */
export async function ensureSchemathesis(
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<string | Unavailable> {
  const folder = join(cacheFolder(env), `schemathesis-${VERSION}`);
  const [command, complete] = [join(folder, "bin", "st"), join(folder, ".complete")];
  if (await isExecutable(complete)) return command;
  say(`schemathesis ${VERSION}: being installed`);
  try {
    await rm(folder, { recursive: true, force: true });
    await runTool("python3", ["-m", "venv", folder], { env, timeoutMs: VENV_TIMEOUT_MS });
    const install = ["-m", "pip", "install", ...PIP_QUICK, `schemathesis==${VERSION}`];
    await runTool(join(folder, "bin", "python"), install, { env, timeoutMs: PIP_TIMEOUT_MS });
    await writeFile(complete, "", { mode: 0o755 });
    return command;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { reason: `schemathesis can't be had: ${error.message}; it takes python3 with venv, and PyPI` };
  }
}
