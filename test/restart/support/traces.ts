import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { chunksOf } from "../../support/secrets.ts";

/** The kinds of files that a service leaves on a disk. */
export type Kind = "journal" | "tables" | "temporal" | "logs" | "delivery keys" | "others";

function kindOf(file: string): Kind {
  if (file.startsWith("mongodb/journal/")) return "journal";
  if (file.startsWith("mongodb/")) return "tables";
  if (file.startsWith("temporal")) return "temporal";
  if (file.startsWith("logs/")) return "logs";
  return file.startsWith("key-delivery/") ? "delivery keys" : "others";
}

/** In which kinds of files below the folder each of the values lies, as bytes. */
export async function tracesOf(
  folder: string,
  values: readonly string[],
): Promise<ReadonlyMap<string, ReadonlySet<Kind>>> {
  const traces = new Map(values.map((value) => [value, new Set<Kind>()]));
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const kind = kindOf(relative(folder, path));
    for await (const bytes of chunksIfThere(path)) {
      for (const [value, kinds] of traces) if (bytes.includes(value, 0, "latin1")) kinds.add(kind);
    }
  }
  return traces;
}

/** A running service's files come and go. */
async function* chunksIfThere(path: string): AsyncGenerator<Buffer> {
  try {
    yield* chunksOf(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
}

/** Characters cut off at either end, which depend on the neighbours. */
const EDGE = 4;

/** The ways in which bytes could have been written down: as they are, in hex, in base64 wherever they begin in it. */
export function formsOf(bytes: Buffer): readonly string[] {
  const base64 = [0, 1, 2].flatMap((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    return (["base64", "base64url"] as const).map((form) => shifted.toString(form).slice(EDGE, -EDGE));
  });
  return [...new Set([bytes.toString("latin1"), bytes.toString("hex"), ...base64])];
}
