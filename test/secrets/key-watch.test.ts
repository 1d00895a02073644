import { expect } from "chai";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { KeyWatch } from "../../src/secrets/key-watch.ts";
import { MasterKey, MasterKeyError, MasterKeyUnconfirmed } from "../../src/secrets/master-key.ts";
import { announceRetirement, retireKey } from "../../src/secrets/rotation.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { HeldTimers } from "../actors/stage.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";
import { until } from "../support/world.ts";

const NOW = new Date("2026-03-01T00:00:00.000Z");
const [OLD, NEW] = ["old", "new"].map((name) => `${name}-master-key-of-these-tests-0123456789`);
const keys = (...texts: readonly (string | undefined)[]): MasterKey =>
  MasterKey.parseAll(texts.join("\n"), "MASTER_KEYS");
const OLD_ID = keys(OLD).newestId;

/** Less than between two looks, and more than a look is valid. */
const [SOON_MS, LATE_MS] = [9_000, 60_000];

const errorOf = (work: Promise<unknown>): Promise<MasterKeyError> =>
  work.then(
    () => expect.fail("it was accepted"),
    (error: unknown) => (error instanceof MasterKeyError ? error : expect.fail(String(error))),
  );

describe("A process under a master key that is retired meanwhile", () => {
  let database: TestDatabase;
  let timers: HeldTimers;
  beforeEach(async () => {
    database = await testDatabase();
    timers = new HeldTimers();
  });
  afterEach(() => database.close());

  async function started(masterKey: MasterKey) {
    const watch = new KeyWatch(database.db, masterKey, undefined, timers);
    await watch.start(NOW);
    const [sealer, macs] = [new Sealer(masterKey), masterKey.macs("access-proofs")];
    const audit = auditSeal(masterKey.deriveKeys("audit-log"));
    const seal = () => sealer.seal("webhook-secret", "record", "secret");
    const makers = [seal, () => macs.make("text"), () => audit.mac("hash")];
    const makes = (): readonly boolean[] =>
      makers.map((make) => {
        try {
          return make() !== "";
        } catch (error) {
          if (error instanceof MasterKeyUnconfirmed) return false;
          throw error;
        }
      });
    const [sealed, mac] = [seal(), macs.make("text")];
    const reads = () => [sealer.open("webhook-secret", "record", sealed), macs.isMac("text", mac)];
    return { watch, makes, reads };
  }
  const [ALL, NOTHING] = [
    [true, true, true],
    [false, false, false],
  ];

  it("ends when the retirement is announced, after which none starts with the key first", async () => {
    const { makes, watch } = await started(keys(OLD, NEW));
    const both = keys(NEW, OLD);
    await verifyMasterKey(database.db, both);
    timers.pass(SOON_MS);
    expect(makes()).to.deep.equal(ALL);
    await announceRetirement(database.db, [OLD_ID]);
    const refused = `MASTER_KEYS begins with the master key ${OLD_ID}, which is being retired; begin with another one.`;
    expect((await errorOf(verifyMasterKey(database.db, keys(OLD, NEW)))).message).to.equal(refused);
    timers.pass(SOON_MS);
    expect((await errorOf(watch.failed)).message).to.equal(refused);
    expect(makes(), "while it ends").to.deep.equal(ALL);
    timers.pass(LATE_MS);
    expect(makes(), "once another process may have retired the key").to.deep.equal(NOTHING);
    await verifyMasterKey(database.db, both);
  });

  it("makes nothing more after a halt, only reads, and ends", async () => {
    const { makes, reads, watch } = await started(keys(OLD, NEW));
    const both = keys(NEW, OLD);
    await verifyMasterKey(database.db, both);
    await announceRetirement(database.db, [OLD_ID]);
    await retireKey(database.db, both, OLD_ID, NOW);
    timers.pass(LATE_MS);
    expect(makes(), "before it has looked").to.deep.equal(NOTHING);
    expect(reads()).to.deep.equal(["secret", true]);
    expect((await errorOf(watch.failed)).message).to.include("is retired");
    expect(makes()).to.deep.equal(NOTHING);
  });

  it("goes on after a halt in which nothing was retired, once it has looked", async () => {
    const { makes, watch } = await started(keys(OLD, NEW));
    timers.pass(LATE_MS);
    expect(makes()).to.deep.equal(NOTHING);
    expect(
      await until("it has looked", async () => (makes().includes(false) ? null : makes())),
    ).to.deep.equal(ALL);
    watch.stop();
  });
});
