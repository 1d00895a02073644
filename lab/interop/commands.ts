import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { cacheFolder } from "../../src/engines/cache.ts";
import { isExecutable, runTool } from "../../src/engines/tools.ts";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

/** A command line, in the folder of one client. */
export type Line = readonly [command: string, ...args: string[]];

/** A program of others, which is fetched once. */
export interface Fetched {
  readonly name: string;
  /** Names its folder in the cache. */
  readonly version: string;
  /** Fetches it into its folder. */
  readonly install: (tools: string) => readonly Line[];
}

/** Sources of the programs that use what is fetched. */
export const PROGRAMS = join(PACKAGE_ROOT, "lab", "interop", "programs");

/** Time for one command, the longest of which installs the 2,000 packages of n8n. */
const COMMAND_TIMEOUT_MS = 1_800_000;

export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Name of a folder for the text. */
export const folderName = (text: string): string => text.replaceAll(/[^a-z0-9.]+/gi, "-");

/** The folder of the program, fetched where it is not there yet. */
export async function installed({ install, name, version }: Fetched): Promise<string> {
  const tools = join(cacheFolder(process.env), folderName(`${name}-${version}`));
  const complete = join(tools, ".complete");
  if (await isExecutable(complete)) return tools;
  say(`${name} ${version}: being installed`);
  await rm(tools, { recursive: true, force: true });
  await mkdir(tools, { recursive: true });
  await runAll(install(tools), tools);
  await writeFile(complete, "", { mode: 0o755 });
  return tools;
}

/** Runs the lines one after the other. Throws EngineError at the first that fails. */
export async function runAll(
  lines: readonly Line[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  for (const line of lines) await runLine(line, cwd, env);
}

export function runLine([command, ...args]: Line, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const file = command.includes("/") ? resolve(cwd, command) : command;
  return runTool(file, args, { env, timeoutMs: COMMAND_TIMEOUT_MS, cwd });
}
