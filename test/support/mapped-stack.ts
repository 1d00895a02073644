import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

const PLACE = /((?:file:\/\/)?\/[^\s():]*\/dist\/[^\s():]*\.js):(\d+):(\d+)/g;
const payload = z.looseObject({ sources: z.array(z.string()), mappings: z.string() });

/**
 * A stack trace with the places in the TypeScript sources in place of those in what was built. Done for failures alone:
 * Node's own source maps would be looked up for every error that a service handles.
 */
export function mapped(stack: string): string {
  return stack.replaceAll(PLACE, (place, file: string, line: string, column: string) => {
    const path = file.startsWith("file:") ? fileURLToPath(file) : file;
    try {
      const map = payload.parse(JSON.parse(readFileSync(`${path}.map`, "utf8")));
      const found = new SourceMap({ ...EMPTY, ...map }).findEntry(Number(line) - 1, Number(column) - 1);
      if (!("originalSource" in found)) return place;
      const source = relative(PACKAGE_ROOT, join(dirname(path), found.originalSource));
      return `${source}:${String(found.originalLine + 1)}:${String(found.originalColumn + 1)}`;
    } catch {
      return place;
    }
  });
}

const EMPTY = {
  file: "",
  version: 3,
  sources: [],
  sourcesContent: [],
  names: [],
  mappings: "",
  sourceRoot: "",
};
