import { expect } from "chai";
import { sharedService, type TestOrganization, type TestService } from "../support/service.ts";

describe("payments over HTTP", () => {
  let service: TestService;
  let organization: TestOrganization;

  before(async () => {
    service = await sharedService();
    organization = await service.organization();
  });

  it("100 payments of 1.00 at once on a budget of 50.00: exactly 50 approved and processed", async () => {
    const { apiKey, agent } = await service.api.createAgent(organization.token, organization.teamId, {
      budgetCents: 5_000,
    });
    const paid = await Promise.all(Array.from({ length: 100 }, () => service.api.pay(apiKey)));
    const approved = paid.filter(({ transaction }) => transaction.status === "approved");
    const denied = paid.filter(({ transaction }) => transaction.denialCode === "BUDGET_EXCEEDED");
    expect([approved.length, denied.length]).to.deep.equal([50, 50]);
    const ids = approved.map(({ transaction }) => transaction.id);
    const entries = await service.db
      .collection("sandbox_card_ledger")
      .find({ organizationId: organization.organizationId })
      .toArray();
    expect(entries.map((entry) => String(entry["transactionId"])).toSorted()).to.deep.equal(ids.toSorted());
    expect(entries.reduce((sum, entry) => sum + Number(entry["amountCents"]), 0)).to.equal(5_000);
    const { body } = await service.api.call("GET", `/v1/agents/${agent.id}`, { token: organization.token });
    expect(body).to.nested.include({ "agent.spentCents": 5_000, "agent.reservedCents": 0 });
  });
});
