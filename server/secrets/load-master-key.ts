import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { MasterKey, MasterKeyError } from "./master-key.ts";

export const MASTER_KEY_FILE = "master.key";

const GENERATED_SIZE_BYTES = 32;
const OWNER_ONLY = 0o600;

export interface MasterKeySource {
  /** The value of the environment's MASTER_KEY, if it is set. It goes before the file. */
  readonly fromEnvironment: string | undefined;
  /**
   * DATA_DIR when the embedded default is used: the key is kept there, and made on the first start. Null where the
   * databases are somebody else's, since a key that lies on one server's disk would be lost with it.
   */
  readonly embeddedDataDir: string | null;
}

/** Finds or makes the master key (decisions.md section 10). Throws `MasterKeyError`. */
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
    const text = (await readIfThere(path)) ?? (await generate(source.embeddedDataDir, path));
    return MasterKey.parse(text, path);
  } catch (error) {
    if (error instanceof MasterKeyError) throw error;
    throw new MasterKeyError(
      "MASTER_KEY_UNREADABLE",
      `${path} can't be read or written (${errnoOf(error)}).`,
    );
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    const text = await readFile(path, "utf8");
    // A restored backup may have come back readable for everybody.
    await chmod(path, OWNER_ONLY);
    return text;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

/**
 * Written whole under another name and then linked into place: a crash leaves no half of a key, and of two servers
 * that start at once the second takes the first one's.
 */
async function generate(directory: string, path: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const draft = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const text = randomBytes(GENERATED_SIZE_BYTES).toString("base64url");
  try {
    await writeDurably(draft, `${text}\n`);
    await link(draft, path);
    await syncDirectory(directory);
    return text;
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    return await readFile(path, "utf8");
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", OWNER_ONLY);
  try {
    await file.writeFile(text, "utf8");
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes the new name survive a power cut; what is sealed with a lost key is lost. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const errnoOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown error";
