import { expect } from "chai";
import { MongoClient } from "mongodb";
import { median } from "../../lab/bench/statistics.ts";
import { type Seeded, seedTransactions } from "../../lab/bench/lists/seed.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { timed } from "../support/in-time.ts";
import { requiredSetting } from "../support/shared-engines.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { newWorld, organizationKey, times, type World } from "../support/world.ts";
import type { Query } from "./reads.ts";

const ROWS = Number(process.env["TEST_ROWS"] ?? 1_000_000);
const AGENTS = 1_000;
const ROUNDS = 9;
const SEARCH_MS_MAX = 300;
const DAY_MS = 86_400_000;

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

/** A page of each kind of search, through the service, by the organization's key and by one of a team. */
describe(`searches among ${ROWS.toLocaleString("en")} payments of one organization`, function () {
  this.timeout(1_800_000);
  let service: TestService;
  let world: World;
  let seeded: Seeded;

  before(async () => {
    service = await startTestService();
    world = await newWorld(service);
    const mongo = await MongoClient.connect(requiredSetting("TEST_MONGODB_URI"));
    try {
      seeded = await seedTransactions({
        patient: mongo.db(service.db.databaseName),
        organizationId: world.organization.organizationId,
        rows: ROWS,
        agents: AGENTS,
        onProgress: () => undefined,
      });
    } finally {
      await mongo.close();
    }
  });
  after(() => service.stop());

  /** Kinds of searches, from the cheapest to those that no index serves by itself. */
  async function searches(): Promise<Readonly<Record<string, Query>>> {
    const { shownTransactions } = collectionsOf(service.db);
    const { projectId } = seeded.small;
    const elsewhere = await shownTransactions.findOne({ projectId: { $ne: projectId } });
    const [, ofProject = ""] = /project (\w+)/.exec(elsewhere?.purpose ?? "") ?? [];
    const exact = { minAmountCents: "12345", maxAmountCents: "12345" };
    const month = { from: daysAgo(60), to: daysAgo(30) };
    return {
      "common word": { search: "supplies" },
      "common word, typed in part": { search: "supp" },
      "one letter": { search: "s" },
      "beginning of many rare words": { search: "123" },
      "rare word": { search: String(Math.floor(ROWS / 2)) },
      "no such word": { search: "nonexistent" },
      "two common words": { search: "merchant supplies" },
      "common and rare word": { search: `supplies ${String(Math.floor(ROWS / 3))}` },
      "merchant by two words": { search: "merchant 4711" },
      "two common words that never meet": { search: "merchant 0x70997970C51812dc3A010C7d01b50e0d17dc79C8" },
      "amount as a word": { search: "123.45" },
      "exact amount": exact,
      "narrow amounts": { minAmountCents: "12300", maxAmountCents: "12400" },
      "wide amounts": { minAmountCents: "20000", maxAmountCents: "30000" },
      "no such amount": { minAmountCents: "60000" },
      id: { search: elsewhere?._id ?? "" },
      "word, status": { search: "supplies", status: "failed" },
      "word, amounts, dates, status": {
        search: "merchant",
        ...month,
        minAmountCents: "10000",
        maxAmountCents: "12000",
        status: "denied",
      },
      "word, amounts, dates, project": {
        search: "supplies",
        ...month,
        minAmountCents: "10000",
        maxAmountCents: "10100",
        projectId,
      },
      "word, agent": { search: "supplies", agentId: seeded.small.agentId },
      "word of other projects, project": { search: ofProject, projectId },
    };
  }

  it("are answered within 300 ms, by the organization's key and by a team's", async () => {
    const keys = {
      organization: await organizationKey(world, { binding: { type: "organization" } }),
      team: await organizationKey(world, { binding: { type: "team", id: seeded.small.teamId } }),
    };
    const slow: string[] = [];
    for (const [name, query] of Object.entries(await searches())) {
      for (const [by, { token }] of Object.entries(keys)) {
        const taken: number[] = [];
        let shown = "";
        for (const _round of times(ROUNDS, (index) => index)) {
          const page = await timed(world.api.ok("listTransactions", 200, { token, query }));
          taken.push(page.ms);
          const { nextCursor, transactions } = page.value;
          shown = `${String(transactions.length)} found${nextCursor === null ? "" : ", goes on"}`;
        }
        const [typical, worst] = [median(taken), Math.max(...taken)];
        process.stderr.write(
          `${name}, ${by}: ${typical.toFixed(0)} ms, at most ${worst.toFixed(0)} ms; ${shown}\n`,
        );
        if (typical >= SEARCH_MS_MAX) slow.push(`${name}, ${by}: ${typical.toFixed(0)} ms`);
      }
    }
    expect(slow).to.deep.equal([]);
  });
});
