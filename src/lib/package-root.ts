import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";

/** The package's own folder, in a checkout or an installed package: contains package.json and temporal-dev.yaml. */
export const PACKAGE_ROOT = nearestPackage(import.meta.dirname);

/** Returns the built JavaScript file of a source file, which is given by its path within the package. */
export const builtFile = (source: string): string =>
  join(PACKAGE_ROOT, "dist", source.replace(/\.ts$/, ".js"));

function nearestPackage(folder: string): string {
  if (existsSync(join(folder, "package.json"))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error("the package's folder holds no package.json");
  return nearestPackage(parent);
}

export const packageVersion = (): string =>
  packageFile.parse(JSON.parse(readFileSync(join(PACKAGE_ROOT, "package.json"), "utf8"))).version;

const packageFile = z.object({ version: z.string() });
