import { randomBytes } from "node:crypto";
import { link, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Small files with secrets in them, readable by their owner alone, that survive a power cut. */

const OWNER_ONLY = 0o600;

/** A draft lives for moments; one that is older was left by a process that was killed. */
const DRAFT_LEFT_MS = 60_000;
const DRAFT = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;

/**
 * The file's content; made where it is not there. Written whole under another name and linked into place: a crash leaves no
 * half of it, and of several who make it at once, all get the first one's.
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
 * Destroys the drafts of secrets that processes left in a folder when they were killed: those of one name, or all. Drafts
 * that are younger than a minute may be another process's, which is at it now, and stay.
 */
export async function clearDrafts(folder: string, ofName?: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, of] = DRAFT.exec(name) ?? [];
    if (of === undefined || (ofName !== undefined && of !== ofName)) continue;
    const found = await statIfThere(join(folder, name));
    if (found === null || !found.isFile() || Date.now() - found.mtimeMs < DRAFT_LEFT_MS) continue;
    // Killed once it was linked into place: the secret's own bytes are there under a second name.
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

/** Overwrites a file with zeros and removes it: on most disks its bytes would outlive its name. Again does nothing. */
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

/** Makes a new or a removed name survive a power cut; what is sealed with a lost key is lost. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
