import { expect } from "chai";
import { EVENT_TYPES } from "../../../src/domain/events.ts";

describe("the types of events", () => {
  it("have the names that subscribers know", () => {
    const names = [
      "transaction.completed",
      "transaction.denied",
      "transaction.failed",
      "transaction.refunded",
      "transaction.reversed",
      "transaction.disputed",
      "transaction.limit_breached",
      "authorization.approved",
      "authorization.declined",
      "approval.requested",
      "approval.completed",
      "approval.expired",
      "approval.cancelled",
      "agent.created",
      "agent.paused",
      "agent.resumed",
      "agent.archived",
      "funding.deposited",
      "wallet.funded",
      "budget.threshold_reached",
      "billing.payment_failed",
    ];
    expect(EVENT_TYPES).to.deep.equal(names);
  });
});
