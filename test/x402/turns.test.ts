import { expect } from "chai";
import { Orders } from "../../src/rails/challenge/orders.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { testDatabase } from "../support/mongo.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";

const TURN_MS = 1_000;

describe("turns to send a paid request", () => {
  it("that is over ends no other's: the shop is not asked twice at once", async () => {
    const { close, db } = await testDatabase();
    try {
      let now = new Date();
      const sealer = new Sealer(MasterKey.parse(TEST_MASTER_KEY, "a test"));
      const orders = new Orders(db, sealer, () => now, TEST_ACCESS_PROOFS);
      const begin = () => orders.beginPresenting("txn_1", TURN_MS);
      const request = { url: "https://shop.example/", method: "GET", headers: {}, body: null };
      const offer = { frame: Object(), nonce: null, timeoutSeconds: 60, units: "10000" };
      const first = new Date(now.getTime() + TURN_MS);
      await orders.insert("agt_1", "txn_1", { request, offer }, first);
      expect(await begin()).to.equal(null);
      now = new Date(first.getTime() + 1);
      const second = await begin();
      if (second === null) throw new Error("the first turn is over");
      // The process whose turn was the first wakes up.
      await orders.endPresenting("txn_1", first);
      expect(await begin()).to.equal(null);
      await orders.endPresenting("txn_1", second);
      const third = await begin();
      if (third === null) throw new Error("the second turn was ended");
      await orders.endPresenting("txn_1", first, { isAnswered: true }, true);
      await orders.endPresenting("txn_1", third);
      expect(await begin()).to.equal(null);
    } finally {
      await close();
    }
  });
});
