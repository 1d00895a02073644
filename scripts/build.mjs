// Builds dist/ from the TypeScript sources: each file as JavaScript, the types of what the package gives out to others
// (`exports` in package.json), the workflows as the one bundle that workers run, what the API's page needs of Swagger UI, and the
// dashboard.
// Does nothing, in some milliseconds, when dist/ is what the sources make; so whatever runs built code can call it first.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
/** Every top-level folder with TypeScript in it. */
const ROOMS = ["activities", "contracts", "lab", "scripts", "server", "src", "test", "workflows"];
/** What else changes what is built. */
const SETTINGS = [
  "package-lock.json",
  "scripts/build.mjs",
  "scripts/bundle.mjs",
  "tsconfig.build.json",
  "tsconfig.json",
  "tsconfig.exports.json",
];
/** What the compiler is asked for, one after the other. */
const PROJECTS = ["tsconfig.build.json", "tsconfig.exports.json"];
/** Everything of ours that the workflow bundle can hold; test/architecture keeps the rest out. */
const IN_BUNDLE = ["workflows", "src/domain", "src/messages"];
const STAMP = join(DIST, ".stamp");
const BUNDLE = join(DIST, "workflow-bundle.js");
const BUNDLE_STAMP = join(DIST, ".workflow-bundle-stamp");

/** What the dashboard is made of: its own sources, and of the service's the client and the types that it has. */
const WEB_SOURCES = ["src/client", "src/contract", "src/domain", "src/lib", "web"];
const WEB_SETTINGS = ["package-lock.json", "scripts/build-web.mjs", "tsconfig.json"];
const WEB_STAMP = join(DIST, ".web-stamp");

const REFERENCE = join(DIST, "reference");
const SWAGGER_UI = join(ROOT, "node_modules", "swagger-ui-dist");

const force = process.argv.includes("--force");
const sources = stampOf([...SETTINGS, ...ROOMS.flatMap((room) => filesIn(join(ROOT, room), ".ts"))]);
if (!existsSync(DIST))
  process.stderr.write("Building. The first time, `npm ci` takes 2 to 3 minutes in all.\n");
if (force || read(STAMP) !== sources) await build();
// What the dashboard is built with is made by what is built before.
if (!process.argv.includes("--without-web")) await buildPages();

async function build() {
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  if (!existsSync(compiler)) {
    // `npm ci --omit=dev` in a folder that was built elsewhere, or that will be.
    process.stderr.write("Nothing was built: the development dependencies are not installed.\n");
    return;
  }
  const began = performance.now();
  rmSync(STAMP, { force: true });
  removeOrphans();
  for (const project of PROJECTS) {
    const { status } = spawnSync(process.execPath, [compiler, "-p", project], {
      cwd: ROOT,
      stdio: "inherit",
    });
    if (status === 0) continue;
    process.stderr.write("The build failed: mend the errors above.\n");
    process.exit(1);
  }
  await bundleWorkflows();
  copyReference();
  writeFileSync(STAMP, sources);
  process.stderr.write(`built in ${((performance.now() - began) / 1_000).toFixed(1)} s\n`);
}

/** The dashboard, where what it is made of has changed. */
async function buildPages() {
  const files = WEB_SOURCES.flatMap((folder) =>
    filesIn(join(ROOT, folder), ".ts", ".tsx", ".css", ".html", ".json", ".svg"),
  );
  const stamp = stampOf([...WEB_SETTINGS, ...files]);
  if (!force && read(WEB_STAMP) === stamp && existsSync(join(DIST, "web"))) return;
  if (!existsSync(join(ROOT, "node_modules", "vite"))) return;
  const began = performance.now();
  rmSync(WEB_STAMP, { force: true });
  const { buildWeb } = await import("./build-web.mjs");
  if (!(await buildWeb())) {
    process.stderr.write("The build of the dashboard failed: mend the errors above.\n");
    process.exit(1);
  }
  writeFileSync(WEB_STAMP, stamp);
  process.stderr.write(`dashboard built in ${((performance.now() - began) / 1_000).toFixed(1)} s\n`);
}

/** What was built of a source that is gone: a test that was moved would run twice. */
function removeOrphans() {
  if (!existsSync(DIST)) return;
  for (const room of ROOMS) {
    for (const file of filesIn(join(DIST, room), ".d.ts", ".js", ".js.map")) {
      const path = relative(DIST, join(ROOT, file));
      const source = join(ROOT, path.replace(/\.(d\.ts|js|js\.map)$/, ".ts"));
      if (!existsSync(source)) rmSync(join(ROOT, file));
    }
  }
}

/** Makes the bundle where its sources have changed: it takes seconds of processor. A Node builtin or zod in it fails here. */
async function bundleWorkflows() {
  const inputs = IN_BUNDLE.flatMap((folder) => filesIn(join(DIST, folder), ".js"));
  const digest = createHash("sha256");
  for (const file of ["package-lock.json", "scripts/build.mjs"]) digest.update(read(join(ROOT, file)));
  for (const file of inputs) digest.update(`\n${file}\n`).update(read(join(ROOT, file)));
  const stamp = digest.digest("hex");
  if (!force && existsSync(BUNDLE) && read(BUNDLE_STAMP) === stamp) return;
  const { bundleWorkflowCode, DefaultLogger } = await import("@temporalio/worker");
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(DIST, "workflows", "index.js"),
    workflowInterceptorModules: [join(DIST, "workflows", "interceptors.js")],
    failureConverterPath: join(DIST, "src", "messages", "failure-converter.js"),
    preloadModules: domainModules(),
    logger: new DefaultLogger("WARN", ({ level, message }) => process.stderr.write(`${level} ${message}\n`)),
  });
  writeFileSync(BUNDLE, code);
  writeFileSync(BUNDLE_STAMP, stamp);
}

/**
 * Modules of the domain that workflows import. A worker evaluates them once instead of for each workflow, which
 * makes a start cheaper and a cached workflow smaller. They may remember what follows from their arguments, and no more.
 */
function domainModules() {
  const texts = filesIn(join(DIST, "workflows"), ".js").map((file) => read(join(ROOT, file)));
  const paths = texts.flatMap((text) => [...text.matchAll(/ from "\.\.\/(src\/domain\/[^"]+)"/g)]);
  return [...new Set(paths.map(([, path]) => join(DIST, path)))];
}

/** The API's page is served from the package: two files of Swagger UI, compressed once and for all, and their licences. */
function copyReference() {
  rmSync(REFERENCE, { recursive: true, force: true });
  mkdirSync(REFERENCE, { recursive: true });
  for (const file of ["swagger-ui-bundle.js", "swagger-ui.css"]) {
    writeFileSync(
      join(REFERENCE, `${file}.gz`),
      gzipSync(readFileSync(join(SWAGGER_UI, file)), { level: 9 }),
    );
  }
  for (const file of ["LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"]) {
    writeFileSync(join(REFERENCE, file), readFileSync(join(SWAGGER_UI, file)));
  }
}

/** Names, sizes and times of files, as one digest: reading them all would take longer. */
function stampOf(files) {
  const digest = createHash("sha256");
  for (const file of files) {
    const { mtimeMs, size } = statSync(join(ROOT, file));
    digest.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return digest.digest("hex");
}

/** Paths within the package, in a fixed order. */
function filesIn(folder, ...endings) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true })
    .filter((file) => endings.some((ending) => file.endsWith(ending)))
    .map((file) => relative(ROOT, join(folder, file)).split(sep).join("/"))
    .toSorted();
}

function read(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}
