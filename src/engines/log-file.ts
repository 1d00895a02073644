import { constants } from "node:fs";
import { type FileHandle, open, rename, stat } from "node:fs/promises";
import { z } from "zod";
import { oneLine } from "./errors.ts";
import { meaningfulLine } from "./tools.ts";

const ROTATE_BYTES = 16_777_216;
const TAIL_BYTES_MAX = 65_536;

export interface LogFile {
  readonly handle: FileHandle;
  /** Offset of this run's first line. */
  readonly from: number;
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch {
    return 0;
  }
}

/** Flags that never follow a symbolic link. */
const APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW;

/** Opens an engine's log for appending. A long log is first renamed to `<file>.1`, so that at most two are kept. */
export async function openLog(file: string): Promise<LogFile> {
  if ((await sizeOf(file)) > ROTATE_BYTES) await rename(file, `${file}.1`);
  return { handle: await open(file, APPEND, 0o600), from: await sizeOf(file) };
}

const mongodLineSchema = z.object({
  s: z.string(),
  msg: z.string(),
  attr: z.unknown().optional(),
});

/** Returns mongod's reason for ending: of its JSON lines, those of severity E and F show it. */
function mongodReason(lines: readonly string[]): string | null {
  for (const line of lines.toReversed()) {
    if (!line.startsWith("{")) continue;
    try {
      const { s, msg, attr } = mongodLineSchema.parse(JSON.parse(line));
      if (s === "F" || s === "E")
        return oneLine(`${msg} ${attr === undefined ? "" : JSON.stringify(attr)}`, 400);
    } catch {
      continue; // cut off at the tail's beginning
    }
  }
  return null;
}

/** Returns the line written since `from` that best explains why an engine ended. */
export async function lastWords(file: string, from: number): Promise<string> {
  try {
    return await MEANINGFUL(file, from);
  } catch {
    return "none, its log is missing";
  }
}

async function MEANINGFUL(file: string, from: number): Promise<string> {
  const handle = await open(file, "r");
  try {
    const { size } = await handle.stat();
    const start = Math.max(from, size - TAIL_BYTES_MAX);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(0, size - start)), 0, null, start);
    const text = buffer.subarray(0, bytesRead).toString("utf8");
    return mongodReason(text.split("\n")) ?? meaningfulLine(text);
  } finally {
    await handle.close();
  }
}
