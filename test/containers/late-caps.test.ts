import { expect } from "chai";
import { startTestService, type TestService } from "../support/service.ts";
import { outcomeOf, TestBudgets } from "../support/budgets.ts";
import { cardPayment, newWorld, until, type World } from "../support/world.ts";

const CAP = 1_000;

describe("the caps' word comes late", () => {
  let service: TestService;
  let world: World;
  /** While this is not null, the way to the budget is slow. */
  let slow: Promise<void> | null = null;
  before(async () => {
    service = await startTestService({
      decorateEffects: (dependencies) => ({
        ...dependencies,
        caps: {
          async hear(place, report) {
            if (report.asks.length > 0) await slow;
            return dependencies.caps.hear(place, report);
          },
        },
      }),
    });
    world = await newWorld(service);
  });
  after(() => service.stop());

  it("a payment that may never have been on hold can't be cancelled: the caps' refusal ends it", async () => {
    const budgets = new TestBudgets(world);
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    await budgets.setTeam({ capCents: CAP });
    const frozen = new AbortController();
    slow = new Promise((resolve) => frozen.signal.addEventListener("abort", () => resolve()));
    const body = { ...cardPayment(), amountCents: CAP + 1 };
    await world.api.refused("createPayment", 503, "SERVICE_UNAVAILABLE", { token: agent.key, body });
    const id = await until("it is written down as pending", async () => {
      const { payments } = await world.api.ok("listPayments", 200, { token: agent.key });
      return payments[0]?.status === "pending" ? payments[0].id : null;
    });
    await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", { token: agent.key, id });
    frozen.abort();
    slow = null;
    await until("it is denied", async () => {
      const { transaction } = await world.api.ok("getPayment", 200, { token: agent.key, id });
      return transaction.denialCode === "TEAM_CAP_EXCEEDED" ? true : null;
    });
    expect(await outcomeOf(agent, CAP)).to.equal("pending");
  });
});
