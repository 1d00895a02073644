import { expect } from "chai";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { cardPayment, elevate, newWorld, times, type World } from "../support/world.ts";
import { booksOnceAgreed } from "../support/books.ts";
import { shortOrSoak } from "../support/soak.ts";

const PAYMENTS = shortOrSoak(20, 40);
const ROUNDS = shortOrSoak(1, 3);

describe("a pause amid payments that are under way", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });

  /** What the processor has captured so far. */
  async function captures(): Promise<string[]> {
    const ledger = world.service.db.collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger);
    const { organizationId } = world.organization;
    const entries = await ledger.find({ organizationId, status: "captured" }).toArray();
    return entries.map(({ transactionId }) => transactionId).toSorted();
  }

  it("no payment is first sent after the pause was answered, and the books agree", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const agent = await world.agent();
      const paying = times(PAYMENTS, () =>
        world.api.call("createPayment", { token: agent.key, body: cardPayment({ amountCents: 1 }) }),
      );
      await paying[0];
      await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
      const answered = await captures();
      await Promise.all(paying);
      await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
      await booksOnceAgreed(world, agent);
      expect(await captures(), "sent after the answer").to.deep.equal(answered);
    }
  });
});
