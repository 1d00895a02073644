import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/**
 * `node dist/lab/bench/share.js <folder> <part> …`: of the CPU profiles that `--profile` has left in a folder, how much of each
 * thread's busy time went into files whose path has one of the parts, and into what they called. `part!` counts a file's
 * own time alone, where what it calls is the work that it only measures.
 */

const profile = z.object({
  nodes: z.array(
    z.object({
      id: z.int(),
      callFrame: z.object({ functionName: z.string(), url: z.string() }),
      children: z.array(z.int()).default([]),
    }),
  ),
  samples: z.array(z.int()),
  timeDeltas: z.array(z.number()),
});
type Profile = z.output<typeof profile>;

const NOT_BUSY: ReadonlySet<string> = new Set(["(idle)", "(program)", "(root)"]);

const isIn = (stack: readonly string[], part: string): boolean =>
  part.endsWith("!") ? (stack[0] ?? "").includes(part.slice(0, -1)) : stack.some((url) => url.includes(part));

/** Microseconds of busy time, and by part. A sample counts for the first part that it belongs to. */
function sharesOf({ nodes, samples, timeDeltas }: Profile, parts: readonly string[]) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parentOf = new Map(
    nodes.flatMap(({ children, id }) => children.map((child) => [child, id] as const)),
  );
  const stackOf = (id: number): string[] => {
    const urls: string[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parentOf.get(at)) {
      urls.push(byId.get(at)?.callFrame.url ?? "");
    }
    return urls;
  };
  const partOfNode = new Map(
    nodes.map(({ id }) => {
      const stack = stackOf(id);
      return [id, parts.find((part) => isIn(stack, part)) ?? null];
    }),
  );
  const spent = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    if (NOT_BUSY.has(byId.get(id)?.callFrame.functionName ?? "")) continue;
    const us = timeDeltas[index] ?? 0;
    busy += us;
    const part = partOfNode.get(id) ?? null;
    if (part !== null) spent.set(part, (spent.get(part) ?? 0) + us);
  }
  return { busy, spent };
}

const [folder = ".", ...parts] = process.argv.slice(2);
for (const name of (await readdir(folder)).filter((each) => each.endsWith(".cpuprofile"))) {
  const { busy, spent } = sharesOf(
    profile.parse(JSON.parse(await readFile(join(folder, name), "utf8"))),
    parts,
  );
  process.stdout.write(`${name}: ${(busy / 1e6).toFixed(1)} s busy\n`);
  for (const part of parts) {
    process.stdout.write(`  ${part.padEnd(32)} ${((100 * (spent.get(part) ?? 0)) / busy).toFixed(2)} %\n`);
  }
}
