import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { allImports, type Import, importsOf, sourceFiles } from "./imports.ts";

interface Rule {
  readonly room: string;
  /** What a file of the room may import of ours, besides what is in the room itself. */
  readonly own: readonly string[];
  /** What it may import the types of, besides. */
  readonly types?: readonly string[];
}

const rooms = (...names: readonly string[]): string[] => names.map((name) => `src/${name}/`);

/** A room with effects: it may know the types of those above it, which hand it what it works with. */
const service = (name: string, ...below: readonly string[]): Rule => ({
  room: `src/${name}/`,
  own: rooms("domain", "lib", ...below),
  types: ["src/", "activities/types.ts", "server/handlers/types.ts"],
});

/** The longest matching room comes first. */
const MAY_IMPORT: readonly Rule[] = [
  { room: "contracts/", own: [] },
  { room: "src/domain/", own: [] },
  { room: "src/lib/", own: [] },
  { room: "src/contract/", own: rooms("domain") },
  { room: "src/messages/", own: rooms("domain") },
  { room: "src/client/", own: [], types: ["src/contract/registry.ts", "src/domain/errors.ts"] },
  { room: "src/engines/", own: rooms("lib") },
  { room: "src/webhooks/verify-webhook.ts", own: [] },
  { room: "src/webhooks/signature.ts", own: ["src/webhooks/verify-webhook.ts"] },
  service("secrets", "store"),
  service("metrics"),
  service("store"),
  service("temporal", "messages", "secrets"),
  service("actors", "messages"),
  service("audit", "contract", "store"),
  service("mail", "store"),
  service("identity", "audit", "contract", "secrets", "store"),
  service("limits", "contract", "identity"),
  service("payments", "actors", "messages", "store"),
  { ...service("chain", "store"), own: [...rooms("lib", "store"), "contracts/artifacts/"] },
  service("rails", "chain", "payments", "store"),
  service("billing", "audit", "payments", "rails", "store"),
  service("agents", "audit", "secrets", "store"),
  service("containers", "actors", "audit", "contract", "secrets", "store"),
  service("simulations", "actors", "store"),
  service("views", "contract"),
  service("changes", "contract", "store", "views"),
  service("webhooks", "audit", "contract", "identity", "store", "views"),
  { room: "workflows/", own: rooms("domain", "messages"), types: ["activities/types.ts"] },
  { room: "activities/", own: ["src/"] },
  { room: "server/", own: ["activities/", "src/"] },
];

function violation({ from, own, to, typeOnly }: Import): string | null {
  if (!own) return null;
  const rule = MAY_IMPORT.find(({ room }) => from.startsWith(room));
  if (rule === undefined) return `${from} is in no room`;
  const allowed = [rule.room, ...rule.own].some((room) => to.startsWith(room));
  const allowedType = typeOnly && (rule.types ?? []).some((room) => to.startsWith(room));
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
      importsOf("src/store/x.ts", 'import { Sessions } from "../identity/sessions.ts";'),
      importsOf("src/identity/x.ts", 'import type { Config } from "../../server/config.ts";'),
      importsOf("src/loose.ts", 'import { ok } from "./domain/result.ts";'),
      importsOf("src/engines/x.ts", 'const x = await import("../../server/run.ts");'),
    ].flat();
    expect(broken.map(violation).filter((found) => found === null)).to.deep.equal([]);
    const fine = [
      importsOf("workflows/x.ts", 'import type { Activities } from "../activities/types.ts";'),
      importsOf("src/store/x.ts", 'import type { Sessions } from "../identity/sessions.ts";'),
    ].flat();
    expect(fine.map(violation)).to.deep.equal([null, null]);
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

  it("no file names a rail but where rails are registered, and their own", async () => {
    const registered =
      /^(src\/domain\/ledger\/payment\.ts|src\/contract\/|src\/rails\/|src\/client\/|web\/|contracts\/)/;
    const named =
      /"(?:card|wallet)"|\bWALLET_RAIL\b|\brails\.(?:card|wallet)\b|"create_(?:card|wallet)_payment"/;
    const texts = await Promise.all(
      (await sourceFiles())
        .filter((file) => !registered.test(file))
        .map(async (file) => ({ file, text: await readFile(file, "utf8") })),
    );
    const naming = texts.filter(({ text }) => named.test(text)).map(({ file }) => file);
    expect(naming.toSorted()).to.deep.equal([
      // An agent's own money, its limits and its purchases are on the wallets' rail.
      "server/handlers/agent-wallet.ts",
      "server/handlers/own-budget.ts",
      "server/handlers/purchases.ts",
      // The field of an agent's record.
      "src/agents/agent-proofs.ts",
      "src/secrets/access-proofs.ts",
      "src/store/documents.ts",
      "src/views/views.ts",
      // Queues of the activities that set a wallet's limit and give up the right to spend from it.
      "workflows/agent.ts",
      "workflows/ledger.ts",
    ]);
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
