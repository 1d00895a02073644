import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Import, importsOf, ROOMS } from "../architecture/imports.ts";

/** Finds the tests that a change can break, nearest first: by imports, from the test to what has changed. */

const git = async (...args: readonly string[]): Promise<string[]> => {
  const { stdout } = await promisify(execFile)("git", [...args]);
  return stdout.split("\n").filter((line) => line !== "");
};

/** Files that differ from a revision; by default from the last commit or, where nothing does, from the one before it. */
export async function changedFiles(revision?: string): Promise<readonly string[]> {
  const untracked = await git("ls-files", "--others", "--exclude-standard");
  const since = async (of: string) => [...(await git("diff", "--name-only", "--relative", of)), ...untracked];
  if (revision !== undefined) return since(revision);
  const uncommitted = await since("HEAD");
  return uncommitted.length > 0 ? uncommitted : since("HEAD~1");
}

type Edge = Pick<Import, "from" | "to">;

/** Folders whose files are read by a file that does not import them. */
const READ_BY: readonly (readonly [folder: string, reader: string])[] = [
  ["workflows/", "server/workflow-bundle.ts"],
  ["web/", "test/support/dashboard.ts"],
  ["docs/", "test/architecture/documents.test.ts"],
];

/** A program or a worker that a test starts by its path. */
const NAMED = /["'`]((?:lab|scripts|server|test)\/[\w./-]+\.ts)["'`]/g;

export async function allEdges(changed: readonly string[]): Promise<readonly Edge[]> {
  const rooms = [...ROOMS, "lab", "scripts", "test"].map(async (room) =>
    (await readdir(room, { recursive: true })).map((file) => join(room, file)),
  );
  const files = (await Promise.all(rooms)).flat().filter((file) => file.endsWith(".ts"));
  const edges = files.map(async (from) => {
    const text = await readFile(from, "utf8");
    const named = [...text.matchAll(NAMED)].map(([, to = ""]) => ({ from, to }));
    // The compiler holds what depends on a type alone.
    return [...importsOf(from, text).filter(({ own, typeOnly }) => own && !typeOnly), ...named];
  });
  const read = changed.flatMap((to) =>
    READ_BY.filter(([folder]) => to.startsWith(folder)).map(([, from]) => ({ from, to })),
  );
  return [...(await Promise.all(edges)).flat(), ...read];
}

/** Imports that a test of the changed file's own subject counts as nearer: `test/agents` for `server/handlers/agents.ts`. */
const SUBJECT_NEARER = 3;

/** Those of these tests that reach a changed file, nearest first. */
export function nearestFirst(
  tests: readonly string[],
  changed: readonly string[],
  edges: readonly Edge[],
): readonly string[] {
  const distances = distancesFrom(changed, edges);
  const subjects = new Set(changed.flatMap((file) => file.replace(/\.\w+$/, "").split("/")));
  const rank = (test: string): number => {
    const distance = distances.get(test) ?? Infinity;
    const isOfSubject = subjects.has(test.split("/")[1] ?? "");
    // Those that import the file itself stay before all others.
    return isOfSubject && distance > 1 ? Math.max(2, distance - SUBJECT_NEARER) : distance;
  };
  const ranked = tests.map((test) => ({ test, rank: rank(test) }));
  return ranked
    .filter(({ rank: of }) => of < Infinity)
    .toSorted((left, right) => left.rank - right.rank)
    .map(({ test }) => test);
}

/** Number of imports between each file and the nearest of these, for all files that reach one. */
function distancesFrom(files: readonly string[], edges: readonly Edge[]): ReadonlyMap<string, number> {
  const importers = new Map<string, string[]>();
  for (const { from, to } of edges) importers.set(to, [...(importers.get(to) ?? []), from]);
  const distances = new Map(files.map((file) => [file, 0]));
  const queue = [...files];
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    const distance = (distances.get(file) ?? 0) + 1;
    for (const from of importers.get(file) ?? []) {
      if (distances.has(from)) continue;
      distances.set(from, distance);
      queue.push(from);
    }
  }
  return distances;
}
