import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { allImports, type Import, importsOf, sourceFiles } from "./imports.ts";

/** What each room may import of ours, the longest matching room first. `types`: its types only. */
const MAY_IMPORT: readonly { room: string; own: readonly string[]; types?: readonly string[] }[] = [
  { room: "contracts/", own: [] },
  { room: "src/client/", own: ["src/client/"], types: ["src/contract/registry.ts", "src/domain/errors.ts"] },
  { room: "src/domain/", own: ["src/domain/"] },
  { room: "src/contract/", own: ["src/contract/", "src/domain/"] },
  { room: "src/messages/", own: ["src/messages/", "src/domain/"] },
  { room: "src/lib/", own: ["src/lib/"] },
  { room: "src/webhooks/", own: ["src/webhooks/", "src/domain/"] },
  { room: "src/engines/", own: ["src/engines/", "src/lib/"] },
  { room: "workflows/", own: ["workflows/", "src/domain/", "src/messages/"], types: ["activities/types.ts"] },
  {
    room: "activities/",
    own: ["activities/", "contracts/artifacts/", "src/domain/", "src/lib/", "src/messages/", "src/webhooks/"],
  },
  { room: "server/", own: ["server/", "activities/", "src/"] },
];

function violation({ from, own, to, typeOnly }: Import): string | null {
  if (!own) return null;
  const rule = MAY_IMPORT.find(({ room }) => from.startsWith(room));
  if (rule === undefined) return `${from} is in no room`;
  const allowed = rule.own.some((room) => to.startsWith(room));
  const allowedType = typeOnly && (rule.types ?? []).includes(to);
  return allowed || allowedType ? null : `${from} imports ${to}`;
}

describe("the dependency rule", () => {
  it("each layer of the product imports only from the layers below it", async () => {
    const imports = await allImports();
    expect(imports.length).to.be.greaterThan(300);
    expect(imports.map(violation).filter((found) => found !== null)).to.deep.equal([]);
  });

  it("is broken by the imports it forbids, so that it cannot pass by seeing nothing", () => {
    const broken = [
      importsOf("contracts/artifacts/x.ts", 'import { a } from "../../src/domain/money.ts";'),
      importsOf("src/domain/x.ts", 'import { a } from "../contract/records.ts";'),
      importsOf("workflows/x.ts", 'import { createActivities } from "../activities/index.ts";'),
      importsOf("workflows/x.ts", 'import { Activities } from "../activities/types.ts";'),
      importsOf("activities/x.ts", 'export { main } from "../server/run.ts";'),
      importsOf("src/engines/x.ts", 'const x = await import("../../server/run.ts");'),
    ].flat();
    expect(broken.map(violation).filter((found) => found === null)).to.deep.equal([]);
    const fine = importsOf("workflows/x.ts", 'import type { Activities } from "../activities/types.ts";');
    expect(fine.map(violation)).to.deep.equal([null]);
  });

  it("the domain uses no clock, no randomness, no environment and no input or output", async () => {
    const files = (await sourceFiles()).filter((file) => file.startsWith("src/domain/"));
    const found: string[] = [];
    for (const file of files) {
      const text = await readFile(file, "utf8");
      const impure = /Date\.now|new Date\(\)|Math\.random|process\.|randomUUID|from "node:/.exec(text);
      if (impure !== null) found.push(`${file}: ${impure[0]}`);
    }
    expect(found).to.deep.equal([]);
  });

  it("no two files import each other, directly or around corners", async () => {
    const imports = (await allImports()).filter(({ own, typeOnly }) => own && !typeOnly);
    const graph = new Map<string, string[]>();
    for (const { from, to } of imports) graph.set(from, [...(graph.get(from) ?? []), to]);
    expect(cycle(graph)).to.equal(null);
    expect(
      cycle(
        new Map([
          ["a", ["b"]],
          ["b", ["a"]],
        ]),
      ),
      "a cycle that is there is found",
    ).to.be.an("array");
  });

  it("no source file is over 450 lines, casts to any or silences the compiler", async () => {
    const found: string[] = [];
    for (const file of await sourceFiles()) {
      const text = await readFile(file, "utf8");
      if (text.split("\n").length > 450) found.push(`${file} is too long`);
      if (/\bas any\b|@ts-ignore|@ts-nocheck|@ts-expect-error/.test(text))
        found.push(`${file} gives up types`);
    }
    expect(found).to.deep.equal([]);
  });
});

function cycle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] | null {
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): readonly string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const next of graph.get(file) ?? []) {
      const found = walk(next, [...path, file]);
      if (found !== null) return found;
    }
    done.add(file);
    return null;
  };
  for (const file of graph.keys()) {
    const found = walk(file, []);
    if (found !== null) return found;
  }
  return null;
}
