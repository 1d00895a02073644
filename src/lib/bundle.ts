import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Script } from "node:vm";

/**
 * Starts programs from the bundle: one file with all their modules and packages, together with the code that V8
 * compiled from it earlier. Reading, compiling and linking some two thousand modules is most of a start's cost.
 * `scripts/bundle.mjs` makes the bundle in a checkout; an installed package has none.
 */
const DIST = join(import.meta.dirname, "..", "..");

/** An opened bundle, whose code has not run. */
export interface Bundle {
  readonly file: string;
  readonly script: Script;
}

/**
 * Opens the bundle of a built folder; null if there is no complete one, or it is of other sources. V8 rejects code
 * compiled by another V8 or from another text, and compiles it again.
 */
export function openBundle(dist = DIST): Bundle | null {
  try {
    const [of, name = ""] = readFileSync(join(dist, "bundle", "current"), "utf8").split("\n");
    if (of !== readFileSync(join(dist, ".stamp"), "utf8")) return null;
    const file = join(dist, "bundle", `${name}.cjs`);
    // The bundle is ASCII, which is read fastest this way.
    const text = readFileSync(file, "latin1");
    const cachedData = readFileSync(join(dist, "bundle", `${name}.cache`));
    return { file, script: new Script(text, { filename: file, cachedData }) };
  } catch {
    return null;
  }
}

/**
 * Starts a program by its source's path without extension. False, having started nothing, without a matching bundle.
 */
export function startBundled(program: string): boolean {
  const bundle = openBundle();
  if (bundle === null) return false;
  const { file, script } = bundle;
  const run: unknown = script.runInThisContext();
  if (typeof run !== "function") throw new Error(`${file} is no bundle`);
  Reflect.apply(run, undefined, [createRequire(file), file, dirname(file), program]);
  return true;
}
