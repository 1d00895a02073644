import { expect } from "chai";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import type { Account } from "../../../src/engines/card-network/server.ts";
import type { Card, Totals } from "../../../src/engines/card-network/shapes.ts";
import { Random } from "../../../lab/random.ts";
import { eventually } from "../../chain/support.ts";
import { testCardNetwork } from "../../support/card-network.ts";
import { seed } from "../../support/seed.ts";
import { startTestService, type TestService } from "../../support/service.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { elevate, newWorld, type TestAgent, type World } from "../../support/world.ts";
import { MERCHANT, play } from "../stripe/plays.ts";

const KEY = "rk_test_plays1234";
const SECRET = "whsec_authorizations_of_plays";
const PAYMENTS = shortOrSoak(3, 60);
const PLAYS = 14;
const AMOUNT_CENTS = 10_000;

const sum = (totals: readonly Totals[], centsIn: (one: Totals) => number): number =>
  totals.reduce((total, one) => total + centsIn(one), 0);

describe("a card network that does anything", function () {
  this.timeout(600_000);
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  let account: Account;
  let network: CardNetwork;

  before(async () => {
    service = await startTestService();
    account = (await testCardNetwork()).accountOf(KEY);
    ({ network } = account);
    world = await newWorld(service);
    agent = await world.agent({ budgetCents: 1_000_000_000 });
    await elevate(world);
    const body = { apiKey: KEY, authorizationSecret: SECRET };
    const { token } = world;
    const { connection } = await world.api.ok("connectCardIssuer", 200, { token, body });
    network.configure({ authorizationUrl: connection.authorizationUrl, authorizationSecret: SECRET });
  });
  after(async () => {
    network.configure({ authorizationUrl: null });
    await service.stop();
  });

  const cardOf = (transactionId: string): string => {
    const cards = network.store.all<Card>("issuing.card");
    return cards.find(({ metadata }) => metadata["transaction"] === transactionId)?.id ?? "";
  };

  async function played(random: Random): Promise<string> {
    const { transaction } = await agent.pay({ amountCents: AMOUNT_CENTS });
    for (let at = 0; at < PLAYS; at += 1) await play(network, cardOf(transaction.id), random);
    return transaction.id;
  }

  it(`leaves payments and budget as its own books have it (seed ${seed})`, async () => {
    const random = new Random(seed);
    // A repeated request without a number counts as a new one.
    const numbersRequests = random.chance(0.5);
    network.configure({
      numbersRequests,
      standsIn: random.pick(["approve", "decline"]),
      lost: 0.3,
      doubled: 0.2,
      delayMaxMs: 200,
      answersLost: 0.1,
      requestsDoubled: numbersRequests ? 0.2 : 0,
    });
    const ids = await Promise.all(
      Array.from({ length: PAYMENTS }, (_, at) => played(random.fork(String(at)))),
    );
    await account.settled();
    network.configure({ lost: 0, doubled: 0, delayMaxMs: 0, answersLost: 0, requestsDoubled: 0 });
    // Any event has the card read.
    for (const id of ids) await network.authorize(cardOf(id), 0, MERCHANT);
    await account.settled();
    let [spent, held] = [0, 0];
    for (const id of ids) {
      const totals = network.totalsOf(cardOf(id));
      const captured = sum(totals, (one) => one.captured);
      spent += Math.max(0, captured - sum(totals, (one) => one.credited - one.recalled));
      held += sum(totals, (one) => one.held);
      const { transaction } = await world.api.ok("getTransaction", 200, { token: world.token, id });
      const creditedCents = sum(totals, (one) => Math.max(0, one.credited - one.recalled));
      const isUntouched = totals.every((one) => one.captured + one.credited + one.held === 0);
      if (isUntouched && transaction.status === "pending") held += AMOUNT_CENTS;
      expect(transaction.amounts, JSON.stringify(totals)).to.deep.include({
        capturedCents: captured,
        creditedCents,
      });
    }
    await eventually(
      "the budget is used as the network says",
      async () => {
        const { token } = world;
        const { agent: found } = await world.api.ok("getAgent", 200, { token, id: agent.id });
        return found.spentCents === spent && found.reservedCents === held;
      },
      20_000,
    ).catch(async (error: unknown) => {
      const { agent: found } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
      expect({ spent: found.spentCents, held: found.reservedCents }, String(error)).to.deep.equal({
        spent,
        held,
      });
    });
  });
});
