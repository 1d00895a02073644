import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { build } from "esbuild";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";

const run = promisify(execFile);

const HEAD = [
  'import { createClient, valueOf } from "agent-spending-control/client";',
  'const client = createClient({ baseUrl: "http://localhost", credential: { type: "bearer", token: "t" } });',
  'const agent = { name: "A", teamId: "1", budgetCents: 1 };',
];

const COMPILE: readonly string[] = [
  "await client.createAgent({ body: agent });",
  'await client.createAgent({ body: { ...agent, scopes: ["get_budget"], dailySpendLimitCents: null } });',
  "await client.listAgents();",
  'valueOf(await client.getAgent({ id: "1" })).agent.budgetCents.toFixed();',
  'for await (const { merchant } of client.each("listTransactions", { query: { range: "7d" } })) merchant.trim();',
  "await (await client.exportTransactions({ query: { bom: true } }).then(valueOf)).text();",
  'await client.decideApprovals({ body: { decisions: [{ id: "1", decision: "approve" }] } });',
  'const answer = await client.getMe(); if (!answer.ok && answer.refused.code === "RATE_LIMITED") answer.refused.message;',
];

/** Requests and uses of answers, each wrong in one way. */
const MUST_NOT_COMPILE: readonly (readonly [why: string, code: string])[] = [
  ["a required field is missing", 'await client.createAgent({ body: { name: "A", teamId: "1" } });'],
  ["a misspelt field", "await client.createAgent({ body: { ...agent, budgetCent: 1 } });"],
  ["text for an amount", 'await client.createAgent({ body: { ...agent, budgetCents: "1" } });'],
  ["a tool that there is not", 'await client.createAgent({ body: { ...agent, scopes: ["pay"] } });'],
  ["the path's id is missing", "await client.getAgent({});"],
  ["no input where one is needed", "await client.getAgent();"],
  ["a parameter that there is not", "await client.listAgents({ query: { team: 1 } });"],
  ["a state that there is not", 'await client.listAgents({ query: { state: "asleep" } });'],
  ["an operation that there is not", "await client.payAgent();"],
  ["null for what has no null", "await client.createAgent({ body: { ...agent, budgetCents: null } });"],
  ["a refusal taken for a success", 'const { value } = await client.getAgent({ id: "1" }); value;'],
  ["a field that no answer has", 'valueOf(await client.getAgent({ id: "1" })).agent.balance;'],
  ["an amount taken for text", 'valueOf(await client.getAgent({ id: "1" })).agent.budgetCents.trim();'],
  ["records of what is no list", 'for await (const each of client.each("getAgent", {})) each;'],
  [
    "a decision that there is not",
    'await client.decideApprovals({ body: { decisions: [{ id: "1", decision: "maybe" }] } });',
  ],
  ["a code that there is not", 'const a = await client.getMe(); if (!a.ok) a.refused.code === "NO";'],
];

describe("the exported client", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-client-"));
    await mkdir(join(folder, "node_modules"));
    await symlink(PACKAGE_ROOT, join(folder, "node_modules", "agent-spending-control"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** The lines of a program that a strict compiler refuses, counted from 0 behind the head. */
  async function refusedLines(lines: readonly string[]): Promise<readonly number[]> {
    // Each in a block of its own, as their names are alike.
    const text = [...HEAD, ...lines.map((line) => `{ ${line} }`), "export {};"].join("\n");
    await writeFile(join(folder, "use.ts"), text);
    const tsc = join(PACKAGE_ROOT, "node_modules", "typescript", "bin", "tsc");
    const options = [
      "--noEmit",
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--lib",
      "es2023,dom",
    ];
    const told = await run(process.execPath, [tsc, ...options, "use.ts"], { cwd: folder }).then(
      () => "",
      (error: unknown) => String(Object(error).stdout),
    );
    const found = [...told.matchAll(/^use\.ts\((\d+),/gm)].map(([, line]) => Number(line) - 1 - HEAD.length);
    return [...new Set(found)].toSorted((a, b) => a - b);
  }

  it("takes what the service takes; what it would refuse by its form does not compile", async () => {
    const refused = await refusedLines([...COMPILE, ...MUST_NOT_COMPILE.map(([, code]) => code)]);
    const wrongly = refused.filter((line) => line < COMPILE.length);
    expect(wrongly.map((line) => COMPILE[line] ?? "its declarations")).to.deep.equal([]);
    const compiled = MUST_NOT_COMPILE.filter((_row, index) => !refused.includes(COMPILE.length + index));
    expect(compiled.map(([why]) => why)).to.deep.equal([]);
  });

  it("runs in Node and in browsers: nothing in it is Node's", async () => {
    const source =
      'import { createClient } from "agent-spending-control/client"; console.log(typeof createClient);';
    await writeFile(join(folder, "use.js"), source);
    const { stdout } = await run(process.execPath, ["use.js"], { cwd: folder });
    expect(stdout.trim()).to.equal("function");
    const { outputFiles } = await build({
      entryPoints: [join(folder, "use.js")],
      bundle: true,
      platform: "browser",
      format: "esm",
      write: false,
    });
    expect(outputFiles[0]?.text)
      .to.include("/v1/agents")
      .and.not.match(/require\(|from "node:/);
  });
});
