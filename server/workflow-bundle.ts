import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from "@temporalio/worker";
import { cacheFolder } from "../src/engines/cache.ts";
import type { Logger } from "./logger.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const WORKFLOWS = join(ROOT, "workflows", "index.ts");
/** Everything of ours that a bundle can hold; test/architecture keeps the rest out. What it holds of others, the lock says. */
const SOURCES = ["workflows", "src/domain", "src/messages"] as const;
const LOCK = "package-lock.json";

/** Bundles that are kept; an older one is made again when somebody goes back to its sources. */
const KEPT_MAX = 10;

let bundle: Promise<WorkflowBundleWithSourceMap> | null = null;

/**
 * Bundles the workflows, once per process, and for the same sources once per machine: making one takes seconds of
 * processor, and a worker that comes back after a crash should not. A Node builtin or zod in them fails here.
 */
export const bundleWorkflows = (logger: Logger): Promise<WorkflowBundleWithSourceMap> =>
  (bundle ??= keptOrMade(logger, process.env));

/** The same, from the cache folder that the environment names. */
export async function keptOrMade(
  logger: Logger,
  env: NodeJS.ProcessEnv,
): Promise<WorkflowBundleWithSourceMap> {
  const folder = join(cacheFolder(env), "workflow-bundles");
  const file = join(folder, `${await digestOfSources()}.js`);
  const kept = codeOf(await readFile(file, "utf8").catch(() => ""));
  if (kept !== null) return withoutMap(kept);
  const { code } = await bundleWorkflowCode({
    workflowsPath: WORKFLOWS,
    logger: new DefaultLogger("WARN", ({ message }) => logger.warn({ part: "bundle" }, message)),
  });
  // Without it the next process makes one again.
  await keep(folder, file, code).catch((err: unknown) => logger.debug({ err }, "the bundle was not kept"));
  return withoutMap(code);
}

/** The map of sources stands in the code; the SDK asks for a field that it does not use. */
const withoutMap = (code: string): WorkflowBundleWithSourceMap => ({ code, sourceMap: "" });

/** Names the sources with their paths, which stand in stack traces: two checkouts have a bundle each. */
async function digestOfSources(): Promise<string> {
  const digest = createHash("sha256").update(ROOT).update(process.version);
  const files = (await Promise.all(SOURCES.map(filesIn))).flat().toSorted();
  for (const file of [join(ROOT, LOCK), ...files]) {
    const content = await readFile(file).catch(() => Buffer.alloc(0));
    digest.update(`\n${relative(ROOT, file)} ${String(content.length)}\n`).update(content);
  }
  return digest.digest("hex");
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The first line says what the rest must be: a machine that lost its power may leave half of a file. */
const signed = (code: string): string => `// ${sha256(code)}\n${code}`;

function codeOf(text: string): string | null {
  const [, digest, code] = /^\/\/ ([0-9a-f]{64})\n([^]*)$/.exec(text) ?? [];
  return code !== undefined && sha256(code) === digest ? code : null;
}

async function filesIn(folder: string): Promise<string[]> {
  const found = await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function keep(folder: string, file: string, code: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomUUID()}`;
  await writeFile(temporary, signed(code), { mode: 0o600 });
  await rename(temporary, file);
  const names = await readdir(folder);
  const aged = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(folder, name))).mtimeMs })),
  );
  const old = aged.toSorted((one, other) => other.at - one.at).slice(KEPT_MAX);
  await Promise.all(old.map(({ name }) => rm(join(folder, name), { force: true })));
}
