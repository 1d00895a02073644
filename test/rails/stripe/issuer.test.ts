import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { moneyIn } from "../../../src/domain/ledger/books.ts";
import { mcOf } from "../../../src/domain/money.ts";
import {
  type Account,
  type RunningCardNetwork,
  startCardNetwork,
} from "../../../src/engines/card-network/server.ts";
import type { Authorization, Dispute } from "../../../src/engines/card-network/shapes.ts";
import { GuardedFetch } from "../../../src/lib/guarded-fetch/guarded-fetch.ts";
import { newId } from "../../../src/lib/ids.ts";
import { type CardIssuer, type IssuerResult, IssuerUnreachable } from "../../../src/payments/card-issuer.ts";
import { simulatedElements, stripeIssuer } from "../../../src/rails/stripe/issuer.ts";
import { Random } from "../../../lab/random.ts";
import { seed } from "../../support/seed.ts";
import { shortOrSoak } from "../../support/soak.ts";
import { CardOwner } from "./owner.ts";
import { cardOf, expectTotals, joinedBooks, MERCHANT, play } from "./plays.ts";

const API_KEY = "rk_test_1";
const AUTHORIZATION_SECRET = "whsec_authorizations";

const good = <T>(result: IssuerResult<T>): T => {
  if (!result.ok) throw new Error(result.refusal.reason);
  return result.value;
};

const order = (amountCents: number, isRepeated = false, transactionId = newId("txn")) => ({
  transactionId,
  agentId: "agent",
  amountCents,
  categories: { only: null, never: [] },
  isRepeated,
});

describe("Stripe's adapter at a network of its own books", function () {
  this.timeout(120_000);
  const fetch = new GuardedFetch({ allowCidrs: ["127.0.0.0/8"], extraCa: null, allowsHttp: true });
  const owner = new CardOwner();
  let running: RunningCardNetwork;
  let account: Account;
  let issuer: CardIssuer;

  const open = (baseUrl = running.url) =>
    stripeIssuer({ name: "stripe", baseUrl, elements: simulatedElements(baseUrl), fetch });
  before(async () => {
    running = await startCardNetwork({ port: 0, folder: null, seed });
    account = running.accountOf(API_KEY);
    const url = await owner.listen();
    const opened = {
      apiKey: API_KEY,
      publishableKey: null,
      made: null,
      authorizationSecret: AUTHORIZATION_SECRET,
    };
    const given = {
      connectionId: "con_1",
      organizationName: "Ünïque 99 Robots & Sons Incorporated",
      eventsUrl: url,
      authorizationUrl: url,
    };
    const made = good(await open().open(opened).setUp(given));
    issuer = open().open({ ...opened, made });
    owner.issuer = issuer;
    account.network.configure({ authorizationUrl: url, authorizationSecret: AUTHORIZATION_SECRET });
    expect(good(await issuer.setUp(given)), "again").to.deep.equal(made);
    expect(made).to.include({ isTest: true, accountId: account.network.id });
  });
  afterEach(() => {
    owner.refusal = null;
    owner.isSilent = false;
  });
  after(async () => {
    await running.close();
    owner.close();
    fetch.close();
  });

  it("makes one card for a payment, limited to its amount, and cancels it for good", async () => {
    const { network } = account;
    const first = order(1_000);
    const card = good(await issuer.arm(first));
    expect(good(await issuer.arm(first)), "the same key").to.deep.equal(card);
    // The key is forgotten after a day.
    network.store.delete("simulator.answer", `answer/${first.transactionId}`);
    expect(good(await issuer.arm({ ...first, isRepeated: true }))).to.deep.equal(card);
    const above = await network.authorize(card.cardRef, 1_001, MERCHANT);
    expect(above.request_history[0]?.reason).to.equal("spending_controls");
    expect((await network.authorize(card.cardRef, 1_000, MERCHANT)).approved).to.equal(true);
    good(await issuer.disarm(card.cardRef));
    good(await issuer.disarm(card.cardRef));
    expect((await network.authorize(card.cardRef, 0, MERCHANT)).request_history[0]?.reason).to.equal(
      "card_canceled",
    );
    const view = good(await issuer.cardView(card.cardRef, "nonce"));
    expect(view.cardRef).to.equal(card.cardRef);
    expect(view.ephemeralKey).to.match(/^ek_test_/);
  });

  it("is asked about each request, and says in words how a trial has ended", async () => {
    const { cardRef } = good(await issuer.arm(order(5_000)));
    owner.messages.length = 0;
    expect(good(await issuer.tryAuthorization(cardRef, 100))).to.deep.include({ isApproved: true });
    owner.refusal = "NOT_ACTIVE";
    expect(good(await issuer.tryAuthorization(cardRef, 200)).reason).to.include("declined");
    const asked = owner.messages.filter(({ kind }) => kind === "request");
    expect(asked.map((each) => each.kind === "request" && each.amountMc)).to.deep.equal([100_000, 200_000]);
    owner.refusal = null;
    account.network.configure({ answerTimeoutMs: 100 });
    owner.isSilent = true;
    const late = good(await issuer.tryAuthorization(cardRef, 100));
    expect(late).to.deep.include({ isApproved: false });
    expect(late.reason).to.include("did not answer within 2 seconds");
    owner.isSilent = false;
    account.network.configure({ answerTimeoutMs: 2_000, authorizationSecret: "whsec_other" });
    expect(good(await issuer.tryAuthorization(cardRef, 100)).reason).to.include("signing secret");
    account.network.configure({ authorizationSecret: AUTHORIZATION_SECRET });
  });

  it("disputes what was captured once, up to the amount", async () => {
    const { network } = account;
    const { cardRef } = good(await issuer.arm(order(5_000)));
    expect((await issuer.dispute(cardRef, { reason: "other", explanation: "x" })).ok).to.equal(false);
    const { id } = await network.authorize(cardRef, 3_000, MERCHANT);
    network.capture(id, 1_000, false);
    network.capture(id, 2_000, true);
    const dispute = { reason: "not_received", explanation: "never came", amountCents: 1_500 } as const;
    good(await issuer.dispute(cardRef, dispute));
    good(await issuer.dispute(cardRef, dispute));
    const made = network.store.all<Dispute>("issuing.dispute");
    expect(made.map(({ amount, status }) => [amount, status])).to.deep.equal([
      [1_000, "submitted"],
      [500, "submitted"],
    ]);
    for (const each of made) network.endDispute(each.id, "won");
    expectTotals(network, cardRef, joinedBooks([await issuer.booksOf(cardRef)]));
    await account.settled();
    const hints = owner.messages.filter((message) => message.kind === "hint" && message.cardRef === cardRef);
    expect(hints.length).to.be.greaterThan(5);
  });

  it(`reads the network's own totals after any plays, and what has changed (seed ${seed})`, async () => {
    const { network } = account;
    const random = new Random(seed);
    const since = new Date();
    const untouched = good(await issuer.arm(order(100))).cardRef;
    const cards: string[] = [];
    for (let at = 0; at < shortOrSoak(3, 60); at += 1)
      cards.push(good(await issuer.arm(order(20_000))).cardRef);
    network.configure({
      amountFalls: random.chance(0.5),
      answersLost: 0.1,
      requestsDoubled: 0.1,
      lost: 0.3,
      doubled: 0.3,
    });
    network.configure({ standsIn: random.pick(["approve", "decline"]) });
    const reads = new Map<string, Awaited<ReturnType<CardIssuer["booksOf"]>>[]>();
    for (const card of cards) {
      for (let at = 0; at < 30; at += 1) {
        owner.refusal = random.chance(0.2) ? "ABOVE_PAYMENT" : null;
        await play(network, card, random);
        if (random.chance(0.2)) reads.set(card, [...(reads.get(card) ?? []), await issuer.booksOf(card)]);
      }
      const last = await issuer.booksOf(card);
      expectTotals(network, card, joinedBooks(random.shuffled([...(reads.get(card) ?? []), last])));
    }
    const changed = new Set<string>();
    for await (const { cardRef } of issuer.changedSince(since)) changed.add(cardRef);
    expect(cards.filter((card) => !changed.has(card))).to.deep.equal([]);
    expect(changed.has(untouched)).to.equal(false);
    expect(good(await issuer.balance())).to.equal(network.availableCents);
    await account.settled();
    network.configure({ answersLost: 0, requestsDoubled: 0, lost: 0, doubled: 0 });
    expect(owner.messages.filter(({ kind }) => kind === "forged").length).to.be.at.most(1);
  });

  it("says of a refused key so, and of an issuer out of reach that nothing is known", async () => {
    const bare = { made: null, publishableKey: null, authorizationSecret: null };
    const refused = await open()
      .open({ ...bare, apiKey: "nonsense" })
      .balance();
    expect(refused).to.have.nested.property("refusal.code", "KEY_REFUSED");
    const nowhere = open("http://127.0.0.1:1").open({ ...bare, apiKey: API_KEY });
    const error: unknown = await nowhere.balance().catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(IssuerUnreachable);
    expect(String(error)).not.to.include("rk_test");
  });

  it("counts what a network did alone when our answer was lost", async () => {
    const { network } = account;
    const { cardRef } = good(await issuer.arm(order(1_000)));
    network.configure({ answersLost: 1, standsIn: "approve" });
    owner.refusal = "NOT_ACTIVE";
    const { approved, id } = await network.authorize(cardRef, 400, MERCHANT);
    network.configure({ answersLost: 0, standsIn: "decline" });
    expect(approved).to.equal(true);
    const [books] = await issuer.booksOf(cardRef);
    expect(books).to.include({ authorization: id, requests: 1, authorizedMc: mcOf(400), isOpen: true });
    expect(moneyIn({ authorizations: books === undefined ? [] : [books], clearances: [] }).heldMc).to.equal(
      mcOf(400),
    );
    expect(network.get<Authorization>("issuing.authorization", id).request_history[0]?.reason).to.equal(
      "webhook_timeout",
    );
  });

  it("has a network that keeps its books when it ends, and each key's apart", async () => {
    const folder = await mkdtemp(join(tmpdir(), "card-network-"));
    const first = await startCardNetwork({ port: 0, folder, seed });
    const card = cardOf(first.accountOf(API_KEY).network, 1_000);
    const { id } = await first.accountOf(API_KEY).network.authorize(card, 700, MERCHANT);
    first.accountOf(API_KEY).network.capture(id, 200, false);
    await first.close();
    const second = await startCardNetwork({ port: 0, folder, seed });
    try {
      const { network } = second.accountOf(API_KEY);
      expect(network.totalsOf(card)).to.deep.equal(first.accountOf(API_KEY).network.totalsOf(card));
      network.capture(id, 500, true);
      expect(network.store.all("issuing.transaction").length, "new ids").to.equal(2);
      expect(second.accountOf("rk_test_2").network.totalsOf(card)).to.deep.equal([]);
    } finally {
      await second.close();
      await rm(folder, { recursive: true });
    }
  });
});
