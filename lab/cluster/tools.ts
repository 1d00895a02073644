import { execFile } from "node:child_process";
import { access, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../src/engines/cache.ts";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import { withTicker } from "../../src/engines/progress.ts";
import { resolveContext, resolveEngine } from "../../src/engines/resolver.ts";
import { findOnPath, isExecutable } from "../../src/engines/tools.ts";

const run = promisify(execFile);

const TEMPORAL_VERSION = "1.29.1";
const TEMPORAL_MODULE = "go.temporal.io/server";
/** Two cores compile it in five minutes; it is kept. */
const BUILD_MS = 1_800_000;

/** Programs of a cluster. */
export interface Tools {
  readonly mongod: string;
  readonly initdb: string;
  readonly postgres: string;
  readonly haproxy: string;
  readonly temporal: string;
  /** Temporal's own tool for its databases, and the folder of the schemas that it applies. */
  readonly temporalSql: string;
  readonly temporalSchemas: string;
  /** Command and arguments before a program that refuses to run as root. */
  readonly unprivileged: readonly string[];
}

/** Finds the programs, and compiles Temporal's server at the first time. Throws with the command that installs what is missing. */
export async function findTools(env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<Tools> {
  const mongod = await resolveEngine(MONGOD, resolveContext(env, say));
  if (mongod.kind === "address") throw new Error("MONGODB_URI is set; unset it: a cluster has its own");
  const [initdb, postgres, haproxy] = await Promise.all([
    postgresTool("initdb", env),
    postgresTool("postgres", env),
    debian("haproxy", [join("/usr/sbin", "haproxy")], env),
  ]);
  const { folder, schemas } = await temporalTools(env, say);
  return {
    mongod: mongod.path,
    initdb,
    postgres,
    haproxy,
    temporal: join(folder, "server"),
    temporalSql: join(folder, "sql"),
    temporalSchemas: schemas,
    unprivileged: await unprivileged(env),
  };
}

async function postgresTool(name: string, env: NodeJS.ProcessEnv): Promise<string> {
  const root = "/usr/lib/postgresql";
  const versions = await readdir(root).catch(() => []);
  const places = versions.toReversed().map((version) => join(root, version, "bin", name));
  return debian("postgresql", places, env, name);
}

/** A program of a Debian package, on PATH or in its usual place. */
async function debian(
  pack: string,
  places: readonly string[],
  env: NodeJS.ProcessEnv,
  name = pack,
): Promise<string> {
  const found = await findOnPath(name, env);
  if (found !== null) return found;
  for (const place of places) if (await isExecutable(place)) return place;
  throw new Error(`${name} is missing; install it with \`apt-get install ${pack}\``);
}

/** PostgreSQL refuses to run as root. */
async function unprivileged(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [];
  const setpriv = await findOnPath("setpriv", env);
  if (setpriv === null) throw new Error("setpriv is missing; run this as another user than root");
  return [setpriv, "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"];
}

/** The setting by which Temporal's clock is set forward, and the statement in Go's library that heeds it. */
export const TEMPORAL_CLOCK = "LAB_CLOCK_OFFSET_SECONDS";
const GO_CLOCK = "sec, nsec, mono := runtimeNow()";
const GO_CLOCK_SET = `${GO_CLOCK}\n\tsec += labClockOffset`;
/** Go programs read the clock without the C library, so no library that is loaded before it can set theirs. */
const GO_OFFSET = `package time

import "syscall"

var labClockOffset = func() int64 {
	text, _ := syscall.Getenv("${TEMPORAL_CLOCK}")
	seconds := int64(0)
	for _, digit := range []byte(text) {
		seconds = 10*seconds + int64(digit-'0')
	}
	return seconds
}()
`;

/** Writes Go's package of the time with a clock that can be set; returns the option that compiles with it. */
async function withClock(go: string, folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const root = join((await run(go, ["env", "GOROOT"], { env })).stdout.trim(), "src", "time");
  const text = await readFile(join(root, "time.go"), "utf8");
  if (!text.includes(GO_CLOCK)) throw new Error("this version of Go reads the clock in another way");
  const [own, offset, overlay] = [
    join(folder, "time.go"),
    join(folder, "offset.go"),
    join(folder, "overlay.json"),
  ];
  await writeFile(own, text.replace(GO_CLOCK, GO_CLOCK_SET));
  await writeFile(offset, GO_OFFSET);
  const Replace = { [join(root, "time.go")]: own, [join(root, "lab_offset.go")]: offset };
  await writeFile(overlay, JSON.stringify({ Replace }));
  return `-overlay=${overlay}`;
}

async function temporalTools(
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<{ readonly folder: string; readonly schemas: string }> {
  const go = await findOnPath("go", env);
  if (go === null) throw new Error("go is missing; install Go 1.24 or newer from go.dev");
  const folder = join(cacheFolder(env), `temporal-server-${TEMPORAL_VERSION}-clock`);
  await mkdir(folder, { recursive: true });
  for (const [file, pack] of [
    ["server", "cmd/server"],
    ["sql", "cmd/tools/sql"],
  ] as const) {
    if (await isExecutable(join(folder, file))) continue;
    const overlay = await withClock(go, folder, env);
    await withTicker(say, `temporal ${TEMPORAL_VERSION}, ${file}: compiling`, () =>
      run(go, ["install", overlay, `${TEMPORAL_MODULE}/${pack}@v${TEMPORAL_VERSION}`], {
        cwd: folder,
        env: { ...env, GOBIN: folder, GOFLAGS: "-p=2" },
        timeout: BUILD_MS,
      }),
    );
  }
  const modules = (await run(go, ["env", "GOMODCACHE"], { env })).stdout.trim();
  const schemas = join(modules, `${TEMPORAL_MODULE}@v${TEMPORAL_VERSION}`, "schema", "postgresql", "v12");
  await access(schemas);
  return { folder, schemas };
}
