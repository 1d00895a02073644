import { expect } from "chai";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import type { Card, Endpoint } from "../../../src/engines/card-network/shapes.ts";
import {
  type CardIssuer,
  type CardIssuerKind,
  IssuerUnreachable,
} from "../../../src/payments/card-issuer.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import { eventually } from "../../chain/support.ts";
import { issuersAt, testCardNetwork } from "../../support/card-network.ts";
import { startTestService, type TestService } from "../../support/service.ts";
import { elevate, newWorld, type TestAgent, type World } from "../../support/world.ts";
import { gate } from "../../workflows/support/doubles.ts";

/** A disconnect that has removed the endpoint at the issuer, and goes on, or fails, once it is woken. */
class Stall {
  readonly reached = gate();
  readonly wake = gate();
  isFailing = false;
}

/** Stalls of the next disconnects, first one first. */
const stalls: Stall[] = [];
const stalled = (): Stall => {
  const stall = new Stall();
  stalls.push(stall);
  return stall;
};

/** The issuer's call that does not get through at present. */
let broken: "arm" | "disarm" | null = null;

const reach = (call: typeof broken): void => {
  if (broken === call) throw new IssuerUnreachable("a test");
};

const disturbed = (kind: CardIssuerKind): CardIssuerKind => ({
  ...kind,
  open(account) {
    const issuer: CardIssuer = kind.open(account);
    const [arm, disarm, tearDown] = [
      issuer.arm.bind(issuer),
      issuer.disarm.bind(issuer),
      issuer.tearDown.bind(issuer),
    ];
    return Object.assign(issuer, {
      arm: async (...given: Parameters<typeof arm>) => {
        reach("arm");
        return arm(...given);
      },
      disarm: async (...given: Parameters<typeof disarm>) => {
        reach("disarm");
        return disarm(...given);
      },
      tearDown: async () => {
        const tornDown = await tearDown();
        const stall = stalls.shift();
        stall?.reached.open();
        await stall?.wake.opened;
        if (stall?.isFailing === true) throw new IssuerUnreachable("a test");
        return tornDown;
      },
    });
  },
});

interface Connected {
  readonly own: World;
  readonly network: CardNetwork;
  readonly buyer: TestAgent;
}

const cardsIn = ({ store }: CardNetwork): readonly Card[] => store.all<Card>("issuing.card");

const disconnects = ({ api, token }: World) =>
  eventually(
    "it is disconnected",
    async () => (await api.call("disconnectCardIssuer", { token })).status === 204,
  );

/** Cancels a payment whose card waits, and awaits the card's end. */
async function cancelled({ buyer, network, own }: Connected, id: string): Promise<void> {
  await own.api.ok("cancelPayment", 200, { token: buyer.key, id });
  await eventually("its card is closed", () =>
    Promise.resolve(cardsIn(network).every(({ status }) => status === "canceled")),
  );
}

describe("disconnecting a card issuer", function () {
  this.timeout(120_000);
  let service: TestService;

  before(async () => {
    const cardIssuers = issuersAt(await testCardNetwork()).map(disturbed);
    service = await startTestService({ cardIssuers });
  });
  after(() => service?.stop());
  afterEach(() => {
    broken = null;
  });

  /** An organization with an account of its own. */
  async function connected(name: string): Promise<Connected> {
    const own = await newWorld(service);
    await elevate(own);
    const apiKey = `rk_test_of_${name}`;
    await own.api.ok("connectCardIssuer", 200, { token: own.token, body: { apiKey } });
    const { network } = (await testCardNetwork()).accountOf(apiKey);
    return { own, network, buyer: await own.agent() };
  }

  const connectionOf = ({ organization: { organizationId } }: World) =>
    service.db.collection(COLLECTIONS.cardConnections).findOne({ organizationId });

  it("is refused while a card is open", async () => {
    const all = await connected("open_cards");
    const { buyer, own } = all;
    const { transaction } = await buyer.pay({ amountCents: 1_000 });
    await own.api.refused("disconnectCardIssuer", 409, "RAIL_IN_USE", { token: own.token });
    await cancelled(all, transaction.id);
    await disconnects(own);
    const sandboxed = await buyer.pay({ amountCents: 100 });
    expect(sandboxed).to.deep.include({ card: null });
    expect(sandboxed.transaction.status).to.equal("approved");
  });

  for (const call of ["arm", "disarm"] as const)
    it(`is no worse for a check whose call to ${call} its trial card did not get through`, async () => {
      const { own } = await connected(`cut_short_${call}`);
      const { api, token } = own;
      broken = call;
      await api.refused("checkCardIssuer", 503, "SERVICE_UNAVAILABLE", { token });
      broken = null;
      await api.ok("disconnectCardIssuer", 204, { token });
    });

  it("a crash amid it leaves no cards until it is repeated or the owner connects again", async () => {
    const all = await connected("crash");
    const { buyer, network, own } = all;
    const { api, token } = own;
    const { organizationId } = own.organization;
    const connections = service.db.collection(COLLECTIONS.cardConnections);
    /** Leaves the connection as a process does that dies between a disconnect's two writes. */
    const crash = () => connections.updateOne({ organizationId }, { $set: { ending: "of a process" } });
    await crash();
    const refusedOne = await buyer.pay({ amountCents: 100 });
    const { status } = refusedOne.transaction;
    expect([status, refusedOne.card, cardsIn(network).length]).to.deep.equal(["failed", null, 0]);
    await api.ok("connectCardIssuer", 200, { token, body: {} });
    const { transaction } = await buyer.pay({ amountCents: 100 });
    expect([transaction.stage, cardsIn(network).length]).to.deep.equal(["armed", 1]);
    await cancelled(all, transaction.id);
    await eventually("it is disconnected", async () => {
      await crash();
      return (await api.call("disconnectCardIssuer", { token })).status === 204;
    });
    expect(await connectionOf(own)).to.equal(null);
  });

  it("leaves a connection alone that its owner connects again meanwhile, with its endpoint", async () => {
    const all = await connected("race_with_connect");
    const { buyer, network, own } = all;
    const { api, token } = own;
    const stall = stalled();
    const disconnecting = api.refused("disconnectCardIssuer", 409, "RAIL_IN_USE", { token });
    await stall.reached.opened;
    await api.ok("connectCardIssuer", 200, { token, body: {} });
    const { transaction } = await buyer.pay({ amountCents: 100 });
    expect(transaction.stage).to.equal("armed");
    stall.wake.open();
    await disconnecting;
    expect(await connectionOf(own)).to.have.property("ending", null);
    expect(network.store.all<Endpoint>("webhook_endpoint")).to.have.lengthOf(1);
    await cancelled(all, transaction.id);
    await disconnects(own);
  });

  it("that fails does not let cards be made amid another one", async () => {
    const { buyer, network, own } = await connected("two_at_once");
    const { api, token } = own;
    const [first, second] = [stalled(), stalled()];
    first.isFailing = true;
    const failing = api.refused("disconnectCardIssuer", 503, "SERVICE_UNAVAILABLE", { token });
    await first.reached.opened;
    const disconnecting = api.ok("disconnectCardIssuer", 204, { token });
    await second.reached.opened;
    first.wake.open();
    await failing;
    const { card, transaction } = await buyer.pay({ amountCents: 100 });
    expect([transaction.status, card, cardsIn(network).length]).to.deep.equal(["failed", null, 0]);
    second.wake.open();
    await disconnecting;
    expect(await connectionOf(own)).to.equal(null);
  });
});
