import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Script } from "node:vm";

/**
 * Starts programs out of the bundle: all that they and the packages beneath are made of as one file, with the code that V8
 * has compiled of it before. Reading, compiling and linking some two thousand modules is most of what a start costs.
 *
 * The bundle is `scripts/bundle.mjs`'s, in a checkout; an installed package has none.
 */
const DIST = join(import.meta.dirname, "..", "..");

/** A bundle that was opened; its code has not run. */
export interface Bundle {
  readonly file: string;
  readonly script: Script;
}

/**
 * The bundle in a built folder; null where there is none that is whole, or one of other sources. What was compiled by another V8
 * or of another text is refused by V8, and compiled again.
 */
export function openBundle(dist = DIST): Bundle | null {
  try {
    const [of, name = ""] = readFileSync(join(dist, "bundle", "current"), "utf8").split("\n");
    if (of !== readFileSync(join(dist, ".stamp"), "utf8")) return null;
    const file = join(dist, "bundle", `${name}.cjs`);
    // The bundle is written in ASCII, which is read fastest like this.
    const text = readFileSync(file, "latin1");
    const cachedData = readFileSync(join(dist, "bundle", `${name}.cache`));
    return { file, script: new Script(text, { filename: file, cachedData }) };
  } catch {
    return null;
  }
}

/** Starts a program by its source's path without its ending. False: nothing was started, for there is no bundle of these sources. */
export function startBundled(program: string): boolean {
  const bundle = openBundle();
  if (bundle === null) return false;
  const { file, script } = bundle;
  const run: unknown = script.runInThisContext();
  if (typeof run !== "function") throw new Error(`${file} is no bundle`);
  Reflect.apply(run, undefined, [createRequire(file), file, dirname(file), program]);
  return true;
}
