// Makes the bundle in dist/bundle, of what scripts/build.mjs has built: the programs below and the packages that they need as
// one file, and beside it what V8 compiles of that at a start. src/lib/bundle.ts starts programs from it, in a third of the
// time. It is this machine's own and no part of the package. Does nothing where it is there.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const FOLDER = join(DIST, "bundle");
const CURRENT = join(FOLDER, "current");
/** What may be started, by the path of its source. It runs when it is loaded, and awaits nothing at its top. */
const PROGRAMS = ["server/program", "test/restart/programs/crashing"];
/** What a start loads, each role something of it. */
const LOADED_AT_A_START = [
  "server/run",
  "server/engines",
  "server/roles",
  "server/worker",
  "server/service",
  "server/http/probes-app",
  "server/readiness",
  "server/admin/commands",
];
/** Native code, which is no JavaScript, and what the packages use only where it is installed. */
const OUTSIDE = [
  "@aws-sdk/*",
  "@mongodb-js/zstd",
  "@node-rs/argon2",
  "gcp-metadata",
  "kerberos",
  "mongodb-client-encryption",
  "snappy",
  "socks",
];
/** What bundles workflows: the service has them bundled. Used all the same, it fails. */
const UNUSED = ["memfs", "source-map-loader", "swc-loader", "unionfs", "webpack"];

/** Temporal's SDK names files of its own packages by where it lies itself: by their packages' names they are found from everywhere. */
const filesOfTheirOwn = {
  name: "files of their own",
  setup(build) {
    build.onLoad({ filter: /@temporalio[\\/]worker[\\/]lib[\\/].*\.js$/ }, ({ path }) => {
      const folder = relative(join(ROOT, "node_modules"), dirname(path)).split(sep).join("/");
      const named = (_all, file) => `require.resolve("${join(folder, file).split(sep).join("/")}")`;
      return {
        contents: readFileSync(path, "utf8").replaceAll(/require\.resolve\('(\.{1,2}\/[^']+)'\)/g, named),
      };
    });
    build.onLoad({ filter: /@temporalio[\\/]core-bridge[\\/]common\.js$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const contents = text.replace("__dirname", 'path.dirname(require.resolve("@temporalio/core-bridge"))');
      if (contents === text) throw new Error(`${path} no longer finds its native code by __dirname`);
      return { contents };
    });
    const unused = new RegExp(`^(${UNUSED.join("|")})$`);
    build.onResolve({ filter: unused }, ({ path }) => ({ path, namespace: "unused" }));
    build.onLoad({ filter: unused, namespace: "unused" }, () => ({ contents: "" }));
  },
};

const stamp = readFileSync(join(DIST, ".stamp"), "utf8");
if (process.argv.includes("--force") || !isCurrent()) await bundle();

function isCurrent() {
  if (!existsSync(CURRENT)) return false;
  const [of, name, v8] = readFileSync(CURRENT, "utf8").split("\n");
  return of === stamp && v8 === process.versions.v8 && existsSync(join(FOLDER, `${name}.cache`));
}

async function bundle() {
  const esbuild = await import("esbuild").catch(() => null);
  // `npm ci --omit=dev` in a folder that was built elsewhere: it starts module by module.
  if (esbuild === null) return;
  const began = performance.now();
  const text = await bundled(esbuild);
  const name = createHash("sha256").update(text).digest("hex").slice(0, 32);
  mkdirSync(FOLDER, { recursive: true });
  const file = join(FOLDER, `${name}.cjs`);
  write(file, text);
  write(join(FOLDER, `${name}.cache`), await compiled(file, text));
  // Last, and in one step: a program that starts meanwhile takes what is complete.
  write(CURRENT, [stamp, name, process.versions.v8].join("\n"));
  for (const other of readdirSync(FOLDER)) {
    if (other !== "current" && !other.startsWith(name)) rmSync(join(FOLDER, other), { force: true });
  }
  process.stderr.write(`bundled in ${((performance.now() - began) / 1_000).toFixed(1)} s\n`);
  // What was loaded may hold the process.
  process.exit();
}

function write(file, content) {
  const beside = `${file}.${process.pid}`;
  writeFileSync(beside, content);
  renameSync(beside, file);
}

function load(path) {
  return `() => import(${JSON.stringify(`./${path}.js`)})`;
}

/** The text of a function of `require`, the file and its folder, and the program that is to be started. */
async function bundled(esbuild) {
  const programs = PROGRAMS.map((path) => `${JSON.stringify(path)}: ${load(path)}`).join(", ");
  const loadedAtAStart = LOADED_AT_A_START.map(load).join(", ");
  const { outputFiles } = await esbuild.build({
    stdin: {
      contents: `
        const programs = { ${programs}, "": () => Promise.all([${loadedAtAStart}].map((each) => each())) };
        module.exports = programs[__program]();`,
      resolveDir: DIST,
    },
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    target: "node20",
    // What is imported by need is required: code that was compiled before can't import.
    supported: { "dynamic-import": false },
    // Errors, commands and metrics are told by the names of their classes.
    keepNames: true,
    // Without comments it is ASCII, which is read fastest; names stay, for who reads the stack of an error.
    charset: "ascii",
    legalComments: "none",
    minifyWhitespace: true,
    lineLimit: 160,
    external: OUTSIDE,
    define: { "import.meta.dirname": "__dirname", "import.meta.url": "__url" },
    banner: {
      js: '(function (require, __filename, __dirname, __program) { const module = { exports: {} }; let { exports } = module; const __url = require("node:url").pathToFileURL(__filename).href;',
    },
    footer: { js: "return module.exports; })" },
    plugins: [filesOfTheirOwn],
    logLevel: "error",
  });
  const [output] = outputFiles;
  if (output === undefined || outputFiles.length > 1) throw new Error("the bundle is not one file");
  // Regular expressions are left as they are, and mean the same with escapes.
  return output.text.replaceAll(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** V8's code of all that a start runs until it is loaded; uncalled functions are left to be compiled by need. */
async function compiled(filename, text) {
  const script = new Script(text, { filename });
  await script.runInThisContext()(createRequire(filename), filename, FOLDER, "");
  return script.createCachedData();
}
