import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { ensureIndexes } from "../../server/indexes.ts";
import { MONGOD } from "../../src/engines/mongod-binary.ts";
import { choosePorts } from "../../src/engines/ports.ts";
import { connectMongo, reachMongodb, withRights } from "../../src/store/connections.ts";
import { EngineUnreachable } from "../../src/store/engine-unreachable.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { testLogger } from "../support/service.ts";
import { requiredSetting } from "../support/shared-engines.ts";
import { until } from "../support/world.ts";
import { binaryOf } from "../outage/engines.ts";

/** Nothing listens there. */
const DOWN = "127.0.0.1:9";
/** A mongod answers within it. */
const START_MS = 60_000;

const refusal = async (uri: string): Promise<string> => {
  const reached = await reachMongodb(uri).catch((error: unknown) => error);
  if (reached instanceof EngineUnreachable) return reached.message;
  throw new Error("it was not refused", { cause: reached });
};

/** A mongod that is no member of a replica set, on a port of its own. */
async function startMongod(folder: string, port: number, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(
    await binaryOf(MONGOD),
    ["--dbpath", folder, "--bind_ip", "127.0.0.1", "--port", String(port), "--nounixsocket", ...args],
    { stdio: "ignore" },
  );
  const uri = `mongodb://127.0.0.1:${String(port)}/?directConnection=true`;
  const client = await new MongoClient(uri, { serverSelectionTimeoutMS: START_MS }).connect();
  await client.close();
  return child;
}

/** Makes a replica set of one member, which then is its secondary for as long as the test takes. */
async function stepDown(port: number): Promise<void> {
  const host = `127.0.0.1:${String(port)}`;
  const direct = await new MongoClient(`mongodb://${host}/?directConnection=true`).connect();
  const admin = direct.db("admin");
  await admin.command({ replSetInitiate: { _id: "rs0", members: [{ _id: 0, host }] } });
  await until("it is the primary", async () => {
    const { isWritablePrimary } = await admin.command({ hello: 1 });
    return isWritablePrimary === true ? true : null;
  });
  await admin.command({ replSetStepDown: 3_600, secondaryCatchUpPeriodSecs: 0, force: true });
  await direct.close();
}

describe("the URI of MongoDB", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  it("names several hosts, of which one may be down, and the database", async () => {
    const uri = requiredSetting("TEST_MONGODB_URI").replace("@", `@${DOWN},`);
    const [unnamed, named] = await Promise.all([
      reachMongodb(uri),
      reachMongodb(uri.replace("/?", "/named?")),
    ]);
    expect(unnamed.db.databaseName).to.equal("agent-spending-control");
    expect(named.db.databaseName).to.equal("named");
    await Promise.all([unnamed.mongo.close(), named.mongo.close()]);
  });

  it("that the driver can't use ends the start with one line, without the password", async () => {
    const [parsed, file, password] = await Promise.all([
      refusal("mongodb://user:hunter22@a:b:c/x"),
      refusal("mongodb://127.0.0.1/?tls=true&tlsCAFile=/nowhere.pem"),
      refusal(requiredSetting("TEST_MONGODB_URI").replace(/:[^:@]+@/, ":hunter22@")),
    ]);
    expect(file).to.include("/nowhere.pem");
    expect(password).to.include("Authentication failed");
    for (const line of [parsed, file, password]) {
      expect(line).to.match(/^MongoDB .*\(MONGODB_URI\): [^\n]+$/);
      expect(line).to.not.include("hunter22");
    }
  });

  it("readWrite on one database is all the rights that a start needs", async () => {
    const { client, db } = database;
    const user = { pwd: "reader-writer" };
    await db.command({ createUser: "service", ...user, roles: [] });
    const uri = new URL(requiredSetting("TEST_MONGODB_URI"));
    Object.assign(uri, { username: "service", password: user.pwd, pathname: db.databaseName });
    uri.searchParams.set("authSource", db.databaseName);
    try {
      const retention = { eventDays: 90, createDays: 0, keyDeliveryDays: 30, approvalDays: 400 };
      const logger = testLogger("least-rights");
      const begun = () => withRights(db, () => ensureIndexes(uri.href, retention, logger));
      const refused = await begun().catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(EngineUnreachable);
      expect(refused)
        .to.have.property("message")
        .that.matches(/^MONGODB_URI: [^\n]*grantRolesToUser.*readWrite/);
      const roles = [{ role: "readWrite", db: db.databaseName }];
      await db.command({ grantRolesToUser: "service", roles });
      await begun();
      await ensureIndexes(uri.href, { ...retention, eventDays: 100 }, logger);
      const { mongo } = await connectMongo(uri.href);
      await mongo.close();
    } finally {
      await client.db(db.databaseName).command({ dropUser: "service" });
    }
  });

  it("of a standalone server, a set not initiated or a secondary is refused with the remedy", async () => {
    const folders = await Promise.all([1, 2].map(() => mkdtemp(join(tmpdir(), "spending-control-mongod-"))));
    const any = { port: 0, variable: "PORT" };
    const { alone, waiting } = await choosePorts({ alone: any, waiting: any });
    const [first = "", second = ""] = folders;
    const children = await Promise.all([
      startMongod(first, alone, []),
      startMongod(second, waiting, ["--replSet", "rs0"]),
    ]);
    try {
      expect(await refusal(`mongodb://127.0.0.1:${String(alone)}`)).to.match(
        /^MONGODB_URI: .*--replSet rs0.*rs\.initiate/,
      );
      expect(await refusal(`mongodb://127.0.0.1:${String(waiting)}`)).to.match(
        /\(MONGODB_URI\): .*rs\.initiate/,
      );
      await stepDown(waiting);
      expect(await refusal(`mongodb://127.0.0.1:${String(waiting)}/?directConnection=true`)).to.match(
        /^MONGODB_URI: .*secondary.*directConnection/,
      );
    } finally {
      for (const child of children) {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
      await Promise.all(folders.map((folder) => rm(folder, { recursive: true })));
    }
  });
});
