import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "chai";
import { z } from "zod";
import { verifyAuditLog } from "../../server/admin/verify-audit-log.ts";
import { AUDIT_LOG } from "../../src/store/audit-documents.ts";
import { Api } from "../support/api.ts";
import { shortOrSoak } from "../support/soak.ts";
import { Child, until } from "../support/process.ts";
import { roleEnvironment } from "./support/roles.ts";
import { Tenant } from "./support/tenant.ts";

const START_MS = 150_000;
/** Answered writes between one kill and the next. */
const WRITES_PER_KILL = 15;
const WRITES_MS = 150_000;
const RETRY_MS = 20;
/** A writer's pause while a server is down, so that its start does not compete with all of them. */
const PAUSE_MS = shortOrSoak(300, 0);
/** Each costs the start of a process. */
const KILLS = shortOrSoak(1, 100);
const WRITERS = shortOrSoak(8, 16);
/** Payments that died before their decisions were told of are told of by their actors, 10 s later. */
const SWEPT_MS = 150_000;

const project = z.object({ project: z.object({ id: z.string() }) });
const payment = z.object({ transaction: z.object({ id: z.string() }) });

/** Two servers and a worker of their own, on the run's engines. */
const environment = () => ({
  ...roleEnvironment(),
  AUDIT_ANCHOR_SECONDS: "1",
  // One place for all: sessions are signed as the service's own.
  BASE_URL: "http://127.0.0.1:1",
  TRUSTED_PROXIES: "loopback",
});

/** A server that is killed and started again, and where it is now. */
class Server {
  readonly #env: NodeJS.ProcessEnv;
  #port: number | null = null;
  #child: Child | null = null;
  /** Null while it is down. */
  api: Api | null = null;

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  /** On the same port each time; all that it prints of where it is would be the service's own address. */
  async start(): Promise<string> {
    this.#port ??= await freePort();
    const child = Child.node("server/main.ts", ["server"], { ...this.#env, PORT: String(this.#port) });
    this.#child = child;
    await child.printed(/^ +REST +/m, START_MS);
    const baseUrl = `http://127.0.0.1:${this.#port}`;
    this.api = new Api(baseUrl);
    return baseUrl;
  }

  async kill(): Promise<void> {
    this.api = null;
    await this.#child?.end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#child?.end("SIGTERM");
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

const isSame = (some: readonly string[], others: readonly string[]): boolean =>
  JSON.stringify(some.toSorted()) === JSON.stringify(others.toSorted());

const isPayer = (writer: number): boolean => writer % 4 === 0;

describe("the audit log under kill -9 of two servers in turn", function () {
  this.timeout(shortOrSoak(900_000, 7_200_000));
  const env = environment();
  const servers = [new Server(env), new Server(env)] as const;
  let worker: Child;
  let tenant: Tenant;
  let apiKey: string;
  const projects: string[] = [];
  const transactions: string[] = [];
  const over = new AbortController();

  before(async () => {
    worker = Child.node("server/main.ts", ["worker"], env);
    const [baseUrl] = await Promise.all([
      servers[0].start(),
      servers[1].start(),
      worker.printed(/^The worker is running\.$/m, START_MS),
    ]);
    tenant = await Tenant.create({ baseUrl, mongodbUri: env.MONGODB_URI, env });
    ({ apiKey } = await tenant.createAgent({ budgetCents: 100_000_000 }));
  });
  after(async () => {
    over.abort();
    await Promise.all([...servers.map((server) => server.kill()), worker.end("SIGKILL")]);
  });

  const count = (): number => projects.length + transactions.length;

  /** What is not answered is tried again elsewhere, under the same key: it may have been done. */
  async function write(writer: number, key: string): Promise<void> {
    for (let attempt = 0; !over.signal.aborted; attempt += 1) {
      const api = servers[(writer + attempt) % 2]?.api ?? null;
      const answer = api === null ? null : await ask(api, writer, key).catch(() => null);
      if (answer !== null && answer.status < 300) {
        note(writer, answer.body);
        return;
      }
      await pause(RETRY_MS);
    }
  }

  function ask(api: Api, writer: number, key: string) {
    if (isPayer(writer)) return api.payRaw(apiKey, { idempotencyKey: key, amountCents: 1 });
    const body = { name: `Of writer ${writer}`, idempotencyKey: key };
    return api.call("POST", "/v1/projects", { token: tenant.token, body });
  }

  function note(writer: number, body: unknown): void {
    if (isPayer(writer)) transactions.push(payment.parse(body).transaction.id);
    else projects.push(project.parse(body).project.id);
  }

  async function keepWriting(writer: number): Promise<void> {
    while (!over.signal.aborted) {
      await write(writer, randomUUID());
      if (servers.some(({ api }) => api === null)) await pause(PAUSE_MS);
    }
  }

  const entriesAbout = (action: string, how: object = {}) =>
    tenant.withDatabase(async (db) => {
      // What was refused while its engines were busy has made nothing.
      const done = { action, "result.code": null, ...how };
      const found = await db.collection(AUDIT_LOG).find(done).toArray();
      return found.map(
        (entry) => z.object({ resource: z.object({ id: z.string() }) }).parse(entry).resource.id,
      );
    });

  it(`${WRITERS} writers, ${KILLS} kills: an unbroken chain with every answered write and payment`, async () => {
    const writing = Array.from({ length: WRITERS }, (_none, writer) => keepWriting(writer));
    for (let kill = 0; kill < KILLS; kill += 1) {
      const enough = count() + WRITES_PER_KILL;
      await until(`${WRITES_PER_KILL} more writes`, WRITES_MS, () => (count() >= enough ? true : null));
      const server = servers[kill % 2];
      await server?.kill();
      await server?.start();
    }
    over.abort();
    await Promise.all(writing);

    const verdict = await verifyAuditLog(env);
    expect(verdict.broken).to.deep.equal([]);
    expect(verdict.unbroken).to.equal(true);
    expect(verdict.anchors).to.be.at.least(1);
    // Of all that are there, answered or not: what a killed server has left, one that lives appends.
    await until("every project's entry", SWEPT_MS, async () => {
      const made = await tenant.withDatabase((db) =>
        db
          .collection<{ readonly _id: string }>("projects")
          .find({ name: /^Of writer/ })
          .toArray(),
      );
      const created = await entriesAbout("createProject", { "result.status": 201 });
      expect(projects.every((id) => made.some(({ _id }) => _id === id))).to.equal(true);
      return isSame(
        created,
        made.map(({ _id }) => _id),
      )
        ? true
        : null;
    });
    await until("every payment's decision", SWEPT_MS, async () => {
      const decided = await entriesAbout("decidePayment");
      expect(new Set(decided).size).to.equal(decided.length);
      const kept = new Set(decided);
      expect(transactions.filter((id) => !kept.has(id))).to.deep.equal([]);
      return true;
    });
    await Promise.all(servers.map((server) => server.stop()));
    const last = await verifyAuditLog(env);
    expect(last).to.include({ unbroken: true });
    expect(last.anchors).to.be.at.least(verdict.anchors);
    process.stdout.write(
      `    ${projects.length} projects, ${transactions.length} payments, ${last.entries} entries, ${last.anchors} anchors\n`,
    );
  });
});
