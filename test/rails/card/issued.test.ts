import { expect } from "chai";
import type { Db } from "mongodb";
import { REPORTS_MAX } from "../../../src/domain/ledger/books.ts";
import type { Payment } from "../../../src/domain/ledger/payment.ts";
import type { CardNetwork } from "../../../src/engines/card-network/network.ts";
import { IssuerUnusable } from "../../../src/rails/card/connections.ts";
import { CHECK_PREFIX, type IssuedDocument, placeOf } from "../../../src/rails/card/places.ts";
import { COLLECTIONS } from "../../../src/store/documents.ts";
import { newPayment } from "../../chain/support.ts";
import { testDatabase } from "../../support/mongo.ts";
import { type IssuedRail, type IssuedRails, issuedRails } from "./issued-rail.ts";

const profile = { organizationId: "org", projectId: "p", teamId: "t", agentId: "a", name: "Agent" };
const API_KEY = "rk_test_of_steps";
const PERMIT = 5;
const MERCHANT = {
  name: "SHOP",
  category: "book_stores",
  category_code: "5942",
  network_id: "1",
  country: "US",
};
const DAY_MS = 86_400_000;
const HOUR_MS = DAY_MS / 24;

let now = new Date();
const clock = () => now;

const payment = (): Payment => {
  const made = newPayment(1_000, "shop");
  return { ...made, request: { ...made.request, rail: "card" } };
};
const idOf = ({ request }: Payment): string => request.transactionId;

describe("the card rail with a connected issuer", function () {
  this.timeout(120_000);
  let db: Db;
  let close: () => Promise<void>;
  let network: CardNetwork;
  let rails: IssuedRails;
  let process: IssuedRail;

  before(async () => {
    ({ close, db } = await testDatabase());
    rails = await issuedRails(db, API_KEY, clock);
    ({ network } = rails);
    process = rails.open();
  });
  after(() => close());

  const cardsOf = (made: Payment) => rails.cardsOf(idOf(made));
  const changed = async (): Promise<string[]> => {
    const ids: string[] = [];
    for await (const feed of process.rail.feeds()) for await (const page of feed) ids.push(...page);
    return ids;
  };

  const readThrough = async () =>
    (await process.connections.recordOf(profile.organizationId))?.readThrough.getTime() ?? 0;
  /** Reads so many pages of the connections' books at most; returns their number. */
  const pages = async (most: number) => {
    let read = 0;
    for await (const feed of process.cards.feeds())
      for await (const _page of feed) if ((read += 1) === most) return read;
    return read;
  };

  it("a payment that began in the sandbox stays there when an issuer is connected", async () => {
    const early = payment();
    expect((await process.rail.send(profile, early, PERMIT)).status).to.equal("settled");
    await rails.connect(profile.organizationId);
    process = rails.open();
    expect((await process.rail.send(profile, early, PERMIT)).status).to.equal("settled");
    expect(cardsOf(early)).to.deep.equal([]);
    expect((await process.rail.send(profile, payment(), PERMIT)).status).to.equal("armed");
  });

  it("a withdrawal written in the place of a card that the ledger knows of ends no payment", async () => {
    const made = payment();
    const sent = await process.rail.send(profile, made, PERMIT);
    if (sent.status !== "armed") throw new Error("it has a card");
    const known = { ...made, card: sent.card };
    const places = db.collection<{ _id: string }>(COLLECTIONS.sandboxCardLedger);
    const _id = placeOf(idOf(made));
    const order = await places.findOneAndReplace({ _id }, { status: "withheld", createdAt: clock() });
    for (const ask of [() => process.rail.query(known), () => process.rail.withhold(profile, known)])
      expect(await ask().then(JSON.stringify, String)).to.include("card is gone");
    if (order !== null) await places.replaceOne({ _id }, order);
    expect((await process.rail.query(known))?.status).to.equal("armed");
  });

  it("a day of events that were lost, and a yes that no books show, are read later", async () => {
    const [used, asked] = [payment(), payment()];
    for (const made of [used, asked]) await process.rail.send(profile, made, PERMIT);
    network.configure({ lost: 1 });
    await network.authorize(cardsOf(used)[0]?.id ?? "", 1_000, MERCHANT);
    network.configure({ lost: 0 });
    const card = await process.cards.of(idOf(asked));
    if (card === null) throw new Error("no card");
    now = new Date();
    await process.cards.noteAsked(card, now);
    expect(await changed())
      .to.include(idOf(used))
      .and.not.include(idOf(asked));
    now = new Date(now.getTime() + DAY_MS / 2);
    expect(await changed()).to.include.members([idOf(used), idOf(asked)]);
    const books = await process.rail.booksOf(idOf(used));
    expect(books.map(({ isOpen, requests }) => [isOpen, requests])).to.deep.equal([[true, 1]]);
  });

  it("a payment kept as not booked is read again until it is, and not after", async () => {
    const made = payment();
    await process.rail.send(profile, made, PERMIT);
    await process.rail.keepUnbooked(idOf(made));
    now = new Date(now.getTime() + 1);
    for await (const feed of process.rail.feeds())
      for await (const page of feed)
        if (page.includes(idOf(made))) await process.rail.keepUnbooked(idOf(made));
    now = new Date(now.getTime() + 1);
    expect(await changed()).to.include(idOf(made));
    expect(await changed()).not.to.include(idOf(made));
  });

  it("a long absence is read hour by hour, and what was booked before a break is kept", async () => {
    const before = await readThrough();
    now = new Date(now.getTime() + DAY_MS / 2);
    // The first hour overlaps with the last read, and the third one is not booked yet.
    expect(await pages(3)).to.equal(3);
    expect(await readThrough()).to.equal(before + HOUR_MS);
    expect(await pages(Infinity)).to.equal(12);
    expect(await readThrough()).to.equal(now.getTime());
  });

  it("a card whose end or categories only MongoDB has is used for no decision", async () => {
    const made = payment();
    await process.rail.send(profile, made, PERMIT);
    const stored = db.collection<IssuedDocument>(COLLECTIONS.sandboxCardLedger);
    const _id = placeOf(idOf(made));
    const genuine = await stored.findOne({ _id });
    const refusal = { code: "CARD_NOT_ISSUED", reason: "forged" } as const;
    for (const forged of [{ closedAt: now }, { refusal }, { categories: { only: ["7995"], never: [] } }]) {
      await stored.updateOne({ _id }, { $set: forged });
      const asked: unknown = await process.rail.query(made).catch((error: unknown) => error);
      expect(asked, Object.keys(forged).join()).to.be.instanceOf(IssuerUnusable);
      if (genuine !== null) await stored.replaceOne({ _id }, genuine);
    }
    expect(await process.rail.query(made)).to.include({ status: "armed" });
  });

  it("a card tried over and over keeps books that a command takes, with all that was granted", async () => {
    const made = payment();
    await process.rail.send(profile, made, PERMIT);
    const cardId = cardsOf(made)[0]?.id ?? "";
    network.configure({ lost: 1 });
    for (let tried = 0; tried < REPORTS_MAX; tried += 1) await network.authorize(cardId, 9_999, MERCHANT);
    const { id } = await network.authorize(cardId, 1_000, MERCHANT);
    network.configure({ lost: 0 });
    const books = await process.rail.booksOf(idOf(made));
    expect(books.length).to.be.at.most(REPORTS_MAX);
    expect(books.filter(({ isOpen }) => isOpen).map(({ authorization }) => authorization)).to.deep.equal([
      id,
    ]);
  });

  it("no card is made while its connection is being removed", async () => {
    const record = await process.connections.recordOf(profile.organizationId);
    if (record === null) throw new Error("no connection");
    const ending = await process.connections.beginEnding(record);
    const early = payment();
    expect(await process.rail.send(profile, early, PERMIT)).to.include({ code: "CARD_NOT_ISSUED" });
    expect(cardsOf(early)).to.deep.equal([]);
    await process.connections.cancelEnding(record, ending);
    expect((await process.rail.send(profile, payment(), PERMIT)).status).to.equal("armed");
  });

  it("an account that was to be stored is not, where its connection is removed meanwhile", async () => {
    const organizationId = "org-of-another";
    await rails.connect(organizationId);
    const { connections } = process;
    const found = await connections.fresh(organizationId);
    const made = found?.account.made ?? null;
    if (found === null || made === null) throw new Error("no connection");
    const { account, id, record } = found;
    const ending = await connections.beginEnding(record);
    expect(await connections.remove(record, "of another disconnect")).to.equal(false);
    expect(await connections.remove(record, ending)).to.equal(true);
    const place = { id, organizationId, issuer: record.issuer, ending: null };
    expect(await connections.put(place, { ...account, made })).to.equal(false);
    expect(await connections.recordOf(organizationId)).to.equal(null);
  });

  it("a connection check's card is no payment that has changed", async () => {
    const connection = await process.connections.fresh(profile.organizationId);
    if (connection === null) throw new Error("no connection");
    const transactionId = `${CHECK_PREFIX}1`;
    const ordered = { ...profile, transactionId, amountCents: 300 };
    await process.cards.order(ordered, connection, 0);
    const card = await process.cards.of(transactionId);
    if (card === null) throw new Error("no card");
    await process.cards.armed(ordered, card, false);
    const cardRef = (await process.cards.of(transactionId))?.cardRef ?? "";
    await network.authorize(cardRef, 100, MERCHANT);
    expect(await changed()).not.to.include(transactionId);
  });
});
