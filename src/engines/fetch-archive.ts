import { mkdir, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { downloadFile, downloadText, sha256OfFile } from "./download.ts";
import { EngineError } from "./errors.ts";
import type { ResolveContext } from "./resolver.ts";
import { runTool } from "./tools.ts";

const EXTRACT_TIMEOUT_MS = 120_000;

/** Moves the one file of that path's ending out of an unpacked tree, and drops the rest of the tree. */
export async function keepOnly(tree: string, ending: string, target: string): Promise<void> {
  const files = await readdir(tree, { recursive: true });
  const found = files.find((file) => file === ending || file.endsWith(`/${ending}`));
  if (found === undefined) throw new EngineError("FETCH_FAILED", `the archive has no ${ending}`);
  await rename(path.join(tree, found), target);
  await rm(tree, { recursive: true, force: true });
}

export interface ArchiveRequest {
  /** A .tar.gz. */
  readonly url: URL;
  /** Address of the publisher's SHA-256, if there is one. */
  readonly sha256Url?: URL;
  /** The executable inside, by the ending of its path. */
  readonly member: string;
  readonly executable: string;
}

/** Downloads a .tar.gz, checks it against the publisher's SHA-256 if there is one, and keeps one file of it. */
export async function fetchArchive(
  folder: string,
  request: ArchiveRequest,
  context: ResolveContext,
): Promise<string> {
  const archive = path.join(folder, "archive.tar.gz");
  const tree = path.join(folder, "unpacked");
  const expected =
    request.sha256Url === undefined ? null : await downloadText(request.sha256Url, context.limits);
  await downloadFile(request.url, archive, context.limits);
  if (expected !== null && !expected.startsWith(await sha256OfFile(archive))) {
    throw new EngineError(
      "FETCH_FAILED",
      `the download's SHA-256 is not the one that ${request.url.host} gives`,
    );
  }
  await mkdir(tree);
  await runTool("tar", ["-xzf", archive, "-C", tree], { env: context.env, timeoutMs: EXTRACT_TIMEOUT_MS });
  await rm(archive);
  await keepOnly(tree, request.member, path.join(folder, request.executable));
  return request.executable;
}
