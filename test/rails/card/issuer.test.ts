import { expect } from "chai";
import type { Db } from "mongodb";
import type { Card, Cardholder, Transaction } from "../../../src/engines/card-network/shapes.ts";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import { reconcileOn } from "../../../server/admin/reconcile/reconcile.ts";
import { COLLECTIONS, type TransactionDocument } from "../../../src/store/documents.ts";
import type { Backends } from "../../../server/service-options.ts";
import { eventually } from "../../chain/support.ts";
import { issuersAt, testCardNetwork } from "../../support/card-network.ts";
import { restricting } from "../../support/restrictions.ts";
import { startTestService, type TestService } from "../../support/service.ts";
import { elevate, newWorld, type TestAgent, times, type World } from "../../support/world.ts";

const KEY = "rk_test_abcd1234efgh";
const SECRET = "whsec_authorizations_of_a_test";
const SHOP = {
  name: "ROCKET RIDES",
  category: "taxicabs_limousines",
  category_code: "4121",
  network_id: "1",
  country: "US",
};

/** Organization whose ledgers do not answer requests to authorize, and how many they were asked. */
let silent: string | null = null;
let unanswered = 0;
const silencing = (backends: Backends): Backends => {
  const { ledgers } = backends;
  const submit = ledgers.submit.bind(ledgers);
  ledgers.submit = (project, command, options) => {
    if (command.kind !== "authorize" || project.organizationId !== silent)
      return submit(project, command, options);
    unanswered += 1;
    return new Promise(() => undefined);
  };
  return backends;
};

describe("cards of a connected issuer", function () {
  this.timeout(120_000);
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  let network: CardNetwork;
  let db: Db;

  before(async () => {
    service = await startTestService({ decorateBackends: silencing });
    ({ network } = (await testCardNetwork()).accountOf(KEY));
    ({ db } = service);
    world = await newWorld(service);
    agent = await world.agent({ budgetCents: 100_000 });
    await elevate(world);
    const { connection } = await connect({ apiKey: KEY });
    await connect({ authorizationSecret: SECRET });
    network.configure({ authorizationUrl: connection.authorizationUrl, authorizationSecret: SECRET });
  });
  after(async () => {
    network.configure({ authorizationUrl: null });
    await service.stop();
  });

  afterEach(() => {
    silent = null;
    network.configure({ answerTimeoutMs: 2_000, standsIn: "decline", authorizationSecret: SECRET });
  });

  const connect = (body: object) => world.api.ok("connectCardIssuer", 200, { token: world.token, body });
  const cardOf = (transactionId: string): Card => {
    const cards = network.store.all<Card>("issuing.card");
    const card = cards.find(({ metadata }) => metadata["transaction"] === transactionId);
    if (card === undefined) throw new Error(`${transactionId} has no card`);
    return card;
  };
  const armed = async (fields: object = {}) => {
    const paid = await agent.pay({ amountCents: 1_000, ...fields });
    return { ...paid, id: paid.transaction.id, cardId: cardOf(paid.transaction.id).id };
  };
  const read = (id: string) => world.api.ok("getPayment", 200, { token: agent.key, id });
  const becomes = (id: string, expected: object) =>
    eventually(`${id} is ${JSON.stringify(expected)}`, async () => {
      const { status, stage } = (await read(id)).transaction;
      return JSON.stringify({ status, stage }) === JSON.stringify(expected);
    });
  const refusalOf = async (cardId: string, amount: number) => {
    const { approved, request_history: requests } = await network.authorize(cardId, amount, SHOP);
    return approved ? null : (requests.at(-1)?.reason ?? "");
  };
  const closed = (id: string) =>
    eventually("the card is closed", () => Promise.resolve(cardOf(id).status === "canceled"));

  it("a payment waits on a card of its own, is asked for, charged, and its card closed", async () => {
    const { card, cardId, id, transaction } = await armed();
    expect([transaction.status, transaction.stage]).to.deep.equal(["pending", "armed"]);
    expect(card).to.deep.include({ last4: cardOf(id).last4 });
    const { id: authorization } = await network.authorize(cardId, 1_000, SHOP);
    await becomes(id, { status: "pending", stage: "authorized" });
    network.capture(authorization, 700, true);
    await becomes(id, { status: "approved", stage: "captured" });
    expect((await read(id)).transaction.amounts).to.deep.include({
      requestedCents: 1_000,
      capturedCents: 700,
    });
    await closed(id);
    await eventually("both events are told", async () => {
      const { events } = await world.api.ok("getTransactionStory", 200, { token: world.token, id });
      const types = events.map(({ type }) => type);
      return types.includes("authorization.approved") && types.includes("transaction.completed");
    });
    const charge = network.store
      .all<Transaction>("issuing.transaction")
      .find(({ card: of }) => of === cardId);
    network.refund(charge?.id ?? "", null);
    await becomes(id, { status: "reversed", stage: "captured" });
  });

  it("no request is granted from a pause's answer on, and again from a resume's", async () => {
    const { cardId, id } = await armed();
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    expect(await refusalOf(cardId, 500)).to.equal("webhook_declined");
    await world.api.ok("resumeAgent", 200, { token: world.token, id: agent.id });
    expect(await refusalOf(cardId, 500)).to.equal(null);
    await becomes(id, { status: "pending", stage: "authorized" });
    await eventually("one refusal is told", async () => {
      const { events } = await world.api.ok("getTransactionStory", 200, { token: world.token, id });
      return events.filter(({ type }) => type === "authorization.declined").length === 1;
    });
  });

  it("a card has the categories of its time as far as its issuer knows them, and declines them", async () => {
    const other = await world.agent();
    const id = other.id;
    const forbidding = (version: number, ...never: string[]) => ({
      token: world.token,
      id,
      body: restricting({ merchantCategories: { only: null, never, uncoded: "allow" } }, version),
    });
    await world.api.ok("setAgentRestrictions", 200, forbidding(1, "4121", "4511"));
    const paid = await other.pay({ amountCents: 1_000 });
    const card = cardOf(paid.transaction.id);
    expect(card.spending_controls).to.deep.include({ blocked_categories: ["taxicabs_limousines"] });
    expect(await refusalOf(card.id, 500)).to.equal("spending_controls");
    await world.api.ok("setAgentRestrictions", 200, forbidding(2));
    const allowed = await other.pay({ amountCents: 1_000 });
    expect(await refusalOf(cardOf(allowed.transaction.id).id, 500)).to.equal(null);
  });

  for (const [what, restrictions, refusal] of [
    [
      "category is forbidden",
      { merchantCategories: { only: null, never: ["4121"], uncoded: "allow" } },
      "webhook_declined",
    ],
    ["name is forbidden", { recipients: { only: null, never: ["Rocket Rides"] } }, "webhook_declined"],
    ["agreed name is allowed", { recipients: { only: ["shop"], never: [] } }, null],
  ] as const)
    it(`a request of a merchant whose ${what} by now is ${refusal === null ? "granted" : "declined"}`, async () => {
      const other = await world.agent();
      const paid = await other.pay({ amountCents: 1_000 });
      const body = restricting(restrictions);
      await world.api.ok("setAgentRestrictions", 200, { token: world.token, id: other.id, body });
      expect(await refusalOf(cardOf(paid.transaction.id).id, 500)).to.equal(refusal);
    });

  it("a ledger that is silent declines in time", async () => {
    const { cardId } = await armed();
    silent = world.organization.organizationId;
    const began = performance.now();
    expect(await refusalOf(cardId, 500)).to.equal("webhook_declined");
    expect(performance.now() - began).to.be.below(2_000);
  });

  it("a burst at a silent ledger is declined, and delays no other organization's requests", async () => {
    const own = await newWorld(service);
    await elevate(own);
    const key = "rk_test_of_another_burst";
    const { token } = own;
    const { connection } = await own.api.ok("connectCardIssuer", 200, { token, body: { apiKey: key } });
    await own.api.ok("connectCardIssuer", 200, { token, body: { authorizationSecret: SECRET } });
    const { network: its } = (await testCardNetwork()).accountOf(key);
    const { authorizationUrl } = connection;
    its.configure({ authorizationUrl, authorizationSecret: SECRET });
    await (await own.agent()).pay({ amountCents: 1_000 });
    const [card] = its.store.all<Card>("issuing.card");
    const { cardId } = await armed();
    // The network's own timeout, which a busy machine can pass, is no part of what is tested.
    network.configure({ answerTimeoutMs: 10_000 });
    silent = world.organization.organizationId;
    unanswered = 0;
    let isOver = false;
    const burst = Promise.all(times(100, () => refusalOf(cardId, 1))).finally(() => (isOver = true));
    await eventually("as many are decided as may be", () => Promise.resolve(unanswered === 64));
    const { approved } = await its.authorize(card?.id ?? "", 1_000, SHOP);
    expect([approved, isOver]).to.deep.equal([true, false]);
    expect(new Set(await burst)).to.deep.equal(new Set(["webhook_declined"]));
  });

  it("cancelled, its amount is free at once and its card closed", async () => {
    const { id } = await armed();
    const { transaction } = await world.api.ok("cancelPayment", 200, { token: agent.key, id });
    expect(transaction).to.deep.include({
      status: "denied",
      denialCode: "CANCELLED_BY_AGENT",
      stage: "released",
    });
    await closed(id);
  });

  it("a payment with an open authorization agrees with its ledger, and is charged once repaired", async () => {
    const { cardId, id } = await armed();
    const { id: authorization } = await network.authorize(cardId, 1_000, SHOP);
    await becomes(id, { status: "pending", stage: "authorized" });
    const running = await testCardNetwork();
    const reconciled = (repair: boolean) =>
      reconcileOn(service.connections, service.env, {
        organizationId: world.organization.organizationId,
        repair,
        patienceMs: 0,
        onProgress: () => undefined,
        cardIssuers: issuersAt(running),
      });
    const differing = async () =>
      (await reconciled(false)).differences.filter((each) => each.id === id).map(({ what }) => what);
    expect(await differing()).to.deep.equal([]);
    const records = db.collection<TransactionDocument>(COLLECTIONS.transactions);
    await records.updateOne({ _id: id }, { $set: { status: "approved" } });
    expect((await reconciled(true)).repaired.map((each) => each.id)).to.deep.equal([id]);
    expect(await differing()).to.deep.equal([]);
    network.capture(authorization, 700, true);
    await becomes(id, { status: "approved", stage: "captured" });
  });

  it("a payment's record moved to another organization in MongoDB opens no card there", async () => {
    const { id } = await armed();
    await connect({ publishableKey: "pk_test_of_a_page" });
    const thief = await newWorld(service);
    await elevate(thief);
    const moved = async (of: World) => {
      const { organizationId } = of.organization;
      const records = db.collection<TransactionDocument>(COLLECTIONS.transactions);
      await records.updateOne({ _id: id }, { $set: { organizationId } });
    };
    await moved(thief);
    const asked = { token: thief.token, id };
    await thief.api.refused("viewCard", 404, "NOT_FOUND", { ...asked, body: { nonce: "n" } });
    const dispute = { reason: "other", explanation: "Not ours." };
    await thief.api.refused("disputeTransaction", 404, "NOT_FOUND", { ...asked, body: dispute });
    await moved(world);
    await world.api.ok("viewCard", 200, { token: world.token, id, body: {} });
  });

  it("stopped for good, the cards of all that waits are closed", async () => {
    const other = await world.agent();
    const { transaction } = await other.pay({ amountCents: 1_000 });
    const { teamId } = world.organization;
    await world.api.ok("stopTeam", 200, { token: world.token, id: teamId, body: { revokeKeys: true } });
    await closed(transaction.id);
    const after = await world.api.ok("getTransaction", 200, { token: world.token, id: transaction.id });
    expect(after.transaction).to.deep.include({ status: "denied", denialCode: "AGENT_PAUSED" });
  });

  it("messages without a good signature do nothing: 401, and 404 of no connection", async () => {
    const { connection } = await connect({});
    const headers = { "stripe-signature": `t=${Math.floor(Date.now() / 1_000)},v1=${"0".repeat(64)}` };
    const post = async (url: string) =>
      (await fetch(url, { method: "POST", headers, body: '{"type":"issuing_authorization.request"}' }))
        .status;
    expect(await post(connection.authorizationUrl)).to.equal(401);
    expect(await post(connection.eventsUrl)).to.equal(401);
    const unknown = connection.eventsUrl.replace(connection.id, `rail_${"0".repeat(26)}`);
    expect(await post(unknown)).to.equal(404);
  });

  it("the check says what the network does with an approval, a refusal, and without an answer", async () => {
    const { token } = world;
    const check = async () => {
      const checked = await world.api.ok("checkCardIssuer", 200, { token });
      const { approved, isWorking, refused } = checked;
      const { connection } = await world.api.ok("listRails", 200, { token });
      const isApproved = [approved, refused, checked.unanswered].map((trial) => trial.isApproved);
      return { isWorking, isApproved, onTimeout: connection?.timeoutCheck?.isApproved ?? null, approved };
    };
    expect(await check()).to.deep.include({
      isWorking: true,
      isApproved: [true, false, false],
      onTimeout: false,
    });
    network.configure({ standsIn: "approve" });
    expect(await check()).to.deep.include({
      isWorking: false,
      isApproved: [true, false, true],
      onTimeout: true,
    });
    network.configure({ standsIn: "decline", authorizationSecret: "whsec_another_secret" });
    const unverified = await check();
    expect(unverified).to.deep.include({ isWorking: false, onTimeout: null });
    expect(unverified.approved.reason).to.include("signing secret");
  });

  it("its owner sees what is connected, and no answer or record has the key", async () => {
    const { token } = world;
    const shown = await world.api.ok("listRails", 200, { token });
    expect(shown.rails).to.deep.include({ card: "test" });
    expect(shown.connection).to.deep.include({
      cardIssuer: "stripe",
      keyHint: "efgh",
      hasAuthorizationSecret: true,
    });
    expect(shown.balanceCents).to.be.a("number");
    const records = [shown, await db.collection(COLLECTIONS.cardConnections).find().toArray()];
    for (const secret of [KEY, SECRET]) expect(JSON.stringify(records)).not.to.include(secret);
  });

  it("a top-up fires funding.deposited, whichever organization has signed one of its id before", async () => {
    const own = await newWorld(service);
    await elevate(own);
    await own.api.ok("connectCardIssuer", 200, { token: own.token, body: { apiKey: KEY } });
    network.topUp(12_345);
    for (const { organizationId } of [own.organization, world.organization])
      await eventually("it is told", async () => {
        const found = await db
          .collection(COLLECTIONS.events)
          .findOne({ organizationId, type: "funding.deposited" });
        return found !== null && JSON.stringify(found["data"]).includes("12345");
      });
    await own.api.ok("disconnectCardIssuer", 204, { token: own.token });
  });

  it("a key of another mode of the same account does not replace the connected one", async () => {
    network.configure({ isLive: true });
    await world.api.refused("connectCardIssuer", 409, "RAIL_IN_USE", {
      token: world.token,
      body: { apiKey: KEY },
    });
    network.configure({ isLive: false });
  });

  it("a charge that only the issuer knows is found by the reconciliation, and on whose card", async () => {
    const own = await newWorld(service);
    await elevate(own);
    const key = "rk_test_of_reconciliation";
    await own.api.ok("connectCardIssuer", 200, { token: own.token, body: { apiKey: key } });
    const running = await testCardNetwork();
    const { network: its } = running.accountOf(key);
    const { id: cardholder } = its.store.all<Cardholder>("issuing.cardholder")[0] ?? { id: "" };
    const buyer = await own.agent();
    const { transaction } = await buyer.pay({ amountCents: 1_000 });
    const paidOn = its.store.all<Card>("issuing.card")[0];
    const differing = async () =>
      (
        await reconcileOn(service.connections, service.env, {
          organizationId: own.organization.organizationId,
          repair: false,
          patienceMs: 0,
          onProgress: () => undefined,
          cardIssuers: issuersAt(running),
        })
      ).differences
        .filter(({ kind }) => kind === "card_issuer_differs")
        .map(({ id }) => id);
    expect(await differing()).to.deep.equal([]);
    its.configure({ lost: 1 });
    its.forceCapture(paidOn?.id ?? "", 400, SHOP);
    const made = its.addCard({
      cardholder: its.get<Cardholder>("issuing.cardholder", cardholder),
      metadata: {},
      spending_controls: { spending_limits: [] },
      status: "active",
    });
    its.forceCapture(made.id, 700, SHOP);
    expect((await differing()).toSorted()).to.deep.equal([made.id, transaction.id].toSorted());
  });
});
