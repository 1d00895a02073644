import { randomUUID } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { dataDirHolder } from "./data-dir.ts";
import { EngineError, reasonOf } from "./errors.ts";
import { hasErrorCode } from "../lib/error-code.ts";

const RUNTIME_FILE = "runtime.json";

const pidSchema = z.int().positive();

const runtimeFileSchema = z.strictObject({
  pid: pidSchema,
  startedAt: z.iso.datetime(),
  baseUrl: z.url(),
  mcpUrl: z.url(),
  mongodb: z.strictObject({ uri: z.string().min(1), pid: pidSchema.nullable() }),
  temporal: z.strictObject({
    address: z.string().min(1),
    namespace: z.string().min(1),
    uiUrl: z.url().nullable(),
    pid: pidSchema.nullable(),
  }),
  /** Null for an external chain, whose address often contains a provider's key. */
  chain: z.strictObject({ rpcUrl: z.url().nullable(), pid: pidSchema.nullable() }),
});

/** Addresses and pids of the programs running on a DATA_DIR. Pids are null for external programs. */
export type RuntimeFile = z.infer<typeof runtimeFileSchema>;

const fileIn = (dataDir: string): string => path.join(dataDir, RUNTIME_FILE);

/** Writes runtime.json, readable only by its owner; a reader sees the old or the new file, never a partial one. */
export async function writeRuntimeFile(dataDir: string, content: RuntimeFile): Promise<void> {
  const temporary = `${fileIn(dataDir)}.${randomUUID()}`;
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(runtimeFileSchema.parse(content), null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, fileIn(dataDir));
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Reads runtime.json; null if there is none. Throws EngineError DATA_DIR if the file is malformed. */
export async function readRuntimeFile(dataDir: string): Promise<RuntimeFile | null> {
  try {
    return runtimeFileSchema.parse(JSON.parse(await readFile(fileIn(dataDir), "utf8")));
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return null;
    const cause = error instanceof z.ZodError ? z.prettifyError(error) : reasonOf(error);
    throw new EngineError("DATA_DIR", `${fileIn(dataDir)} cannot be read: ${cause}`, { cause: error });
  }
}

/**
 * Reads what currently runs on the DATA_DIR. Null if nothing does, even if runtime.json was left behind by a killed
 * service, or not yet written by a starting one. Throws like readRuntimeFile.
 */
export async function readLiveRuntimeFile(dataDir: string): Promise<RuntimeFile | null> {
  const holder = await dataDirHolder(dataDir);
  const content = holder === null ? null : await readRuntimeFile(dataDir);
  return content !== null && content.pid === holder ? content : null;
}

export const removeRuntimeFile = (dataDir: string): Promise<void> => rm(fileIn(dataDir), { force: true });
