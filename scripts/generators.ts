import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Command, Option } from "commander";
import { cacheFolder } from "../src/engines/cache.ts";
import { EngineError } from "../src/engines/errors.ts";
import { isExecutable, runTool } from "../src/engines/tools.ts";
import { PACKAGE_ROOT } from "../src/lib/package-root.ts";
import { credentialsFor } from "./fuzz/credentials.ts";
import { createOrganization, startService } from "./fuzz/service.ts";
import { type Generator, GENERATORS, type Line } from "./generators/generators.ts";

// `npm run generators`: clients of both OpenAPI documents by the generators that people use, compiled, and used for a first payment.

/** Time for one command, the largest of which compiles a client or fetches its dependencies. */
const COMMAND_TIMEOUT_MS = 900_000;
const DOCUMENTS = ["openapi.json", "openapi-3.0.json"] as const;
const STEPS = ["loads", "compiles", "pays"] as const;
const PROGRAMS = join(PACKAGE_ROOT, "scripts", "generators", "programs");

type Step = (typeof STEPS)[number];

interface Row {
  readonly generator: string;
  readonly document: string;
  /** Steps that were done; the next one failed for the reason. */
  readonly done: readonly Step[];
  readonly reason: string | null;
}

interface Flags {
  readonly keep: boolean;
  readonly only?: readonly string[];
}

const names = GENERATORS.map(({ name }) => name);
const { keep, only } = new Command("generators")
  .description(
    "Generates clients of both OpenAPI documents, compiles them, and has each make an agent's first payment.",
  )
  .addOption(new Option("--only <generators...>", "these alone").choices(names))
  .option("--keep", "leave the clients where they were generated", false)
  .parse()
  .opts<Flags>();

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const env = process.env;
const folder = await mkdtemp(join(tmpdir(), "spending-control-generators-"));
const service = await startService(join(folder, "data"));
const rows: Row[] = [];
try {
  const owner = await createOrganization(service);
  const { token } = await credentialsFor(service.baseUrl, owner, "organization key");
  for (const generator of GENERATORS.filter(({ name }) => only?.includes(name) ?? true)) {
    for (const document of DOCUMENTS) {
      const secrets = { BASE_URL: service.baseUrl, ORGANIZATION_KEY: token ?? "", TEAM_ID: owner.teamId };
      rows.push(await tried(generator, document, secrets));
      say(lineOf(rows.at(-1)));
    }
  }
} finally {
  await service.stop();
  if (!keep) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
say(`\n${lineOf()}`);
for (const row of rows) say(lineOf(row));
process.exit(rows.every(({ reason }) => reason === null) ? 0 : 1);

/** A row of the table; without one, its head. */
function lineOf(row?: Row): string {
  const cells = STEPS.map((step) => (row === undefined ? step : row.done.includes(step) ? "yes" : "no"));
  const [generator, document] = row === undefined ? ["generator", "document"] : [row.generator, row.document];
  const facts = [generator.padEnd(26), document.padEnd(18), ...cells.map((cell) => cell.padEnd(10))].join("");
  return `${facts}${row?.reason ?? ""}`.trimEnd();
}

async function tried(
  generator: Generator,
  document: string,
  secrets: Readonly<Record<string, string>>,
): Promise<Row> {
  const done: Step[] = [];
  const place = join(folder, `${generator.name.replaceAll(/[^a-z]+/gi, "-")}-${document}`);
  const row = { generator: generator.name, document, done };
  try {
    const tools = await installed(generator);
    await mkdir(place);
    await download(document, join(place, "document.json"));
    await all(generator.generate(tools), place);
    done.push("loads");
    const [source, name] = generator.program;
    await copyFile(join(PROGRAMS, source), join(place, name));
    await all(generator.compile(tools), place);
    done.push("compiles");
    const run = { ...secrets, RUN: `${generator.name}-${document}` };
    const status = (await one(generator.pay(tools), place, { ...env, ...run })).trim();
    if (status !== "approved") return { ...row, reason: `the payment is ${status}` };
    done.push("pays");
    return { ...row, reason: null };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { ...row, reason: error.message };
  }
}

/** The folder of the generator, fetched where it is not there yet. */
async function installed({ install, name, version }: Generator): Promise<string> {
  const tools = join(cacheFolder(env), `${name.replaceAll(/[^a-z]+/gi, "-")}-${version}`);
  const complete = join(tools, ".complete");
  if (await isExecutable(complete)) return tools;
  say(`${name} ${version}: being installed`);
  await rm(tools, { recursive: true, force: true });
  await mkdir(tools, { recursive: true });
  await all(install(tools), tools);
  await writeFile(complete, "", { mode: 0o755 });
  return tools;
}

async function download(document: string, file: string): Promise<void> {
  const answer = await fetch(`${service.baseUrl}/v1/${document}`);
  if (!answer.ok) throw new Error(`${document} was answered ${String(answer.status)}`);
  await writeFile(file, await answer.text());
}

async function all(lines: readonly Line[], cwd: string): Promise<void> {
  for (const line of lines) await one(line, cwd, env);
}

function one([command, ...args]: Line, cwd: string, given: NodeJS.ProcessEnv): Promise<string> {
  const file = command.includes("/") ? resolve(cwd, command) : command;
  return runTool(file, args, { env: given, timeoutMs: COMMAND_TIMEOUT_MS, cwd });
}
