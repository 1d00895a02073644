import { randomBytes } from "node:crypto";
import { link, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Small files with secrets, readable only by their owner, that survive a power failure. */

const OWNER_ONLY = 0o600;

/** Age at which a draft counts as left by a killed process; drafts normally live for moments. */
const DRAFT_MAX_AGE_MS = 60_000;
const DRAFT = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;

/**
 * Returns the file's content, creating the file if missing. The file is written completely under another name and
 * linked into place, so a crash leaves no partial file, and concurrent creators all get the first one's content.
 */
export async function obtainFile(folder: string, name: string, make: () => Buffer | string): Promise<Buffer> {
  const path = join(folder, name);
  const there = await readIfThere(path);
  if (there !== null) return there;
  const draft = join(folder, `.${name}.${randomBytes(6).toString("hex")}.tmp`);
  const made = Buffer.from(make());
  try {
    await writeDurably(draft, "wx", made);
    await link(draft, path);
    await syncFolder(folder);
    return made;
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    return await readFile(path);
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * Destroys drafts of secrets that killed processes left in a folder: those of one name, or all. Drafts younger than a
 * minute stay, since another process may be using them.
 */
export async function clearDrafts(folder: string, ofName?: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, of] = DRAFT.exec(name) ?? [];
    if (of === undefined || (ofName !== undefined && of !== ofName)) continue;
    const found = await statIfThere(join(folder, name));
    if (found === null || !found.isFile() || Date.now() - found.mtimeMs < DRAFT_MAX_AGE_MS) continue;
    // The process was killed after linking: the secret's own bytes have a second name.
    if (found.nlink > 1) await rm(join(folder, name), { force: true });
    else await destroyFile(folder, name, found.size);
  }
}

async function statIfThere(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** Overwrites a file with zeros and removes it: on most disks its bytes would outlive its name. Repeatable. */
export async function destroyFile(folder: string, name: string, sizeBytes: number): Promise<void> {
  const path = join(folder, name);
  try {
    await writeDurably(path, "r+", Buffer.alloc(sizeBytes));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    throw error;
  }
  await rm(path, { force: true });
  await syncFolder(folder);
}

export async function readIfThere(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

export const errnoOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown error";

async function writeDurably(path: string, flag: "wx" | "r+", bytes: Buffer): Promise<void> {
  const file = await open(path, flag, OWNER_ONLY);
  try {
    await file.write(bytes, 0, bytes.length, 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes a created or removed name survive a power failure; data sealed with a lost key is lost. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
