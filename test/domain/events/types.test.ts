import { expect } from "chai";
import { EVENT_TYPES } from "../../../src/domain/events.ts";

describe("the types of events", () => {
  it("are ten, by the names that subscribers know", () => {
    const names = [
      "transaction.completed",
      "transaction.denied",
      "approval.requested",
      "approval.completed",
      "agent.created",
      "agent.paused",
      "agent.resumed",
      "agent.archived",
      "funding.deposited",
      "billing.payment_failed",
    ];
    expect(EVENT_TYPES).to.deep.equal(names);
  });
});
