import { expect } from "chai";
import { z } from "zod";
import { Random } from "../../lab/random.ts";
import { searchTerms } from "../../src/domain/search-words.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import type { TransactionDocument, TransactionSnapshot } from "../../src/store/documents.ts";
import type { Position } from "../../src/store/newest-reads.ts";
import { searchedBy } from "../../src/store/payment-searches.ts";
import { type Found, readSearched } from "../../src/store/searched-reads.ts";
import { boundKeys, type Placed, populate, transactionOf } from "../support/payments-in-place.ts";
import { seed } from "../support/seed.ts";
import { sharedService } from "../support/service.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";
import { newWorld, times, type World } from "../support/world.ts";
import type { Query } from "./reads.ts";

const ROWS = shortOrSoak(600, 1_500);
const SEARCHES = shortOrSoak(16, 2_000);
/** Payments of one millisecond, which pages and steps of a search have to tell apart. */
const TOGETHER = 30;
const APART_MS = 60_000;

/** Each is in half as many purposes as the one before. */
const WORDS = ["supplies", "order", "orders", "hosting", "Café", "東京電力", "42.50", "rare"];
const SEARCHED = [
  "supp",
  "order",
  "orders",
  "host",
  "cafe",
  "電力",
  "42.50",
  "rare",
  "1",
  "merchant",
  "1.5",
  "never",
];

type Keys = Awaited<ReturnType<typeof boundKeys>>;

describe(`searches of payments (seed ${String(seed)})`, () => {
  const random = new Random(seed);
  let world: World;
  let placed: readonly Placed[];
  let keys: Keys;
  /** Newest first. */
  let records: readonly TransactionDocument[];

  before(async () => {
    world = await newWorld(sharedService());
    placed = await populate(world);
    keys = await boundKeys(world, placed);
    const began = Date.now() - ROWS * APART_MS;
    records = times(ROWS, (index) =>
      transactionOf(world.organization.organizationId, random.pick(placed), {
        createdAt: new Date(began + Math.floor(index / TOGETHER) * TOGETHER * APART_MS),
        recipient: `Merchant ${String(index % 50)}`,
        purpose: ["For", ...WORDS.filter((_word, nth) => random.chance(0.5 ** nth))].join(" "),
        amountCents: random.between(100, 300),
        rail: random.chance(0.2) ? "wallet" : "card",
        status: random.chance(0.1) ? "denied" : "approved",
      }),
    ).toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a._id < b._id ? 1 : -1));
    await collectionsOf(world.service.db).transactions.insertMany([...records]);
  });

  const maybe = (name: string, value: () => string, chance = 0.3): Query =>
    random.chance(chance) ? { [name]: value() } : {};
  const aTime = (): string => random.pick(records).createdAt.toISOString();

  const aQuery = (): Query => ({
    ...maybe("search", () => times(random.between(1, 3), () => random.pick(SEARCHED)).join(" "), 0.8),
    ...maybe("minAmountCents", () => String(random.pick([100, 150, 299, 301]))),
    ...maybe("maxAmountCents", () => String(random.pick([99, 150, 200, 300]))),
    ...maybe("from", aTime),
    ...maybe("to", aTime),
    ...maybe("status", () => "denied"),
    ...maybe("type", () => "wallet"),
    ...maybe("teamId", () => random.pick(placed).teamId),
    ...maybe("agentId", () => random.pick(placed).agentId, 0.1),
  });

  /** The ids that a search should find, by its words' definition alone. */
  const expected = (query: Query, within: object = {}): string[] =>
    records.filter((record) => fits(record, query) && isWithin(record, within)).map(({ _id }) => _id);

  async function walk(query: Query, token = world.token): Promise<string[]> {
    const ids: string[] = [];
    let cursor: Query = {};
    for (;;) {
      const limit = String(random.pick([1, 7, 50, 200]));
      const asked = { ...query, ...cursor, limit: ids.length > 20 ? "200" : limit };
      const page = await world.api.ok("listTransactions", 200, { token, query: asked });
      ids.push(...page.transactions.map(({ id }) => id));
      if (page.nextCursor === null) return ids;
      cursor = { cursor: page.nextCursor };
    }
  }

  it("find exactly what fits, newest first and once, with any filters, within a key's binding", async () => {
    for (const _search of times(SEARCHES, (index) => index)) {
      const [query, key] = [aQuery(), random.pick(Object.values(keys))];
      expect(await walk(query, key.token), JSON.stringify([query, key.within])).to.deep.equal(
        expected(query, key.within),
      );
    }
  });

  it("that end before a page is full go on where they ended", async () => {
    const { organizationId } = world.organization;
    const { shownTransactions: collection } = collectionsOf(world.service.db);
    const rail = ["card", "wallet"] as const;
    for (const search of someOrAll(["rare supplies", "orders hosting", "supp", "1 cafe", "never"], 2)) {
      const searched = await searchedBy(collection, organizationId, { search });
      const ids: string[] = [];
      let [after, calls]: [Position | null, number] = [null, 0];
      do {
        const selection = { collection, equals: { organizationId, rail }, ...searched };
        const found: Found<TransactionSnapshot> =
          searched === null ? { end: null, items: [] } : await readSearched(selection, after, 3, 0);
        ids.push(...found.items.map(({ _id }) => _id));
        [after, calls] = [found.end, calls + 1];
      } while (after !== null);
      expect(ids, search).to.deep.equal(expected({ search }));
      expect(calls, search).to.be.at.most(ROWS);
    }
  });

  it("find a payment by its id, whatever its case, and only in its organization and binding", async () => {
    const other = placed.find(({ teamId }) => teamId !== placed[0]?.teamId);
    const sought = records.find(({ teamId }) => teamId === other?.teamId)?._id ?? "";
    for (const search of [sought, sought.toLowerCase(), ` ${sought} `])
      expect(await walk({ search }), search).to.deep.equal([sought]);
    expect(await walk({ search: sought, minAmountCents: "301" })).to.deep.equal([]);
    expect(await walk({ search: sought }, keys.team.token)).to.deep.equal([]);
    const stranger = await newWorld();
    const { transactions } = await stranger.api.ok("listTransactions", 200, {
      token: stranger.token,
      query: { search: sought },
    });
    expect(transactions).to.deep.equal([]);
  });

  it("take any text as words: patterns match nothing else, and what is no text is refused", async () => {
    const { token } = world;
    for (const search of [
      ".*",
      "^",
      "(",
      "$where: 1",
      '{"$gt":""}',
      "supp.*",
      "[a-z]+",
      "\\",
      "%",
      "ﷺ".repeat(200),
    ])
      expect(await walk({ search }), search).to.deep.equal(expected({ search }));
    for (const search of ["", "  ", "a\u0000b", "x".repeat(201), "x".repeat(10_000)])
      await world.api.refused("listTransactions", 400, "VALIDATION_FAILED", { token, query: { search } });
    await world.api.refused("listTransactions", 400, "VALIDATION_FAILED", { token, query: "search[$ne]=x" });
  });

  it("are exported as they are listed", async () => {
    const query = { search: "order", maxAmountCents: "200", from: aTime() };
    const { body } = await world.api.call("exportTransactions", { token: world.token, query });
    expect(
      [
        ...z
          .string()
          .parse(body)
          .matchAll(/^txn_\w+/gm),
      ].map(([id]) => id),
    ).to.deep.equal(expected(query));
  });
});

const isWithin = (record: object, within: object): boolean =>
  Object.entries(within).every(([field, id]) =>
    Object.entries(record).some(([own, value]) => own === field && value === id),
  );

function fits(record: TransactionDocument, query: Query): boolean {
  const { from, maxAmountCents, minAmountCents, search = "", status, to, type, ...place } = query;
  return (
    searchTerms(search).every((term) => record.words.some((word) => word.startsWith(term))) &&
    record.amountCents >= Number(minAmountCents ?? 0) &&
    record.amountCents <= Number(maxAmountCents ?? Infinity) &&
    (from === undefined || record.createdAt >= new Date(from)) &&
    (to === undefined || record.createdAt < new Date(to)) &&
    (status === undefined || record.status === status) &&
    (type === undefined || record.rail === type) &&
    isWithin(record, place)
  );
}
