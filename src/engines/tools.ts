import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { EngineError, oneLine } from "./errors.ts";
import { hasErrorCode } from "../lib/error-code.ts";

const OUTPUT_CHARS_MAX = 20_000;

export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

export async function findOnPath(name: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const folder of (env["PATH"] ?? "").split(path.delimiter)) {
    if (folder === "") continue; // an empty entry means the working directory, which is not a tool folder
    const candidate = path.join(folder, name);
    if (await isExecutable(candidate)) return path.resolve(candidate);
  }
  return null;
}

export interface ToolOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly cwd?: string;
}

const CAUSE =
  /timed? ?out|refused|unreachable|not resolve|no such host|could not fetch|connection (error|broken)/i;
const COMPLAINT = /error|fatal|panic|cannot|can't|failed/i;

/** Returns a tool's most telling line of output: one that names a cause, else the last complaint, else the last. */
export function meaningfulLine(output: string): string {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const telling =
    lines.findLast((line) => CAUSE.test(line)) ?? lines.findLast((line) => COMPLAINT.test(line));
  return oneLine(telling ?? lines.at(-1) ?? "no output", 300);
}

/**
 * Runs a tool to its end and returns its output. Throws EngineError FETCH_FAILED, with the telling line of the output,
 * if it is missing, fails, or does not end in time.
 */
export async function runTool(
  command: string,
  args: readonly string[],
  options: ToolOptions,
): Promise<string> {
  const name = path.basename(command);
  const child = spawn(command, args, {
    env: options.env,
    stdio: ["ignore", "pipe", "pipe"],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  // A build must not outlive the program that requested it.
  const endWithUs = (): boolean => child.kill("SIGKILL");
  process.once("exit", endWithUs);
  child.once("close", () => process.off("exit", endWithUs));
  let output = "";
  const collect = (chunk: Buffer): void => {
    output = `${output}${chunk.toString("utf8")}`.slice(-OUTPUT_CHARS_MAX);
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  return new Promise((resolve, reject) => {
    const fail = (detail: string): void => {
      clearTimeout(timer);
      reject(new EngineError("FETCH_FAILED", `${name} ${detail}`));
    };
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      // the tool's own children may hold the pipes open
      child.stdout.destroy();
      child.stderr.destroy();
      fail(`did not end within ${String(Math.round(options.timeoutMs / 1_000))} s`);
    }, options.timeoutMs);
    child.once("error", (error) => {
      fail(hasErrorCode(error, "ENOENT") ? "is not installed" : `could not be run: ${error.message}`);
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(output);
      else fail(`ended with ${signal ?? `code ${String(code)}`}: ${meaningfulLine(output)}`);
    });
  });
}
