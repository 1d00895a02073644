import { expect } from "chai";
import type { Card } from "../../../src/engines/card-network/shapes.ts";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import { eventually } from "../../chain/support.ts";
import { testCardNetwork } from "../../support/card-network.ts";
import { startTestService, type TestService } from "../../support/service.ts";
import { elevate, newWorld, type World } from "../../support/world.ts";
import { MERCHANT } from "../stripe/plays.ts";

const KEY = "rk_test_of_waiting_cards";

describe("a card that nobody charges", function () {
  this.timeout(60_000);
  let service: TestService;
  let world: World;
  let network: CardNetwork;

  before(async () => {
    service = await startTestService({ settings: { CARD_READY_SECONDS: "2" }, sweepAfterSeconds: 1 });
    world = await newWorld(service);
    ({ network } = (await testCardNetwork()).accountOf(KEY));
    await elevate(world);
    await world.api.ok("connectCardIssuer", 200, { token: world.token, body: { apiKey: KEY } });
  });
  after(() => service.stop());

  it("is closed at its issuer when its time has passed, and its payment ends NOT_CHARGED", async () => {
    const { token } = world;
    const agent = await world.agent();
    const { card, transaction } = await agent.pay({ amountCents: 1_000 });
    const { id } = transaction;
    expect([transaction.status, card?.stage]).to.deep.equal(["pending", "armed"]);
    const [issued] = network.store.all<Card>("issuing.card");
    expect(issued).to.deep.include({ status: "active", metadata: { agent: agent.id, transaction: id } });
    const read = async () => (await world.api.ok("getTransaction", 200, { token, id })).transaction;
    await eventually("it has ended", async () => (await read()).status !== "pending");
    expect(Date.now()).to.be.at.least(Date.parse(card?.readyUntil ?? ""));
    expect(await read()).to.deep.include({
      status: "failed",
      denialCode: "NOT_CHARGED",
      stage: "released",
    });
    await eventually("its amount is free", async () => {
      const { agent: found } = await world.api.ok("getAgent", 200, { token, id: agent.id });
      return found.reservedCents === 0 && found.spentCents === 0;
    });
    await eventually("its card is closed", () =>
      Promise.resolve(network.store.all<Card>("issuing.card")[0]?.status === "canceled"),
    );
    const { approved, request_history: requests } = await network.authorize(issued?.id ?? "", 500, MERCHANT);
    expect([approved, requests.at(-1)?.reason]).to.deep.equal([false, "card_canceled"]);
  });
});
