import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { type Caller, credentialsFor, type Owner } from "./credentials.ts";

/** One pass of the fuzzer over the whole document, as one caller. */
export interface Pass {
  readonly baseUrl: string;
  /** The fuzzer's command. */
  readonly command: string;
  /** Folder of its files. */
  readonly folder: string;
  readonly caller: Caller;
  readonly owner: Owner;
  /** Seed of the requests, which repeat as far as the service's answers do. */
  readonly seed: number;
  readonly maxSeconds: number;
  readonly maxExamples: number;
}

export interface Passed {
  readonly requests: number;
  /** Different failures that it found; null: it did not come to its end. */
  readonly failures: number | null;
  /** Output without colours, long lines cut. */
  readonly output: string;
}

/** Beyond its own bound, for what it has begun. */
const GRACE_MS = 120_000;
/** An answer may wait for a person for 45 s. */
const ANSWER_SECONDS = 60;
const OUTPUT_CHARACTERS_MAX = 10_000_000;
/** Of a line: whole bodies are in it. */
const LINE_CHARACTERS_MAX = 600;

const SCRIPTS = join(PACKAGE_ROOT, "lab", "fuzz");

/** Runs every phase and every check of the fuzzer; its further settings are in hooks.py and schemathesis.toml, with reasons. */
export async function fuzz(pass: Pass): Promise<Passed> {
  const { baseUrl, caller, command, folder, maxExamples, maxSeconds, owner, seed } = pass;
  const { guest, ownerId, token } = await credentialsFor(baseUrl, owner, caller);
  await mkdir(folder, { recursive: true });
  const args = [
    `--config-file=${join(SCRIPTS, "schemathesis.toml")}`,
    "run",
    `${baseUrl}/v1/openapi.json`,
    `--seed=${String(seed)}`,
    `--max-examples=${String(maxExamples)}`,
    `--max-time=${String(maxSeconds)}`,
    `--request-timeout=${String(ANSWER_SECONDS)}`,
    "--continue-on-failure",
    "--no-color",
    "--no-shrink",
  ];
  const env = {
    ...process.env,
    SCHEMATHESIS_HOOKS: join(SCRIPTS, "hooks.py"),
    PYTHONDONTWRITEBYTECODE: "1",
    FUZZ_BASE_URL: baseUrl,
    FUZZ_CALLER: caller,
    // Not among the arguments, which every user of the machine can read.
    FUZZ_TOKEN: token ?? "",
    FUZZ_OWNER_ID: ownerId,
    FUZZ_OWNER_EMAIL: owner.email,
    FUZZ_GUEST_EMAIL: guest.email,
    FUZZ_GUEST_PASSWORD: guest.password,
  };
  const { code, output } = await ended(command, args, { cwd: folder, env }, maxSeconds * 1_000 + GRACE_MS);
  const [, requests = "0"] = /^ +(\d+) generated/m.exec(output) ?? [];
  const [, failures] = /found (\d+) unique failures?/.exec(output) ?? [];
  const clean = code === 0 ? 0 : null;
  const lines = output.split("\n").map((line) => line.slice(0, LINE_CHARACTERS_MAX));
  return {
    requests: Number(requests),
    failures: failures === undefined ? clean : Number(failures),
    output: lines.join("\n"),
  };
}

interface Place {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** A command's exit code, null where it was killed for its time, and what it said. */
function ended(
  command: string,
  args: readonly string[],
  place: Place,
  timeoutMs: number,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(command, args, { ...place, stdio: ["ignore", "pipe", "pipe"] });
  const endWithUs = (): boolean => child.kill("SIGKILL");
  process.once("exit", endWithUs);
  const timer = setTimeout(endWithUs, timeoutMs);
  let output = "";
  const collect = (chunk: Buffer): void => {
    output = `${output}${chunk.toString("utf8")}`.slice(-OUTPUT_CHARACTERS_MAX);
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      process.off("exit", endWithUs);
      resolve({ code, output });
    });
  });
}
