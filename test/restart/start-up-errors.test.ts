import { expect } from "chai";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readAddresses, readConfig, refuseExposure } from "../../server/config.ts";
import { connectMongo, reachMongodb } from "../../src/store/connections.ts";
import { authCollections } from "../../src/store/identity-documents.ts";
import { Api, onceReachable } from "../support/api.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { Child, cleanEnvironment, ServiceProcess } from "../support/process.ts";
import { PASSWORD } from "../support/service.ts";

/** Three of them start at once, on a machine that is busy. */
const QUICK_MS = 150_000;
const DEMO_MS = 240_000;

/** Nothing listens there. */
const NOWHERE = "127.0.0.1:9";
const MASTER_KEY = "a-master-key-for-tests-long-enough-to-be-one";

/** Starts it in vain; answers the one line on standard error. */
async function reasonOf(
  env: NodeJS.ProcessEnv,
  { args = [], role = "start" }: { args?: readonly string[]; role?: string } = {},
): Promise<string> {
  const child = Child.node("server/main.ts", [role, ...args], env);
  expect(await child.exit(QUICK_MS)).to.deep.equal({ code: 1, signal: null });
  expect(child.stderr).to.match(/^error: [^\n]+\n$/);
  return child.stderr;
}

async function passwordHashOf(uri: string, email: string): Promise<string | undefined> {
  const { db, mongo } = await connectMongo(uri);
  const user = await authCollections(db).users.findOne({ email });
  await mongo.close();
  return user?.passwordHash;
}

describe("A service's process, on the run's engines", () => {
  let running: ServiceProcess;
  let other: ServiceProcess;

  before(async () => {
    other = await ServiceProcess.create();
    running = await ServiceProcess.create({ engines: "shared" });
    await running.start({ LOG_LEVEL: "trace" });
  });
  after(async () => {
    await running.dispose();
    await other.dispose();
  });

  it("plays the demo to its end, and leaves its set-up link as it is: printed once, never logged", async () => {
    const [, token = ""] = await running.child.printed(/^Set up: \S+#token=([\w-]{43})$/m, DEMO_MS);
    const demo = Child.node("scripts/demo.ts", [], running.env);
    const exit = await demo.exit(DEMO_MS);
    expect(demo.stderr).to.equal("");
    expect(exit, demo.stdout).to.deep.equal({ code: 0, signal: null });
    // An approval arrives signed, and a copy that was changed is refused.
    expect(demo.stdout).to.match(/^receiver got `approval\.requested`, its signature is good: /m);
    expect(demo.stdout).to.match(/^receiver refused a copy of it /m);
    expect(demo.stdout.trimEnd()).to.match(/\nAll steps passed\.$/);
    const api = new Api(running.runtime.baseUrl);
    const { status } = await api.call("POST", "/v1/setup/check", { body: { token } });
    expect(status).to.equal(204);
    const owner = { organizationName: "First", name: "Ada", email: "ada@example.com", password: PASSWORD };
    // A call that took effect may have been told to come again.
    await onceReachable(() => api.call("POST", "/v1/setup", { body: { token, ...owner } }));
    const session = await api.signIn(owner.email, owner.password);
    expect(await passwordHashOf(running.runtime.mongodb.uri, owner.email), "at its real cost").to.match(
      /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/,
    );
    const { body } = await api.surely("GET", "/v1/organization", { token: session });
    expect(body, "without embedded engines").to.have.nested.property("organization.plan", "free");
    expect(running.child.stdout.split(token)).to.have.lengthOf(2);
    const log = await readFile(join(running.dataDir, "logs", "service.log"), "utf8");
    expect(log).to.include('"running"').and.not.include(token);
  });

  describe("that cannot start says why in one line, ends with 1, and leaves nothing running", () => {
    it("PORT is taken: named before anything is started", async () => {
      const port = new URL(running.runtime.baseUrl).port;
      expect(await reasonOf({ ...other.env, PORT: port }))
        .to.include(port)
        .and.include("PORT");
      expect(await other.processes()).to.deep.equal([]);
    });

    it("MASTER_KEY is too short: said before anything is started", async () => {
      const child = Child.node("server/main.ts", ["start"], { ...other.env, MASTER_KEY: "tooshort" });
      expect(await child.exit(QUICK_MS)).to.deep.equal({ code: 1, signal: null });
      expect(child.stderr)
        .to.match(/^error: MASTER_KEY [^\n]+\n$/)
        .and.not.include("tooshort");
      // Each engine's start is a line there.
      expect(child.stdout).to.equal("");
    });

    it("HOST lets other machines in while an engine is embedded: refused before one is started", async () => {
      const open = await reasonOf({ ...other.env, HOST: "0.0.0.0" });
      expect(open).to.match(/^error: HOST: .*MONGODB_URI, TEMPORAL_ADDRESS, EVM_RPC_URL/);
      const withoutChain = { MONGODB_URI: "mongodb://x", TEMPORAL_ADDRESS: "x:1" };
      expect(() => refuseExposure({ host: "::" }, withoutChain)).to.throw(/^HOST: .* set EVM_RPC_URL to /);
      expect(await other.processes()).to.deep.equal([]);
    });

    it("a setting is nonsense: a port, a role, an argument", async () => {
      // The line of each is written in one place.
      const [role, argument] = await Promise.all([
        reasonOf(other.env, { role: "everything" }),
        reasonOf(other.env, { role: "start", args: ["--port=80"] }),
      ]);
      for (const PORT of ["eighty", "70000"])
        expect(() => readConfig({ PORT }, "127.0.0.1")).to.throw(
          "PORT: must be a whole number from 0 to 65535.",
        );
      expect(role).to.include("everything");
      expect(argument).to.include("takes no arguments");
      expect(await other.processes()).to.deep.equal([]);
    });

    it("a role of its own is not told where the engines are, or they are not there", async () => {
      const env = { ...cleanEnvironment(), PORT: "0", MASTER_KEY };
      const { mongodb, temporal } = running.runtime;
      const there = {
        ...env,
        MONGODB_URI: mongodb.uri,
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: temporal.namespace,
      };
      expect(() => readAddresses({})).to.throw(/MONGODB_URI, TEMPORAL_ADDRESS/);
      const noMongodb = await reachMongodb(`mongodb://${NOWHERE}/x`).catch(String);
      expect(noMongodb).to.include("MONGODB_URI");
      const noTemporal = await reasonOf({ ...there, TEMPORAL_ADDRESS: NOWHERE }, { role: "worker" });
      expect(noTemporal).to.include("TEMPORAL_ADDRESS");
    });

    it("DATA_DIR is in use by a service, which goes on", async () => {
      const reason = await reasonOf(running.env);
      expect(reason).to.include(running.dataDir).and.include(String(running.runtime.pid));
      expect((await fetch(`${running.runtime.baseUrl}/readyz`)).status).to.equal(200);
    });

    it("MASTER_KEY is not the one of the first start", async () => {
      const { db, mongo } = await connectMongo(running.runtime.mongodb.uri);
      const masterKey = "another-master-key-that-is-long-enough-to-be-one";
      const refused = await verifyMasterKey(db, MasterKey.parse(masterKey, "MASTER_KEY")).catch(String);
      await mongo.close();
      expect(refused)
        .to.match(/^[^\n]*MASTER_KEY[^\n]*$/)
        .and.not.include(masterKey);
    });
  });
});
