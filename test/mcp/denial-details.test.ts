import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { TestBudgets } from "../support/budgets.ts";
import { seed } from "../support/seed.ts";
import { someOrAll } from "../support/soak.ts";
import { cardPayment, elevate, newWorld, type TestAgent, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const SPENT_CENTS = 300;

const { checkPayment, createCardPayment } = operations;

interface Details {
  readonly limit: number;
  readonly remaining: number;
  readonly resetsAt: string | null;
}

/** When a limit lets more through, told from the moment of the one payment that was approved before. */
type Resets = (approvedAt: number) => number | null;

const never: Resets = () => null;
const anHourAfter: Resets = (approvedAt) => approvedAt + HOUR_MS;
const atMidnight: Resets = (approvedAt) => (Math.floor(approvedAt / DAY_MS) + 1) * DAY_MS;

interface Row {
  readonly code: string;
  readonly policy?: Readonly<Record<string, number>>;
  readonly cap?: "team" | "project";
  readonly amountCents: number;
  readonly limit: number;
  readonly remaining: number;
  readonly resets: Resets;
}

/** Each one above what is left, after 3.00 were spent in one payment. What each says is the domain's; here, that it is passed on. */
const rows: readonly Row[] = [
  {
    code: "PER_TRANSACTION_LIMIT_EXCEEDED",
    policy: { perTransactionLimitCents: 400 },
    amountCents: 401,
    limit: 400,
    remaining: 400,
    resets: never,
  },
  {
    code: "BUDGET_EXCEEDED",
    policy: { budgetCents: 1_000 },
    amountCents: 701,
    limit: 1_000,
    remaining: 700,
    resets: never,
  },
  {
    code: "DAILY_SPEND_LIMIT_EXCEEDED",
    policy: { dailySpendLimitCents: 500 },
    amountCents: 201,
    limit: 500,
    remaining: 200,
    resets: atMidnight,
  },
  {
    code: "HOURLY_VELOCITY_EXCEEDED",
    policy: { hourlyVelocityLimit: 1 },
    amountCents: 1,
    limit: 1,
    remaining: 0,
    resets: anHourAfter,
  },
  {
    code: "DAILY_VELOCITY_EXCEEDED",
    policy: { dailyVelocityLimit: 1 },
    amountCents: 1,
    limit: 1,
    remaining: 0,
    resets: atMidnight,
  },
  {
    code: "TEAM_CAP_EXCEEDED",
    cap: "team",
    amountCents: 601,
    limit: 900,
    remaining: 600,
    resets: never,
  },
  {
    code: "PROJECT_CAP_EXCEEDED",
    cap: "project",
    amountCents: 601,
    limit: 900,
    remaining: 600,
    resets: never,
  },
];

interface Seen {
  readonly approvedAt: number;
  /** Of check_payment, of the tool that pays, of POST and of GET. */
  readonly told: readonly (readonly [code: string | null, details: Details | null])[];
}

describe(`a denial says its limit, what is left of it, and when it resets (TEST_SEED=${String(seed)})`, () => {
  let world: World;
  let budgets: TestBudgets;
  beforeEach(async () => {
    world = await newWorld();
    budgets = new TestBudgets(world);
    await elevate(world);
  });

  async function limited({ cap, limit, policy }: Row): Promise<TestAgent> {
    const agent = await world.agent({ budgetCents: 10_000 });
    const body = { version: 1, ...policy };
    if (policy !== undefined) {
      await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id: agent.id, body });
    }
    if (cap === "team") await budgets.setTeam({ capCents: limit });
    if (cap === "project") await budgets.setProject({ capCents: limit });
    return agent;
  }

  async function denied(row: Row): Promise<Seen> {
    const { amountCents } = row;
    const agent = await limited(row);
    const approved = (await agent.pay({ amountCents: SPENT_CENTS })).transaction;
    expect(approved.status).to.equal("approved");
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const wish = () => ({ amountCents, merchant: "shop", purpose: "x", idempotencyKey: randomUUID() });
    const checked = await mcp.ok(checkPayment.output, "check_payment", { rail: "card", ...wish() });
    const byTool = await mcp.ok(createCardPayment.output, "create_card_payment", wish());
    await mcp.close();
    const body = cardPayment({ amountCents });
    const posted = await world.api.ok("createPayment", 201, { token: agent.key, body });
    const { id } = posted.transaction;
    const read = await world.api.ok("getPayment", 200, { token: agent.key, id });
    return {
      approvedAt: Date.parse(approved.createdAt),
      told: [checked, byTool.transaction, posted.transaction, read.transaction].map(
        ({ denialCode, denialDetails }) => [denialCode, denialDetails] as const,
      ),
    };
  }

  /** Once more, where midnight came between: then nothing of the day before counts. */
  async function deniedOnOneDay(row: Row): Promise<Seen> {
    const seen = await denied(row);
    const isSameDay = Math.floor(seen.approvedAt / DAY_MS) === Math.floor(Date.now() / DAY_MS);
    if (isSameDay) return seen;
    world = await newWorld();
    budgets = new TestBudgets(world);
    await elevate(world);
    return denied(row);
  }

  for (const row of someOrAll(rows, 2)) {
    it(`${row.code}: the same from check_payment, the paying tool, POST and GET`, async () => {
      const { approvedAt, told } = await deniedOnOneDay(row);
      const resetsAt = row.resets(approvedAt);
      const { limit, remaining } = row;
      const details = {
        limit,
        remaining,
        resetsAt: resetsAt === null ? null : new Date(resetsAt).toISOString(),
      };
      expect(told).to.deep.equal(told.map(() => [row.code, details]));
    });
  }
});
