import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child, ServiceProcess } from "../support/process.ts";

const WITH_ENGINES_MS = 150_000;
const MASTER_KEY = "a-master-key-for-tests-long-enough-to-be-one";

async function expectRefused(child: Child, folder: string): Promise<void> {
  expect(await child.exit(WITH_ENGINES_MS)).to.deep.equal({ code: 1, signal: null });
  expect(child.stderr).to.match(/^error: [^\n]+\n$/);
  expect(child.stderr)
    .to.include(folder)
    .and.include("KEY_DELIVERY_DIR")
    .and.include("npm run admin -- adopt-key-delivery-folder");
}

describe("The folder of the key deliveries, which all servers and workers of a database share", () => {
  let service: ServiceProcess;
  let another: string;

  before(async () => {
    another = await mkdtemp(join(tmpdir(), "key-delivery-"));
    service = await ServiceProcess.create({ env: { MASTER_KEY } });
    await service.start();
    // From here on it listens to signals.
    await service.child.printed(/Stop with Ctrl-C/, WITH_ENGINES_MS);
    expect((await service.child.end("SIGTERM")).code).to.equal(0);
  });
  after(async () => {
    await service.dispose();
    await rm(another, { recursive: true, force: true });
  });

  it("is another: a role refuses in a line until the admin command is run; npm start takes it", async () => {
    const { mongodb, temporal } = await service.start({ KEY_DELIVERY_DIR: another });
    const engines = {
      MONGODB_URI: mongodb.uri,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
    };
    const old = join(service.dataDir, "key-delivery");
    const env = { ...service.env, ...engines, KEY_DELIVERY_DIR: old };
    await expectRefused(Child.node("server/main.ts", ["worker"], env), old);

    const admin = Child.node("server/main.ts", ["admin", "adopt-key-delivery-folder"], env);
    expect(await admin.exit(WITH_ENGINES_MS), admin.stderr).to.deep.equal({ code: 0, signal: null });
    expect(JSON.parse(admin.stdout)).to.deep.equal({ folder: old });
    const worker = Child.node("server/main.ts", ["worker"], env);
    await worker.printed(/The worker is running/, WITH_ENGINES_MS);
    expect((await worker.end("SIGTERM")).code).to.equal(0);
  });
});
