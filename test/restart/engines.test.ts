import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { z } from "zod";
import { listProcesses } from "../../src/engines/processes.ts";
import { readRuntimeFile } from "../../src/engines/runtime-file.ts";
import { Child, type EngineName } from "../support/process.ts";
import { Load, replay, type Sent } from "./support/load.ts";
import { Stage } from "./support/stage.ts";

/** The supervisor's pauses, the engine's own start, and the clients' way back to it. */
const BACK_MS = 120_000;
const SWEPT_MS = 120_000;

/** A client is answered within 5 s, whatever is down; the rest is the machine's noise. */
const ANSWERED_MS = 5_500;

const DRAINED_MS = 120_000;
const SOON_MS = 120_000;

/** A server that is ending and refuses what comes would say so at once; a deadline is told of later, on a busy machine. */
const AT_ONCE_MS = 3_000;

/** Where the requests stand that are at hand when the signal comes. */
const AT_HAND = ["before-rail", "after-rail", "after-projection"] as const;

const logLine = z.looseObject({ msg: z.string(), engine: z.string().optional() });
const EVENTS: ReadonlySet<string> = new Set([
  "starting",
  "running",
  "stopping",
  "stopped",
  "an engine runs",
  "an engine ended unexpectedly",
  "an engine was started again",
  "the engines have stopped",
]);

/** No line broke, no caller waited for long, and there were no answers but a payment and "not now". */
function expectAnswers(sent: readonly Sent[]): void {
  const odd = sent.filter(({ ms, status }) => (status !== 201 && status !== 503) || ms > ANSWERED_MS);
  expect(odd).to.deep.equal([]);
}

const isDeadline = ({ ms, status }: Sent) => status === 503 && ms > AT_ONCE_MS;

describe("A service whose engines end, or that is told to end, under load", () => {
  let stage: Stage;

  before(async () => {
    stage = await Stage.set();
  });
  after(() => stage.service.dispose());

  async function startLoad(name: string, clients: number): Promise<Load> {
    const agents = await Promise.all([
      stage.tenant.createAgent({ budgetCents: 1_000_000 }),
      stage.tenant.createAgent(),
    ]);
    const load = new Load({
      apiKeys: agents.map(({ apiKey }) => apiKey),
      apis: [stage.tenant.api],
      clients,
      name,
    });
    await load.untilPaid(40);
    return load;
  }

  it("what runs shows MongoDB's password in runtime.json alone: not in output, logs, arguments", async () => {
    const { child, dataDir, runtime } = stage.service;
    const { hostname, password, port } = new URL(runtime.mongodb.uri);
    expect(password).to.have.lengthOf.at.least(32);
    expect(child.stdout).to.include(`mongodb://${hostname}:${port}/`);
    const logs = await readdir(join(dataDir, "logs"));
    const texts = await Promise.all(logs.map((name) => readFile(join(dataDir, "logs", name), "utf8")));
    const shown = [child.stdout, child.stderr, ...texts];
    shown.push(...(await listProcesses()).map(({ commandLine }) => commandLine));
    expect(logs).to.include("service.log");
    expect(shown.filter((text) => text.includes(password))).to.deep.equal([]);
    expect((await stat(join(dataDir, "runtime.json"))).mode & 0o777).to.equal(0o600);
  });

  const engines: readonly EngineName[] = ["mongod", "temporal"];
  for (const engine of engines) {
    it(`kill -9 of ${engine}: back by itself, all answered in time, replays settle, books agree`, async () => {
      const { service, tenant } = stage;
      const load = await startLoad(engine, 6);
      service.killEngine(engine);
      await service.engineBack(engine, BACK_MS);
      await load.untilPaid(40);
      const sent = await load.stop();
      expectAnswers(sent);
      await replay(tenant.api, sent);
      await tenant.expectBooksToAgree(SWEPT_MS);
    });
  }

  it("SIGTERM, also to npm start: open requests are answered, exit 0, no engine is left", async () => {
    const { service, tenant } = stage;
    const { agent, apiKey } = await tenant.createAgent({ autoApprovalThresholdCents: 1_000 });
    const { approval } = await tenant.api.pay(apiKey, { amountCents: 2_000 });
    const load = await startLoad("sigterm", 4);
    await stage.arm(...AT_HAND);
    const beganAt = performance.now();
    const atHand = await Promise.all(AT_HAND.map((point) => stage.payAndHold(apiKey, point, 10)));
    service.child.signal("SIGTERM");
    await service.child.printed(/^Stopping: /m, SOON_MS);
    await stage.disarm();
    const heldMs = performance.now() - beganAt;

    const answers = await Promise.all(atHand.map(({ answer }) => answer));
    // Held for longer, on a busy machine, they may have been told to come again.
    const isLate = (one: Sent): boolean => heldMs > AT_ONCE_MS && isDeadline(one);
    expect(answers.filter((one) => one.status !== 201 && !isLate(one))).to.deep.equal([]);
    expect(await service.child.exit(DRAINED_MS)).to.deep.equal({ code: 0, signal: null });
    expect(service.child.stderr).to.equal("");
    expect(await service.processes()).to.deep.equal([]);
    expect(await readRuntimeFile(service.dataDir)).to.equal(null);
    const sent = await load.stop();
    const odd = sent.filter((one) => one.status !== 201 && one.status !== null && !isDeadline(one));
    expect(odd).to.deep.equal([]);

    await service.ready(Child.spawn("npm", ["start"], service.env));
    await stage.meet();
    await tenant.expectTotals(agent.id, { spentCents: 30, reservedCents: 2_000 }, SOON_MS);
    expect(await tenant.approve(approval?.id ?? "")).to.equal("approved");
    await replay(tenant.api, sent);
    await tenant.expectBooksToAgree(SOON_MS);
    expect(await service.child.end("SIGTERM")).to.deep.equal({ code: 0, signal: null });
    expect(service.child.stdout).to.match(/^Stopping: /m);
    expect(await service.processes()).to.deep.equal([]);
  });

  it("nothing in DATA_DIR can be looked into by others: what the engines wrote, too", async () => {
    const { dataDir } = stage.service;
    const names = await readdir(dataDir, { recursive: true });
    expect(names).to.include.members(["logs/service.log", "logs/mongod.log", "master.key"]);
    const open: string[] = [];
    for (const name of [".", ...names]) {
      const { mode } = await stat(join(dataDir, name));
      if ((mode & 0o077) !== 0) open.push(`${name} ${(mode & 0o777).toString(8)}`);
    }
    expect(open).to.deep.equal([]);
  });

  it("its log says when it and each engine started, ended, came back and stopped", async () => {
    const text = await readFile(join(stage.service.dataDir, "logs", "service.log"), "utf8");
    const said = text
      .trim()
      .split("\n")
      .map((line) => logLine.parse(JSON.parse(line)))
      .flatMap(({ engine, msg }) =>
        EVENTS.has(msg) ? [engine === undefined ? msg : `${engine}: ${msg}`] : [],
      );
    const started = [
      "starting",
      "mongod: an engine runs",
      "temporal: an engine runs",
      "anvil: an engine runs",
    ];
    const stopped = ["stopping", "the engines have stopped", "stopped"];
    const killed = engines.flatMap((engine) => [
      `${engine}: an engine ended unexpectedly`,
      `${engine}: an engine was started again`,
    ]);
    expect(said).to.deep.equal([
      ...started,
      "running",
      ...killed,
      ...stopped,
      ...started,
      "running",
      ...stopped,
    ]);
  });
});
