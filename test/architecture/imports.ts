import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";

/** One import of a source file, of the project's own files or of a package. */
export interface Import {
  readonly from: string;
  /** A path within the project, or a package's name. */
  readonly to: string;
  readonly own: boolean;
  /** Nothing of it is left at run time. */
  readonly typeOnly: boolean;
}

/** The top-level folders that hold the product. */
export const ROOMS = ["contracts", "src", "workflows", "activities", "server"] as const;

const STATEMENT = /^(?:import|export)\s+(type\s+)?(?:([^;'"=(]*?)\s*from\s*)?["']([^"']+)["'];?/gm;
const DYNAMIC = /\bimport\(\s*["']([^"']+)["']\s*\)/g;

/** Holds programs as texts, with imports of their own, and imports nothing itself. */
const TEXTS_ALONE = "server/mcp/framework-snippets.ts";

export async function sourceFiles(): Promise<string[]> {
  const found = await Promise.all(
    ROOMS.map(async (room) => (await readdir(room, { recursive: true })).map((file) => join(room, file))),
  );
  return found.flat().filter((file) => file.endsWith(".ts"));
}

/** `import { type A, type B }` leaves nothing at run time either, under `verbatimModuleSyntax` only the import itself. */
const allTypes = (clause: string): boolean => {
  const named = /^\{([^}]*)\}$/.exec(clause.trim())?.[1];
  const names = named?.split(",").filter((name) => name.trim() !== "") ?? [];
  return names.length > 0 && names.every((name) => name.trim().startsWith("type "));
};

/** The imports and re-exports of a file's text. */
export function importsOf(from: string, text: string): Import[] {
  const statements = [...text.matchAll(STATEMENT)].map((match) =>
    toImport(from, match[3] ?? "", match[1] !== undefined || allTypes(match[2] ?? "")),
  );
  return [
    ...statements,
    ...[...text.matchAll(DYNAMIC)].map((match) => toImport(from, match[1] ?? "", false)),
  ];
}

function toImport(from: string, specifier: string, typeOnly: boolean): Import {
  const own = specifier.startsWith(".");
  return { from, to: own ? normalize(join(dirname(from), specifier)) : specifier, own, typeOnly };
}

export async function allImports(): Promise<Import[]> {
  const files = (await sourceFiles()).filter((file) => file !== TEXTS_ALONE);
  const each = await Promise.all(files.map(async (file) => importsOf(file, await readFile(file, "utf8"))));
  return each.flat();
}
