import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, Option } from "commander";
import { credentialsFor } from "./fuzz/credentials.ts";
import { createOrganization, startService } from "./fuzz/service.ts";
import { folderName, say } from "./interop/commands.ts";
import { FRAMEWORKS } from "./interop/frameworks.ts";
import { GENERATORS } from "./interop/generators.ts";
import type { Scene } from "./interop/scene.ts";
import { CONNECTING_CLIENTS, tryAddress } from "./interop/try-address.ts";
import { tryFramework } from "./interop/try-framework.ts";
import { DOCUMENTS, tryGenerator } from "./interop/try-generator.ts";

// `npm run interop`: other people's programs against the service. MCP clients connect by its address alone, generators make clients of
// its OpenAPI documents, and agent frameworks run the snippets that it shows; each makes a first payment.

/** One program's attempt, which reports the steps that are done and throws at the next. */
interface Attempt {
  readonly name: string;
  readonly version: string;
  /** The part of the service that the program uses. */
  readonly uses: string;
  readonly run: (scene: Scene, place: string, done: (step: string) => void) => Promise<void>;
}

const ATTEMPTS: readonly Attempt[] = [
  ...CONNECTING_CLIENTS.map((client) => ({
    name: client.name,
    version: client.version,
    uses: "address alone",
    run: (scene: Scene, place: string, done: (step: string) => void) =>
      tryAddress(scene, client, place, done),
  })),
  ...GENERATORS.flatMap((generator) =>
    DOCUMENTS.map((document) => ({
      name: generator.name,
      version: generator.version,
      uses: document,
      run: (scene: Scene, place: string, done: (step: string) => void) =>
        tryGenerator(scene, generator, document, place, done),
    })),
  ),
  ...FRAMEWORKS.map((framework) => ({
    name: framework.name,
    version: framework.version,
    uses: "snippet",
    run: (scene: Scene, place: string, done: (step: string) => void) =>
      tryFramework(scene, framework, place, done),
  })),
];

interface Flags {
  readonly keep: boolean;
  readonly only?: readonly string[];
}

const names = [...new Set(ATTEMPTS.map(({ name }) => name))];
const { keep, only } = new Command("interop")
  .description("Has generated clients and agent frameworks make a first payment, and prints a table.")
  .addOption(new Option("--only <programs...>", "these alone").choices(names))
  .option("--keep", "leave the folders of the attempts", false)
  .parse()
  .opts<Flags>();

const folder = await mkdtemp(join(tmpdir(), "spending-control-interop-"));
const service = await startService(join(folder, "data"));
const rows: string[] = [];
let haveAllPassed = true;
try {
  const owner = await createOrganization(service);
  const { token } = await credentialsFor(service.baseUrl, owner, "organization key");
  const { baseUrl } = service;
  const newOwner = async () => {
    const another = await createOrganization(service);
    const { token: session } = await credentialsFor(baseUrl, another, "session");
    return { token: session ?? "", teamId: another.teamId };
  };
  const scene = { baseUrl, organizationKey: token ?? "", teamId: owner.teamId, newOwner };
  for (const attempt of ATTEMPTS.filter(({ name }) => only?.includes(name) ?? true)) {
    const row = await rowOf(attempt, scene);
    say(row);
    rows.push(row);
  }
} finally {
  await service.stop();
  if (keep) say(`kept: ${folder}`);
  else await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}
say("");
for (const row of rows) say(row);
process.exit(haveAllPassed ? 0 : 1);

async function rowOf({ name, run, uses, version }: Attempt, scene: Scene): Promise<string> {
  const steps: string[] = [];
  let outcome = "passed";
  try {
    await run(scene, join(folder, folderName(`${name}-${uses}`)), (step) => void steps.push(step));
  } catch (error) {
    haveAllPassed = false;
    outcome = `FAILED: ${error instanceof Error ? error.message : String(error)}`;
  }
  const cells = [name.padEnd(26), version.padEnd(10), uses.padEnd(18), steps.join(", ").padEnd(26)];
  return `${cells.join("")}${outcome}`;
}
