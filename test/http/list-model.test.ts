import { expect } from "chai";
import * as fc from "fast-check";
import { collectionsOf } from "../../src/store/collections.ts";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { definedFields } from "../../src/store/lists.ts";
import { boundKeys, type Placed, populate, transactionOf } from "../support/payments-in-place.ts";
import { seed } from "../support/seed.ts";
import { shortOrSoak } from "../support/soak.ts";
import { newWorld, type World } from "../support/world.ts";

const RUNS = shortOrSoak(25, 80);
const DAY_MS = 86_400_000;
const STATUSES = ["approved", "pending", "denied", "failed", "reversed", "expired"] as const;
const RAILS = ["card", "wallet"] as const;
/** Few instants, so that many payments are made in the same millisecond. */
const AGES_DAYS = [0, 1, 6, 8, 29, 31, 60, 89, 91, 400];

interface Made {
  readonly agent: number;
  readonly rail: (typeof RAILS)[number];
  readonly status: (typeof STATUSES)[number];
  readonly ageDays: number;
  readonly ms: number;
}

const made = fc.record<Made>({
  agent: fc.nat(7),
  rail: fc.constantFrom(...RAILS),
  status: fc.constantFrom(...STATUSES),
  ageDays: fc.constantFrom(...AGES_DAYS),
  ms: fc.nat(2),
});

const whose = fc.constantFrom("none", "none", "none", "home", "home", "away");

const asked = fc.record({
  key: fc.constantFrom("session" as const, "organization" as const, "project" as const, "team" as const),
  // Mostly places that lie in one another, and sometimes ones that do not, or unknown ones.
  home: fc.nat(7),
  away: fc.nat(8),
  agent: whose,
  team: whose,
  project: whose,
  type: fc.option(fc.constantFrom(...RAILS), { nil: undefined }),
  status: fc.option(fc.constantFrom(...STATUSES), { nil: undefined }),
  range: fc.option(fc.constantFrom("7d", "30d", "90d", "all"), { nil: undefined }),
  limit: fc.integer({ min: 1, max: 12 }),
});

/** What happens between two pages: payments are made, and one that is there gets another status. */
const between = fc.record({
  made: fc.array(made, { maxLength: 4 }),
  changed: fc.nat(),
  to: fc.constantFrom(...STATUSES),
});

type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;
type Query = Readonly<Record<string, string>>;

/**
 * Pages against a model: random filters and sizes by credentials of every binding, in which payments are made and change their
 * status between pages. What fitted all the while is met exactly once, what never did is not, and nothing twice.
 */
describe("a walk through the transactions", () => {
  let world: World;
  let placed: readonly Placed[];
  let keys: Awaited<ReturnType<typeof boundKeys>>;

  before(async () => {
    world = await newWorld();
    placed = await populate(world);
    keys = await boundKeys(world, placed);
  });

  const recordOf = ({ agent, ageDays, ms, rail, status }: Made, begun: number): TransactionDocument => {
    const place = placed[agent];
    if (place === undefined) throw new Error("an agent for each number");
    // A second and more away from where a range ends, which moves meanwhile.
    const createdAt = new Date(begun - ageDays * DAY_MS - 60_000 + ms);
    return transactionOf(world.organization.organizationId, place, { rail, status, createdAt });
  };

  /** Ids of the first project, team and agent, and so on; beyond the last one an unknown id. */
  const NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057";
  const queryOf = ({ agent, away, home, project, range, status, team, type }: Asked): Query => {
    const named = (from: string, field: keyof Placed): string | undefined =>
      from === "none" ? undefined : (placed[from === "home" ? home : away]?.[field] ?? NOBODY);
    return definedFields({
      agentId: named(agent, "agentId"),
      teamId: named(team, "teamId"),
      projectId: named(project, "projectId"),
      type,
      status,
      range,
    });
  };

  const RANGES: Readonly<Record<string, number>> = {
    "7d": 7,
    "30d": 30,
    "90d": 90,
    all: Number.POSITIVE_INFINITY,
  };

  /** What the contract says of a record, without any index. */
  const fits = (record: TransactionDocument, query: Query, within: Query, begun: number): boolean => {
    const { range = "all", type, ...same } = query;
    const isSame = [...Object.entries(same), ...Object.entries(within)].every(
      ([field, value]) => record[field] === value,
    );
    const isRecent = record.createdAt.getTime() >= begun - (RANGES[range] ?? 0) * DAY_MS;
    return isSame && isRecent && (type === undefined || record.rail === type);
  };

  const tokenOf = ({ key }: Asked): { readonly token: string; readonly within: Query } =>
    key === "session" ? { token: world.token, within: {} } : keys[key];

  it(`meets whatever fits all the while exactly once, newest first (seed ${String(seed)})`, async () => {
    const { transactions } = collectionsOf(world.service.db);
    const walk = async (
      there: readonly Made[],
      what: Asked,
      events: readonly (typeof between extends fc.Arbitrary<infer T> ? T : never)[],
    ) => {
      await transactions.deleteMany({ organizationId: world.organization.organizationId });
      const begun = Date.now();
      const records = there.map((one) => recordOf(one, begun));
      if (records.length > 0) await transactions.insertMany(records);
      const query = queryOf(what);
      const { token, within } = tokenOf(what);
      /** As each record is by now; and which of them have fitted all the while, or at some time. */
      const now = new Map(records.map((record) => [record._id, record]));
      const always = new Set(
        records.filter((record) => fits(record, query, within, begun)).map(({ _id }) => _id),
      );
      const ever = new Set(always);
      const met: string[] = [];
      let cursor: string | null = null;
      let turn = 0;
      do {
        const page: {
          transactions: readonly { id: string; status: string; createdAt: string }[];
          nextCursor: string | null;
        } = await world.api.ok("listTransactions", 200, {
          token,
          query: { ...query, limit: String(what.limit), ...(cursor === null ? {} : { cursor }) },
        });
        for (const { id, status } of page.transactions) expect(status).to.equal(now.get(id)?.status);
        met.push(...page.transactions.map(({ id }) => id));
        cursor = page.nextCursor;
        const event = events[turn % Math.max(1, events.length)];
        turn += 1;
        if (event === undefined || turn > 50) continue;
        const arriving = event.made.map((one) => recordOf(one, begun));
        if (arriving.length > 0) await transactions.insertMany(arriving);
        for (const record of arriving) now.set(record._id, record);
        const changing = records[event.changed % Math.max(1, records.length)];
        if (changing !== undefined) {
          const changed = { ...(now.get(changing._id) ?? changing), status: event.to };
          await transactions.updateOne({ _id: changing._id }, { $set: { status: event.to } });
          now.set(changing._id, changed);
        }
        for (const record of now.values()) {
          if (fits(record, query, within, begun)) ever.add(record._id);
          else always.delete(record._id);
        }
      } while (cursor !== null);
      expect(new Set(met).size, "none twice").to.equal(met.length);
      expect(
        [...always].filter((id) => !met.includes(id)),
        "none skipped",
      ).to.deep.equal([]);
      expect(
        met.filter((id) => !ever.has(id)),
        "none that never fitted",
      ).to.deep.equal([]);
      const order = met
        .map((id) => now.get(id))
        .map((record) => `${String(record?.createdAt.getTime())} ${String(record?._id)}`);
      expect(order).to.deep.equal(order.toSorted().toReversed());
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(made, { minLength: 10, maxLength: 60 }),
        asked,
        fc.array(between, { maxLength: 4 }),
        walk,
      ),
      { seed, numRuns: RUNS },
    );
  });
});
