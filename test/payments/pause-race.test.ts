import { expect } from "chai";
import type { CardLedgerDocument } from "../../src/rails/card-sandbox.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { cardPayment, elevate, newWorld, times, type TestAgent, type World } from "../support/world.ts";
import { booksOnceAgreed } from "../support/books.ts";

const PAYMENTS = 40;
const ROUNDS = 3;

describe("a pause amid payments that are under way", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  /** When the processor began with each of an agent's payments. */
  async function begunAt(agent: TestAgent): Promise<number[]> {
    const { db } = world.service;
    const ofAgent = { agentId: agent.id };
    const ids = await db.collection(COLLECTIONS.transactions).distinct("_id", ofAgent);
    const ledger = db.collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger);
    const entries = await ledger.find({ transactionId: { $in: ids.map(String) } }).toArray();
    return entries.map(({ createdAt }) => createdAt.getTime());
  }

  it("no payment is first sent after the pause was answered, and the books agree", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const agent = await world.agent();
      const paying = times(PAYMENTS, () =>
        world.api.call("createPayment", { token: agent.key, body: cardPayment({ amountCents: 1 }) }),
      );
      await paying[0];
      await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
      const answeredAt = Date.now();
      await Promise.all(paying);
      await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
      await booksOnceAgreed(world, agent);
      const late = (await begunAt(agent)).filter((at) => at > answeredAt);
      expect(late, "sent after the answer").to.deep.equal([]);
    }
  });
});
