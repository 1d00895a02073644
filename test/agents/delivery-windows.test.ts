import { mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { COLLECTIONS, type KeyDeliveryDocument } from "../../src/store/documents.ts";
import {
  DeliveryKeyFiles,
  type DeliveryKeys,
  DeliveryKeysUnreachable,
} from "../../src/agents/key-deliveries/delivery-keys.ts";
import { MongoDeliveryWindows } from "../../src/agents/key-deliveries/windows.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";

const AT = new Date("2026-05-13T12:00:00.000Z");
const clock = (): Date => AT;

/** What seals an agent's first key is gone when its window is over, whichever caller is late. */
describe("the end of the window of an agent's first key", () => {
  let database: TestDatabase;
  let folder = "";
  let files: DeliveryKeyFiles;

  before(async () => {
    database = await testDatabase();
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "key-delivery-"));
    files = await DeliveryKeyFiles.in(folder);
  });
  afterEach(() => rm(folder, { recursive: true }));
  after(() => database.close());

  const deliveries = () => database.db.collection<KeyDeliveryDocument>(COLLECTIONS.keyDeliveries);

  /** The keys' files, and something that happens as soon as one was destroyed for the first time. */
  function disturbed(happens: () => Promise<unknown>): DeliveryKeys {
    let isFirst = true;
    return {
      obtain: (agentId) => files.obtain(agentId),
      read: (agentId) => files.read(agentId),
      async destroy(agentId) {
        await files.destroy(agentId);
        if (isFirst) {
          isFirst = false;
          await happens();
        }
      },
    };
  }

  it("destroys the key also where a late create makes it anew and commits under it", async () => {
    const agentId = newUuid();
    const keys = disturbed(async () => {
      await files.obtain(agentId);
      await deliveries().insertOne({ _id: agentId, state: "open", sealed: "sealed", at: AT });
    });
    expect(await new MongoDeliveryWindows(database.db, keys, clock).close(agentId)).to.equal("committed");
    expect(await files.read(agentId)).to.equal(null);
    expect(await readdir(folder)).to.deep.equal([]);
    expect((await deliveries().findOne({ _id: agentId }))?.sealed).to.equal(null);
  });

  it("destroys the key also where a late create makes it anew and is given up", async () => {
    const agentId = newUuid();
    const keys = disturbed(() => files.obtain(agentId));
    expect(await new MongoDeliveryWindows(database.db, keys, clock).close(agentId)).to.equal("discarded");
    expect(await readdir(folder)).to.deep.equal([]);
  });

  it("waits for the folder where that is away: its key would come back with it", async () => {
    const agentId = newUuid();
    await files.obtain(agentId);
    const windows = new MongoDeliveryWindows(database.db, files, clock);
    await rename(folder, `${folder}-away`);
    const refused: unknown = await windows.close(agentId).catch((error: unknown) => error);
    await rename(`${folder}-away`, folder);
    expect(refused).to.be.instanceOf(DeliveryKeysUnreachable);
    await windows.close(agentId);
    expect(await readdir(folder)).to.deep.equal([]);
  });
});
