import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { onceReachable } from "../support/api.ts";
import { inTime } from "../support/in-time.ts";
import { expectBooksAgree } from "../support/books.ts";
import { cardPayment, elevate, newWorld, type TestAgent, times, type World } from "../support/world.ts";

const PAYERS = 16;
/** What a person or an agent is told about a busy agent must not wait for it to be idle. */
const SOON_MS = 3_000;

const soon = <T>(what: string, ask: () => Promise<T>): Promise<T> => inTime(what, ask(), SOON_MS);

describe("an agent that pays without a pause", () => {
  let world: World;
  let agent: TestAgent;
  let stop: AbortController;
  let payers: Promise<unknown>;
  before(async () => {
    world = await newWorld();
    await elevate(world);
  });
  beforeEach(async () => {
    agent = await world.agent({ budgetCents: 100_000_000 });
    stop = new AbortController();
    payers = Promise.all(times(PAYERS, () => payUntil(stop.signal)));
    await agent.pay();
  });
  afterEach(async () => {
    stop.abort();
    await payers;
    await expectBooksAgree(world, agent);
  });

  async function payUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const body = cardPayment({ amountCents: 1 });
      // On a busy machine some are told to come again.
      const answer = await onceReachable(() => world.api.call("createPayment", { token: agent.key, body }));
      expect(answer.status).to.be.oneOf([200, 201, 403]);
    }
  }

  it("is paused at once, and not one payment is approved after the answer", async () => {
    const owner = { token: world.token, id: agent.id };
    await soon("pause", () => world.api.ok("pauseAgent", 200, owner));
    const usage = async () => (await world.api.ok("getAgentBudgetPolicy", 200, owner)).usage;
    const then = await usage();
    await world.api.refused("createPayment", 403, "AGENT_PAUSED", { token: agent.key, body: cardPayment() });
    expect((await usage()).todayCents).to.equal(then.todayCents);
  });

  it("its record, policy and budget are answered meanwhile, and a new limit binds at once", async () => {
    const owner = { token: world.token, id: agent.id };
    await soon("the record", () => world.api.ok("getAgent", 200, owner));
    await soon("the list", () => world.api.ok("listAgents", 200, { token: world.token }));
    await soon("the policy", () => world.api.ok("getAgentBudgetPolicy", 200, owner));
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    await soon("get_budget", () => mcp.ok(operations.getBudget.output, "get_budget"));
    await soon("check_payment", () =>
      mcp.ok(operations.checkPayment.output, "check_payment", {
        rail: "card",
        amountCents: 1,
        merchant: "x",
      }),
    );
    await mcp.close();
    const body = { version: 1, perTransactionLimitCents: 0 };
    await soon("the change", () => world.api.okAtOnce("updateAgentBudgetPolicy", 200, { ...owner, body }));
    expect((await agent.pay({ amountCents: 1 })).transaction.denialCode).to.equal(
      "PER_TRANSACTION_LIMIT_EXCEEDED",
    );
  });
});
