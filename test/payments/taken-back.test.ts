import { expect } from "chai";
import { booksOnceAgreed } from "../support/books.ts";
import { archive } from "../support/life.ts";
import { newWorld, until } from "../support/world.ts";

describe("payments that their network touches after their end", () => {
  for (const isArchived of [false, true]) {
    it(`a forced capture is booked, ${isArchived ? "also of an archived agent" : "and flagged"}`, async () => {
      const world = await newWorld();
      const agent = await world.agent({ budgetCents: 100 });
      const { transaction } = await agent.pay({ merchant: "sandbox-forced", amountCents: 100 });
      expect(transaction.status).to.equal("pending");
      const read = () => world.api.ok("getTransaction", 200, { token: world.token, id: transaction.id });
      await until("the authorization has ended", async () => {
        const { transaction: now } = await read();
        return now.status === "failed" ? now : null;
      });
      // The whole budget is free again, and used by another payment.
      if (isArchived) await archive(world, agent);
      else await agent.pay({ merchant: "shop", amountCents: 100 });
      const forced = await until("the capture is booked", async () => {
        const { transaction: now } = await read();
        return now.status === "approved" ? now : null;
      });
      expect(forced.amountCents).to.equal(100);
      if (isArchived) return void (await booksOnceAgreed(world, agent));
      expect(forced.breach).to.deep.include({ level: "agent", limit: "budget", overCents: 100 });
      await until("the agent's record shows it", async () => {
        const { agent: record } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
        return record.spentCents === 200 && record.reservedCents === 0 ? record : null;
      });
    });
  }
});
