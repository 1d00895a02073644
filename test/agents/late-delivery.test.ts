import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { COLLECTIONS, type KeyDeliveryDocument } from "../../src/store/documents.ts";
import { type DeliveryKeys, DeliveryKeyFiles } from "../../src/agents/key-deliveries/delivery-keys.ts";
import { newUuid } from "../../src/lib/ids.ts";
import { KeyDeliveries } from "../../src/agents/key-deliveries/key-deliveries.ts";
import { masterKeyOf, MINUTE, testClock } from "../identity/support.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";

/** An agent's first key is delivered again inside its window, by the clock at the moment it is handed out. */
describe("an agent's first key is read", () => {
  let database: TestDatabase;
  let folder = "";

  before(async () => {
    database = await testDatabase();
    folder = await mkdtemp(join(tmpdir(), "key-delivery-"));
  });
  after(async () => {
    await rm(folder, { recursive: true });
    await database.close();
  });

  for (const { readingMs, what } of [
    { readingMs: 2 * MINUTE - 1, what: "in time: it is delivered" },
    { readingMs: 2 * MINUTE, what: "until its window is over: it is delivered no more" },
  ]) {
    it(what, async () => {
      const clock = testClock();
      const files = await DeliveryKeyFiles.in(folder);
      const slow: DeliveryKeys = {
        obtain: (agentId) => files.obtain(agentId),
        destroy: (agentId) => files.destroy(agentId),
        read(agentId) {
          clock.advance(readingMs);
          return files.read(agentId);
        },
      };
      const deliveries = database.db.collection<KeyDeliveryDocument>(COLLECTIONS.keyDeliveries);
      const masterKey = masterKeyOf("k");
      const delivery = new KeyDeliveries({ deliveries, deliveryKeys: slow, masterKey, clock: clock.read });
      const agentId = newUuid();
      const until = new Date(clock.read().getTime() + 2 * MINUTE);
      const sealed = await delivery.seal(agentId, "idempotency", "the key");
      await deliveries.insertOne({ _id: agentId, state: "open", sealed, at: clock.read() });
      const isInTime = readingMs < 2 * MINUTE;
      expect(await delivery.open(agentId, "idempotency", until)).to.equal(isInTime ? "the key" : null);
    });
  }
});
