import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { clearDrafts, errnoOf, obtainFile } from "../lib/durable-files.ts";
import { MasterKey, MasterKeyError } from "./master-key.ts";

export const MASTER_KEY_FILE_NAME = "master.key";

const GENERATED_SIZE_BYTES = 32;
const OWNER_ONLY = 0o600;
const COMMAND_TIMEOUT_MS = 10_000;
/** Maximum length of the shown part of a failed command's standard error. */
const SHOWN_MAX = 300;

/** Settings that may provide the master key; at most one of them may be set. */
export const MASTER_KEY_SETTINGS = [
  "MASTER_KEY",
  "MASTER_KEY_FILE",
  "MASTER_KEYS",
  "MASTER_KEYS_FILE",
  "MASTER_KEYS_COMMAND",
] as const;

export interface MasterKeySetting {
  readonly name: (typeof MASTER_KEY_SETTINGS)[number];
  readonly value: string;
}

type MasterKeyEnvironment = Readonly<
  Partial<Record<(typeof MASTER_KEY_SETTINGS)[number], string | undefined>>
>;

/** Returns the environment's setting for the master key; null if none. Throws `MasterKeyError` for several. */
export function masterKeySetting(env: MasterKeyEnvironment): MasterKeySetting | null {
  const [found, other] = MASTER_KEY_SETTINGS.flatMap((name) => {
    const value = env[name]?.trim() ?? "";
    return value === "" ? [] : [{ name, value }];
  });
  if (other !== undefined) {
    throw new MasterKeyError(
      "MASTER_KEY_AMBIGUOUS",
      `${String(found?.name)} and ${other.name} are both set; set one of them.`,
    );
  }
  return found ?? null;
}

/** Refuses an unusable key before any engine is started. Files and commands are read later. */
export function checkedMasterKeySetting(env: MasterKeyEnvironment): MasterKeySetting | null {
  const setting = masterKeySetting(env);
  if (setting?.name === "MASTER_KEY" || setting?.name === "MASTER_KEYS")
    parse(setting.value, setting.name, setting.name);
  return setting;
}

export interface MasterKeySource {
  /** Setting in the environment, which precedes the file in DATA_DIR. */
  readonly setting: MasterKeySetting | null;
  /**
   * DATA_DIR if the embedded default is used: the key is stored there, and created on the first start. Null if the
   * databases are the operator's, since a key on one server's disk would be lost with it.
   */
  readonly embeddedDataDir: string | null;
}

/** Loads or creates the master key. Throws `MasterKeyError`. */
export async function loadMasterKey({ embeddedDataDir, setting }: MasterKeySource): Promise<MasterKey> {
  if (setting !== null) return fromSetting(setting);
  if (embeddedDataDir === null) {
    throw new MasterKeyError(
      "MASTER_KEY_MISSING",
      "MASTER_KEY is not set; it seals secrets and is required outside the embedded default. Make one with: openssl rand -base64 32",
    );
  }
  const path = join(embeddedDataDir, MASTER_KEY_FILE_NAME);
  try {
    await mkdir(embeddedDataDir, { recursive: true, mode: 0o700 });
    await clearDrafts(embeddedDataDir, MASTER_KEY_FILE_NAME);
    const text = await obtainFile(embeddedDataDir, MASTER_KEY_FILE_NAME, generate);
    // A restored backup may be readable for everybody.
    await chmod(path, OWNER_ONLY);
    return MasterKey.parseAll(text.toString("utf8"), path);
  } catch (error) {
    if (error instanceof MasterKeyError) throw error;
    throw new MasterKeyError(
      "MASTER_KEY_UNREADABLE",
      `${path} can't be read or written (${errnoOf(error)}).`,
    );
  }
}

const generate = (): string => `${randomBytes(GENERATED_SIZE_BYTES).toString("base64url")}\n`;

async function fromSetting({ name, value }: MasterKeySetting): Promise<MasterKey> {
  if (name === "MASTER_KEYS_COMMAND") return parse(await outputOf(value), name, `the output of ${name}`);
  if (!name.endsWith("_FILE")) return parse(value, name, name);
  try {
    return parse(await readFile(value, "utf8"), name, value);
  } catch (error) {
    if (error instanceof MasterKeyError) throw error;
    throw new MasterKeyError("MASTER_KEY_UNREADABLE", `${name}: ${value} can't be read (${errnoOf(error)}).`);
  }
}

const parse = (text: string, name: MasterKeySetting["name"], source: string): MasterKey =>
  name.startsWith("MASTER_KEYS") ? MasterKey.parseAll(text, source) : MasterKey.parse(text, source);

/** Runs the command in a shell. Its standard output contains the keys and is never part of a message. */
export async function outputOf(command: string, timeoutMs = COMMAND_TIMEOUT_MS): Promise<string> {
  // A process group of its own, so that the timeout also ends the shell's children.
  const child = spawn("/bin/sh", ["-c", command], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, timeoutMs);
  const exit = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(errnoOf(error)));
    child.once("close", (code, signal) =>
      resolve(code === null ? String(signal) : `exit code ${String(code)}`),
    );
  });
  const [output, said, ended] = await Promise.all([textOf(child.stdout), textOf(child.stderr), exit]);
  clearTimeout(timer);
  if (ended === "exit code 0") return output;
  const reason = isLate ? `no end within ${String(timeoutMs / 1_000)} s` : ended;
  const shown = said
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, SHOWN_MAX);
  throw new MasterKeyError(
    "MASTER_KEY_UNREADABLE",
    `MASTER_KEYS_COMMAND failed (${reason})${shown === "" ? "." : `: ${shown}`}`,
  );
}
