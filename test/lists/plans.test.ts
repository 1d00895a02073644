import { TEST_ACCESS_PROOFS, TEST_PAYMENT_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Collection, Document, OptionalUnlessRequiredId } from "mongodb";
import { z } from "zod";
import type { ProjectDocument } from "../../src/store/documents.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { RECIPIENT_INDEX } from "../../src/store/projections.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { PaymentRulings } from "../../src/payments/rules/payment-rules.ts";
import type { OperationId } from "../../src/contract/registry.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import {
  approvalOf,
  boundKeys,
  type Placed,
  populate,
  proven,
  transactionOf,
} from "../support/payments-in-place.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { shortOrSoak, someOrAll } from "../support/soak.ts";
import { newWorld, type World } from "../support/world.ts";
import { choices, Profiler, type Query, type Read } from "./reads.ts";

/** Records of each kind. */
const ROWS = shortOrSoak(1_200, 200_000);
const AT_ONCE = 2_000;
const LIMIT = 7;
/** Of each list's combinations, in each run. */
const REQUESTS = 8;
/** What a list is narrowed to is one in so many, so that whatever passes over the others examines far too many. */
const ONE_IN = 40;
const MINUTE_MS = 60_000;

const page = z.looseObject({ nextCursor: z.string().nullable() });

const LIST = { "command.sort": { $exists: true } } as const;

/** Made a minute apart, the first of them last. */
const madeAt = (index: number): Date => new Date(Date.now() - index * MINUTE_MS);
const isRare = (index: number): boolean => index % ONE_IN === ONE_IN - 1;

async function seed<T extends Document>(
  collection: Collection<T>,
  make: (index: number) => OptionalUnlessRequiredId<T>,
): Promise<void> {
  for (let from = 0; from < ROWS; from += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, ROWS - from) }, (_none, index) =>
      make(from + index),
    );
    await collection.insertMany(batch, { ordered: false, writeConcern: { w: 1, journal: false } });
  }
}

/** Keys: twice what is shown and a page, which leaves room for the stretches that a page is merged from. */
function expectFew(reads: readonly Read[], atOnce = LIMIT): void {
  expect(reads.length).to.be.at.least(1);
  for (const each of reads) {
    expect(each.keysExamined, JSON.stringify(each)).to.be.at.most(2 * each.nreturned + atOnce);
    expect(each.docsExamined, JSON.stringify(each)).to.be.at.most(2 * each.nreturned + atOnce);
  }
}

/** Reads follow what is shown, not what there is. A search by name is none of these: it reads every name of its place. */
describe(`lists and rules among ${ROWS.toLocaleString("en")} records of each kind`, function () {
  this.timeout(shortOrSoak(120_000, 1_800_000));
  let service: TestService;
  let world: World;
  let placed: readonly Placed[];
  let rare: Placed;
  let keys: Awaited<ReturnType<typeof boundKeys>>;
  let profiler: Profiler;

  before(async () => {
    service = await startTestService();
    world = await newWorld(service);
    placed = await populate(world);
    const [first] = placed;
    if (first === undefined) throw new Error("somebody lies somewhere");
    rare = first;
    keys = await boundKeys(world, placed, ORGANIZATION_SCOPES);
    profiler = await Profiler.on(service.db);
  });
  after(() => service.stop());

  /** Few lie in the place that lists are narrowed to; all others in another project. */
  const placeOf = (index: number): Placed => {
    const elsewhere = placed.filter(({ projectId }) => projectId !== rare.projectId);
    return index % 3 === 0 ? rare : (elsewhere[index % elsewhere.length] ?? rare);
  };

  /** Two pages of each request, by everybody, and what MongoDB counted. */
  async function pagesOf(collection: string, id: OperationId, queries: readonly Query[]) {
    const callers = [{ token: world.token }, ...Object.values(keys)];
    const requests = callers.flatMap(({ token }) => queries.map((query) => ({ token, query })));
    return profiler.during(collection, LIST, async () => {
      for (const { query, token } of someOrAll(requests, REQUESTS)) {
        const limit = String(LIMIT);
        const first = await world.api.call(id, { token, query: { ...query, limit } });
        expect(first.status, JSON.stringify({ query, body: first.body })).to.equal(200);
        const { nextCursor } = page.parse(first.body);
        if (nextCursor === null) continue;
        const second = await world.api.call(id, { token, query: { ...query, limit, cursor: nextCursor } });
        expect(second.status).to.equal(200);
      }
    });
  }

  const places = () => ({
    agentId: [rare.agentId],
    teamId: [rare.teamId],
    projectId: [rare.projectId],
  });

  it("transactions: any place, rail, status and range, alone and together, under any binding", async () => {
    const { organizationId } = world.organization;
    await seed(collectionsOf(service.db).transactions, (index) =>
      transactionOf(organizationId, placeOf(index), {
        status: isRare(index) ? "failed" : "approved",
        rail: isRare(index + 7) ? "wallet" : "card",
        createdAt: madeAt(index),
      }),
    );
    const queries = choices({ ...places(), type: ["card", "wallet"], status: ["failed"], range: ["7d"] });
    expectFew(await pagesOf(COLLECTIONS.transactions, "listTransactions", queries));
  });

  it("searches: those of a rare word or amount read its payments alone, under any binding", async () => {
    const { transactions } = collectionsOf(service.db);
    const fields = { purpose: "Zebra shop", amountCents: 4_711, createdAt: madeAt(ROWS) };
    await transactions.insertOne(transactionOf(world.organization.organizationId, rare, fields));
    const amount = { minAmountCents: "4711", maxAmountCents: "4711" };
    const queries = [
      { search: "zebra" },
      { search: "shop zeb" },
      { search: "47.11" },
      { search: "shop absent" },
      ...[{}, { status: "approved" }, { search: "shop" }, { maxAmountCents: "5000" }].map((more) => ({
        ...amount,
        ...more,
      })),
    ];
    for (const { token } of someOrAll([{ token: world.token }, ...Object.values(keys)], 2)) {
      for (const query of queries) {
        const reads = await profiler.during(COLLECTIONS.transactions, {}, () =>
          world.api.ok("listTransactions", 200, { token, query: { ...query, limit: String(LIMIT) } }),
        );
        const sum = (of: (read: Read) => number): number =>
          reads.reduce((total, read) => total + of(read), 0);
        expect(
          sum(({ docsExamined }) => docsExamined),
          JSON.stringify(query),
        ).to.be.at.most(LIMIT);
        expect(
          sum(({ keysExamined }) => keysExamined),
          JSON.stringify(query),
        ).to.be.at.most(30 * LIMIT);
      }
    }
  });

  it("approvals, pending and completed: any place, under any binding", async () => {
    const { organizationId } = world.organization;
    await seed(collectionsOf(service.db).approvals, (index) =>
      approvalOf(organizationId, placeOf(index), {
        createdAt: madeAt(index),
        ...(isRare(index) ? {} : { state: "completed", resolution: "expired", resolvedAt: madeAt(0) }),
      }),
    );
    for (const id of ["listPendingApprovals", "listCompletedApprovals"] as const)
      expectFew(await pagesOf(COLLECTIONS.approvals, id, choices(places())));
  });

  it("agents: any place and state, under any binding", async () => {
    const { agents } = collectionsOf(service.db);
    const template = await agents.findOne({ _id: rare.agentId });
    if (template === null) throw new Error("it is there");
    await seed(agents, (index) => {
      const { projectId, teamId } = placeOf(index);
      const lifecycle = isRare(index) ? ("archived" as const) : ("active" as const);
      const own = { _id: randomUUID(), key: null, projectId, teamId, lifecycle, createdAt: madeAt(index) };
      return { ...template, ...own };
    });
    const { projectId, teamId } = places();
    const queries = choices({ projectId, teamId, state: ["active", "paused", "archived"] });
    expectFew(await pagesOf(COLLECTIONS.agents, "listAgents", queries));
  });

  const container = (index: number): ProjectDocument => ({
    _id: randomUUID(),
    organizationId: world.organization.organizationId,
    name: "Seeded",
    description: null,
    color: null,
    logoHash: null,
    createdAt: madeAt(index),
    archivedAt: isRare(index) ? madeAt(0) : null,
    state: isRare(index) ? "archived" : "active",
    proof: "",
    capProof: "",
  });

  it("projects and teams: any project and state, under any binding", async () => {
    const { projects, teams } = collectionsOf(service.db);
    await seed(projects, container);
    await seed(teams, (index) => ({ ...container(index), projectId: placeOf(index).projectId }));
    const state = ["active", "archived"];
    expectFew(await pagesOf(COLLECTIONS.projects, "listProjects", choices({ state })));
    const { projectId } = places();
    expectFew(await pagesOf(COLLECTIONS.teams, "listTeams", choices({ projectId, state })));
  });

  it("new_recipient and duplicate find theirs behind whatever was denied or of other amounts", async () => {
    const { organizationId, projectId, teamId } = world.organization;
    const agent = { agentId: randomUUID(), projectId, teamId };
    const other = { ...agent, agentId: randomUUID() };
    const [shop, sought] = [{ recipient: "Shop", comparedRecipient: "shop" }, { amountCents: 7 }];
    await seed(collectionsOf(service.db).transactions, (index) => {
      const fields = { ...shop, ...sought, createdAt: madeAt(index) };
      if (index === ROWS - 1) return proven(transactionOf(organizationId, agent, fields));
      // Of the one agent all like it were denied, of the other's no other amount is alike.
      if (index % 2 === 0) return transactionOf(organizationId, agent, { ...fields, status: "denied" });
      return proven(transactionOf(organizationId, other, { ...fields, amountCents: 100 + index }));
    });
    const rules = [
      { type: "new_recipient", params: {} },
      { type: "duplicate", params: { windowSeconds: 60 } },
    ];
    const set = { token: world.token, id: projectId, body: { rules, version: 1 } };
    await world.api.ok("setProjectApprovalRules", 200, set);
    const rulings = new PaymentRulings({
      accessProofs: TEST_ACCESS_PROOFS,
      proofs: TEST_PAYMENT_PROOFS,
      collections: collectionsOf(service.db),
      clock: () => new Date(),
    });
    const payment = { rail: "card", recipient: "Shop", amountMc: 7_000, merchantCategory: null } as const;
    const found: [boolean, boolean][] = [];
    const byIndex = { "command.hint": RECIPIENT_INDEX };
    const reads = await profiler.during(COLLECTIONS.transactions, byIndex, async () => {
      for (const { agentId } of [agent, other]) {
        const profile = { organizationId, projectId, teamId, agentId, name: "Agent" };
        const { rules: said } = await rulings.of(profile, payment);
        const like = await rulings.withSimilarPayment(said, agentId, payment);
        const isNew = said?.checks.some(({ type }) => type === "new_recipient") ?? false;
        found.push([isNew, like?.similarAt !== undefined]);
      }
    });
    // Of the one the settled payment, alike, was found; the other's settled ones were, and no like one.
    expect(found).to.deep.equal([
      [false, true],
      [false, false],
    ]);
    expect(reads).to.have.length(4);
    // A page is one record; one more for each of the four statuses that a like payment may have.
    expectFew(reads, 1 + 4);
  });
});
