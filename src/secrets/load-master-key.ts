import { randomBytes } from "node:crypto";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { clearDrafts, errnoOf, obtainFile } from "../lib/durable-files.ts";
import { MasterKey, MasterKeyError } from "./master-key.ts";

export const MASTER_KEY_FILE = "master.key";

const GENERATED_SIZE_BYTES = 32;
const OWNER_ONLY = 0o600;

export interface MasterKeySource {
  /** The value of the environment's MASTER_KEY, if it is set. It goes before the file. */
  readonly fromEnvironment: string | undefined;
  /**
   * DATA_DIR when the embedded default is used: the key is kept there, and made on the first start. Null where the
   * databases are the operator's, since a key that lies on one server's disk would be lost with it.
   */
  readonly embeddedDataDir: string | null;
}

/** Finds or makes the master key. Throws `MasterKeyError`. */
export async function loadMasterKey(source: MasterKeySource): Promise<MasterKey> {
  if (source.fromEnvironment !== undefined && source.fromEnvironment.trim() !== "") {
    return MasterKey.parse(source.fromEnvironment, "MASTER_KEY");
  }
  if (source.embeddedDataDir === null) {
    throw new MasterKeyError(
      "MASTER_KEY_MISSING",
      "MASTER_KEY is not set; it seals secrets and is required outside the embedded default. Make one with: openssl rand -base64 32",
    );
  }
  const path = join(source.embeddedDataDir, MASTER_KEY_FILE);
  try {
    await mkdir(source.embeddedDataDir, { recursive: true, mode: 0o700 });
    await clearDrafts(source.embeddedDataDir, MASTER_KEY_FILE);
    const text = await obtainFile(source.embeddedDataDir, MASTER_KEY_FILE, generate);
    // A restored backup may have come back readable for everybody.
    await chmod(path, OWNER_ONLY);
    return MasterKey.parse(text.toString("utf8"), path);
  } catch (error) {
    if (error instanceof MasterKeyError) throw error;
    throw new MasterKeyError(
      "MASTER_KEY_UNREADABLE",
      `${path} can't be read or written (${errnoOf(error)}).`,
    );
  }
}

const generate = (): string => `${randomBytes(GENERATED_SIZE_BYTES).toString("base64url")}\n`;
