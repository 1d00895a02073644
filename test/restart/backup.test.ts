import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect } from "chai";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { pageCommands } from "../support/page-commands.ts";
import { Child, ServiceProcess } from "../support/process.ts";
import { pay, replay, type Sent } from "./support/load.ts";
import { Tenant } from "./support/tenant.ts";

const COMMAND_MS = 120_000;
const LATER_MS = 3 * 86_400_000;

/** Settings by which every program in Node has its clock set forward. */
const LATER = {
  LAB_CLOCK_OFFSET_MS: String(LATER_MS),
  NODE_OPTIONS: `--import ${pathToFileURL(builtFile("lab/chaos/wrong-clock.ts")).href}`,
};

/** The operator's shell: commands of the page work on the folder of the test in place of `.data`. */
const PRELUDE = `set -e; npm() { command npm --prefix "$ROOT" "$@"; }\n`;

describe("A backup of one machine, by the commands of docs/recovery.md", () => {
  let service: ServiceProcess;
  let tenant: Tenant;
  let commands: readonly string[];
  let payer: { readonly agentId: string; readonly apiKey: string };
  let kept: Sent;

  const place = () => ({
    baseUrl: service.runtime.baseUrl,
    mongodbUri: service.runtime.mongodb.uri,
    env: service.env,
  });

  function pasted(line: string, clock: NodeJS.ProcessEnv = {}): Child {
    const { dataDir, env } = service;
    const own = line.replaceAll(".data", basename(dataDir));
    const command = `${PRELUDE}cd "${dirname(dataDir)}"; ${own}`;
    return Child.spawn("bash", ["-c", command], { ...env, ...clock, ROOT: PACKAGE_ROOT });
  }

  /** Loses everything, restores the backup, and compares what it has. */
  async function restored(clock: NodeJS.ProcessEnv = {}): Promise<void> {
    const [, restore = "", compare = ""] = commands;
    const { agentId, apiKey } = payer;
    await service.killEverything();
    await service.ready(pasted(restore, clock));
    await tenant.meet(place());

    expect(await tenant.usage(agentId)).to.include({ spentCents: 600, reservedCents: 0 });
    expect(await replay(tenant.api, [kept])).to.deep.equal([kept.transactionId]);
    expect((await pay(tenant.api, apiKey, "after", 400)).status).to.equal(201);
    expect(await tenant.usage(agentId)).to.include({ spentCents: 1_000, reservedCents: 0 });
    const compared = pasted(compare, clock);
    expect((await compared.exit(COMMAND_MS)).code, compared.stdout + compared.stderr).to.equal(0);
  }

  before(async () => {
    commands = await pageCommands("docs/recovery.md", "**Embedded engines.**");
    service = await ServiceProcess.create();
    await service.start();
    tenant = await Tenant.create(place());
  });
  after(async () => {
    await service?.dispose();
    const { dataDir } = service;
    const left = [`${dataDir}.before`, join(dirname(dataDir), "backup.tar.gz")];
    await Promise.all(left.map((path) => rm(path, { recursive: true, force: true })));
  });

  it("brings back every payment made before it, and lets none be made twice or beyond a limit", async () => {
    expect(commands).to.have.lengthOf(3);
    const { agent, apiKey } = await tenant.createAgent({ budgetCents: 1_000 });
    payer = { agentId: agent.id, apiKey };
    kept = await pay(tenant.api, apiKey, "kept", 600);
    expect(kept.status).to.equal(201);
    await service.child.end("SIGTERM");
    expect((await pasted(commands[0] ?? "").exit(COMMAND_MS)).code).to.equal(0);

    await service.start();
    await tenant.meet(place());
    expect((await pay(tenant.api, apiKey, "lost", 300)).status).to.equal(201);
    await restored();
  });

  it("does so under another date: the service wakes three days later", async () => {
    await rm(`${service.dataDir}.before`, { recursive: true });
    await restored(LATER);
    expect(Date.parse(service.runtime.startedAt)).to.be.above(Date.now() + LATER_MS / 2);
  });
});
