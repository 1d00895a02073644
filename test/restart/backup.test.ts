import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect } from "chai";
import { PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { pageCommands } from "../support/page-commands.ts";
import { Child, ServiceProcess } from "../support/process.ts";
import { pay, replay } from "./support/load.ts";
import { Tenant } from "./support/tenant.ts";

const COMMAND_MS = 120_000;

/** The operator's shell: commands of the page work on the folder of the test in place of `.data`. */
const PRELUDE = `set -e; npm() { command npm --prefix "$ROOT" "$@"; }\n`;

describe("A backup of one machine, by the commands of docs/recovery.md", () => {
  let service: ServiceProcess;
  let tenant: Tenant;
  let commands: readonly string[];

  const place = () => ({
    baseUrl: service.runtime.baseUrl,
    mongodbUri: service.runtime.mongodb.uri,
    env: service.env,
  });

  function pasted(line: string): Child {
    const { dataDir, env } = service;
    const own = line.replaceAll(".data", basename(dataDir));
    const command = `${PRELUDE}cd "${dirname(dataDir)}"; ${own}`;
    return Child.spawn("bash", ["-c", command], { ...env, ROOT: PACKAGE_ROOT });
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
    const [backup = "", restore = "", compare = ""] = commands;
    const { apiKey, agent } = await tenant.createAgent({ budgetCents: 1_000 });
    const kept = await pay(tenant.api, apiKey, "kept", 600);
    expect(kept.status).to.equal(201);
    await service.child.end("SIGTERM");
    expect((await pasted(backup).exit(COMMAND_MS)).code).to.equal(0);

    await service.start();
    await tenant.meet(place());
    expect((await pay(tenant.api, apiKey, "lost", 300)).status).to.equal(201);
    await service.killEverything();
    await service.ready(pasted(restore));
    await tenant.meet(place());

    expect(await tenant.usage(agent.id)).to.include({ spentCents: 600, reservedCents: 0 });
    expect(await replay(tenant.api, [kept])).to.deep.equal([kept.transactionId]);
    expect((await pay(tenant.api, apiKey, "after", 400)).status).to.equal(201);
    expect(await tenant.usage(agent.id)).to.include({ spentCents: 1_000, reservedCents: 0 });
    const compared = pasted(compare);
    expect((await compared.exit(COMMAND_MS)).code, compared.stdout + compared.stderr).to.equal(0);
  });
});
