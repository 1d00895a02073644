import { mkdir, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { downloadFile, downloadText, sha256OfFile } from "./download.ts";
import { EngineError } from "./errors.ts";
import type { ResolveContext } from "./resolver.ts";
import { runTool } from "./tools.ts";

const EXTRACT_TIMEOUT_MS = 120_000;

/** Moves the file whose path has the given ending out of an unpacked tree, and removes the tree. */
export async function keepOnly(tree: string, ending: string, target: string): Promise<void> {
  const files = await readdir(tree, { recursive: true });
  const found = files.find((file) => file === ending || file.endsWith(`/${ending}`));
  if (found === undefined) throw new EngineError("FETCH_FAILED", `the archive has no ${ending}`);
  await rename(path.join(tree, found), target);
  await rm(tree, { recursive: true, force: true });
}

export interface ArchiveRequest {
  /** A .tar.gz file. */
  readonly url: URL;
  readonly sha256Url?: URL;
  /** Ending of the executable's path in the archive. */
  readonly member: string;
  readonly executable: string;
}

/** Downloads a .tar.gz, verifies it against the publisher's SHA-256 if published, and keeps one of its files. */
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
