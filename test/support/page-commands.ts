import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

/** Lines of the first block of bash after a text of a page, without comments: what an operator pastes. */
export async function pageCommands(page: string, after: string): Promise<readonly string[]> {
  const text = await readFile(join(PACKAGE_ROOT, page), "utf8");
  const [, rest] = text.split(after, 2);
  const [, block] = /^```bash\n([\s\S]*?)^```/m.exec(rest ?? "") ?? [];
  if (block === undefined) throw new Error(`${page} has no commands after "${after}"`);
  const lines = block.split("\n").map((line) => line.replace(/(^|\s+)#.*$/, ""));
  return lines.filter((line) => line !== "");
}
