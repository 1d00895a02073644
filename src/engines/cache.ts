import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { z } from "zod";
import { sha256OfFile } from "./download.ts";
import { EngineError, reasonOf } from "./errors.ts";
import { hasErrorCode } from "../lib/error-code.ts";

const MANIFEST_FILE = "manifest.json";
const PARTIAL_PREFIX = ".partial-";

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);
const relativePathSchema = z
  .string()
  .min(1)
  .refine((file) => !path.isAbsolute(file) && !file.split("/").includes(".."), "must stay inside its folder");

const manifestSchema = z.strictObject({
  executable: relativePathSchema,
  /** SHA-256 of every file, keyed by path inside the entry. */
  files: z.record(relativePathSchema, sha256Schema),
});
type Manifest = z.infer<typeof manifestSchema>;

/** Known digests, keyed by path inside the entry. Unlisted files are trusted as first fetched. */
export type PinnedDigests = Readonly<Record<string, string>>;

/** Returns the folder for fetched programs: `agent-spending-control` in XDG_CACHE_HOME or ~/.cache. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const xdg = env["XDG_CACHE_HOME"];
  const base =
    xdg !== undefined && path.isAbsolute(xdg) ? xdg : path.join(env["HOME"] ?? homedir(), ".cache");
  return path.join(base, "agent-spending-control");
}

async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .toSorted();
}

const mismatch = (file: string, expected: string, actual: string): EngineError =>
  new EngineError("FETCH_FAILED", `${file} has SHA-256 ${actual}, not ${expected}`);

/** Throws EngineError FETCH_FAILED unless each pinned file exists with its digest. */
export function checkPinned(files: Readonly<Record<string, string>>, pinned: PinnedDigests): void {
  for (const [file, expected] of Object.entries(pinned)) {
    const actual = files[file];
    if (actual === undefined) throw new EngineError("FETCH_FAILED", `${file} is missing`);
    if (actual !== expected) throw mismatch(file, expected, actual);
  }
}

async function readManifest(entry: string): Promise<Manifest | null> {
  let text: string;
  try {
    text = await readFile(path.join(entry, MANIFEST_FILE), "utf8");
  } catch (error) {
    if (hasErrorCode(error, "ENOENT")) return null;
    throw error;
  }
  return manifestSchema.parse(JSON.parse(text));
}

export type Cached =
  | { readonly state: "present"; readonly path: string }
  | { readonly state: "absent" }
  /** Altered or damaged since it was fetched, and never used. */
  | { readonly state: "refused"; readonly reason: string };

/** Looks up an earlier run's download, and verifies every file against its SHA-256. */
export async function findCached(entry: string, pinned: PinnedDigests): Promise<Cached> {
  try {
    const manifest = await readManifest(entry);
    if (manifest === null) return { state: "absent" };
    checkPinned(manifest.files, pinned);
    for (const [file, expected] of Object.entries(manifest.files)) {
      const actual = await sha256OfFile(path.join(entry, file));
      if (actual !== expected) throw mismatch(file, expected, actual);
    }
    if (!(manifest.executable in manifest.files)) throw new Error("its executable has no digest");
    return { state: "present", path: path.join(entry, manifest.executable) };
  } catch (error) {
    return { state: "refused", reason: reasonOf(error) };
  }
}

/**
 * Fetches into a temporary folder beside `entry`, checks the pinned digests, records the digests of all files, and
 * moves the whole into place with one rename, so that an entry exists completely or not at all. The caller must hold
 * the cache's lock.
 * `fetch` returns the executable's path inside the folder. Throws what `fetch` throws, or EngineError FETCH_FAILED if a
 * digest is not the pinned one; nothing is kept then.
 */
export async function install(
  entry: string,
  pinned: PinnedDigests,
  fetch: (folder: string) => Promise<string>,
): Promise<string> {
  const parent = path.dirname(entry);
  await mkdir(parent, { recursive: true, mode: 0o755 });
  const partial = await mkdtemp(path.join(parent, PARTIAL_PREFIX));
  try {
    const executable = await fetch(partial);
    await chmod(path.join(partial, executable), 0o755);
    const files: Record<string, string> = {};
    for (const file of await listFiles(partial)) files[file] = await sha256OfFile(path.join(partial, file));
    checkPinned(files, pinned);
    const manifest = manifestSchema.parse({ executable, files });
    await writeFile(path.join(partial, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
    await rm(entry, { recursive: true, force: true });
    await rename(partial, entry);
    return path.join(entry, executable);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/**
 * Removes the leftovers of killed downloads. The caller must hold the cache's lock, so no other process is downloading.
 */
export async function removePartials(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(PARTIAL_PREFIX)) await rm(path.join(folder, name), { recursive: true, force: true });
  }
}
