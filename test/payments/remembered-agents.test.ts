import { expect } from "chai";
import { z } from "zod";
import { connectCurrent } from "../mcp/current-client.ts";
import { McpCaller } from "../mcp/support.ts";
import { atOnce, expectDoneOnce } from "../support/at-once.ts";
import { expectBooksAgree } from "../support/books.ts";
import { ContractApi } from "../support/contract-api.ts";
import { archive, mintKey, revokeKey } from "../support/life.ts";
import { secondService } from "../support/own-service.ts";
import type { TestService } from "../support/service.ts";
import { cardPayment, type Fields, newWorld, type TestAgent, type World } from "../support/world.ts";

interface Change {
  readonly what: string;
  readonly status: 401 | 403;
  readonly code: "UNAUTHORIZED" | "AGENT_PAUSED";
  readonly change: (world: World, agent: TestAgent) => Promise<unknown>;
}

/** How long a server remembers what these collections say, in milliseconds. */
const REMEMBERED_MS = { agents: 30_000, projects: 5_000, teams: 5_000 };

const pause = (world: World, { id }: TestAgent) =>
  world.api.ok("pauseAgent", 200, { token: world.token, id });

const CHANGES: readonly [Change, Change, ...Change[]] = [
  { what: "was paused", status: 403, code: "AGENT_PAUSED", change: pause },
  { what: "has lost its key", status: 401, code: "UNAUTHORIZED", change: revokeKey },
  {
    what: "has another key",
    status: 401,
    code: "UNAUTHORIZED",
    change: async (world, agent) => {
      await revokeKey(world, agent);
      await mintKey(world, agent);
    },
  },
  { what: "was archived", status: 401, code: "UNAUTHORIZED", change: archive },
];

type PayOverMcp = (waitSeconds: number) => Promise<unknown>;

/** The arguments of a payment; the caller of one that waits asks for progress, which makes its answer a stream. */
function waitingPayment(waitSeconds: number) {
  const { rail: _rail, ...order } = cardPayment();
  const options = waitSeconds === 0 ? {} : { onprogress: () => undefined };
  return { call: { name: "create_card_payment", arguments: { ...order, waitSeconds } }, options };
}

async function earlierPayments(baseUrl: string, key: string): Promise<PayOverMcp> {
  const { client } = await McpCaller.connect(baseUrl, key);
  return async (waitSeconds) => {
    const { call, options } = waitingPayment(waitSeconds);
    return client.callTool(call, undefined, options);
  };
}

async function currentPayments(baseUrl: string, key: string): Promise<PayOverMcp> {
  const client = await connectCurrent(baseUrl, key);
  return async (waitSeconds) => {
    const { call, options } = waitingPayment(waitSeconds);
    return client.callTool(call, options);
  };
}

/** The HTTP status in what the clients of both generations throw. */
const httpFailure = z.union([
  z.looseObject({ status: z.int() }),
  z.looseObject({ code: z.int() }).transform(({ code }) => ({ status: code })),
]);

/** A server remembers agents and rules for some seconds; what another server has changed meanwhile binds the next payment. */
describe("payments through a server that remembers agent and rules", () => {
  let world: World;
  let elsewhere: TestService;
  let api: ContractApi;
  /** Agents whose older keys the ledger has evicted, as the other server has learned. */
  const evicted = new Set<string>();
  before(async () => {
    world = await newWorld();
    elsewhere = await secondService(world.service, {
      decorateBackends(backends) {
        const { ledgers } = backends;
        const closedOf = ledgers.closedOf.bind(ledgers);
        ledgers.closedOf = (agentId) => (evicted.has(agentId) ? 1 : closedOf(agentId));
        return backends;
      },
    });
    api = new ContractApi(elsewhere.baseUrl);
  });
  after(() => elsewhere?.stop());

  const pay = (agent: TestAgent, fields: Fields = {}) =>
    api.ok("createPayment", 201, { token: agent.key, body: cardPayment(fields) });

  /** An agent that the other server has cached. */
  async function remembered(fields: Fields = {}): Promise<TestAgent> {
    const agent = await world.agent(fields);
    for (let payments = 0; payments < 3; payments += 1) await pay(agent);
    return agent;
  }

  const paymentsOf = async ({ id }: TestAgent) =>
    (await world.api.ok("listTransactions", 200, { token: world.token, query: { agent_id: id } }))
      .transactions;

  for (const { change, code, status, what } of CHANGES) {
    it(`an agent that ${what} is refused ${code} at once, and nothing is kept`, async () => {
      const agent = await remembered();
      const paid = await paymentsOf(agent);
      await change(world, agent);
      await api.refused("createPayment", status, code, { token: agent.key, body: cardPayment() });
      expect(await paymentsOf(agent)).to.deep.equal(paid);
    });
  }

  it("the credential is refused before a wrong payment is, and before a replay is answered", async () => {
    const used = cardPayment();
    for (const body of [used, { amountCents: "wrong" }]) {
      const agent = await remembered();
      await pay(agent, used);
      await pause(world, agent);
      await api.refused("createPayment", 403, "AGENT_PAUSED", { token: agent.key, body });
    }
  });

  for (const { change, code, status, what } of CHANGES) {
    it(`an agent that ${what} is refused ${code} before an evicted replay`, async () => {
      const used = cardPayment();
      const agent = await remembered();
      await pay(agent, used);
      evicted.add(agent.id);
      const asked = { token: agent.key, body: used };
      await api.ok("createPayment", 200, asked);
      await change(world, agent);
      await api.refused("createPayment", status, code, asked);
    });
  }

  for (const [what, text] of [
    ["that is no JSON", "{"],
    [
      "whose arguments are no object",
      JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "create_card_payment", arguments: 1 },
      }),
    ],
  ] as const)
    it(`MCP: a revoked key is HTTP 401 with a payment ${what}, too`, async () => {
      const agent = await remembered();
      const headers = {
        authorization: `Bearer ${agent.key}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      };
      const post = async () =>
        (await fetch(`${elsewhere.baseUrl}/mcp`, { method: "POST", headers, body: text })).status;
      expect(await post()).to.be.oneOf([200, 400]);
      await revokeKey(world, agent);
      expect(await post()).to.equal(401);
    });

  for (const [revision, connect] of [
    ["2025-11-25", earlierPayments],
    ["2026-07-28", currentPayments],
  ] as const) {
    it(`MCP ${revision}: an agent that was paused is HTTP 403 when it waits, without its key 401`, async () => {
      for (const [waitSeconds, { change, code, status }] of [
        [45, CHANGES[0]],
        [0, CHANGES[1]],
      ] as const) {
        const agent = await remembered();
        const payOverMcp = await connect(elsewhere.baseUrl, agent.key);
        await change(world, agent);
        const failure = await payOverMcp(waitSeconds).catch((error: unknown) => error);
        expect(httpFailure.parse(failure).status).to.equal(status);
        expect(String(failure)).to.include(code);
      }
    });
  }

  it("a payment is replayed by the other server, and made once where both are asked at once", async () => {
    const agent = await world.agent();
    const [early, late] = [cardPayment(), cardPayment()].map((body) => ({ token: agent.key, body }));
    const first = await world.api.ok("createPayment", 201, early);
    expect(await api.ok("createPayment", 200, early)).to.deep.equal({ ...first, replayed: true });
    const raced = await atOnce(8, (index) => (index % 2 === 0 ? world.api : api).call("createPayment", late));
    expectDoneOnce(raced, "200");
    expect(await expectBooksAgree(world, agent)).to.deep.include({ entries: 2, spentCents: 200 });
  });

  it("a payment on hold shows the name that the agent has by then", async () => {
    const agent = await remembered({ autoApprovalThresholdCents: 150 });
    const body = { name: "Renamed" };
    await world.api.ok("updateAgent", 200, { token: world.token, id: agent.id, body });
    const { approval } = await pay(agent, { amountCents: 200 });
    const { token } = world;
    const read = await world.api.ok("getApproval", 200, { token, id: approval?.id ?? "" });
    expect(read.approval.agentName).to.equal("Renamed");
  });

  it("rules that were set on another server hold the next payment, and a dry run says so", async () => {
    const own = await newWorld(world.service);
    const agent = await own.agent();
    for (let payments = 0; payments < 3; payments += 1) await pay(agent);
    const { projectId, teamId } = own.organization;
    for (const [operation, id, amountCents] of [
      ["setTeamApprovalRules", teamId, 150],
      ["setProjectApprovalRules", projectId, 50],
    ] as const) {
      const rules = [{ type: "amount_above", params: { amountCents } }];
      await own.api.ok(operation, 200, { token: own.token, id, body: { rules, version: 1 } });
      const above = { amountCents: amountCents + 1 };
      expect((await pay(agent, above)).approval?.flaggedByRuleTypes).to.deep.equal(["amount_above"]);
    }
  });

  it("looks up the agent and rules once while they are remembered, however many payments", async () => {
    const agent = await remembered();
    const { db } = elsewhere;
    const began = performance.now();
    await db.command({ profile: 2 });
    try {
      for (let payments = 0; payments < 12; payments += 1) await pay(agent);
    } finally {
      await db.command({ profile: 0 });
    }
    const elapsedMs = performance.now() - began;
    for (const [name, rememberedMs] of Object.entries(REMEMBERED_MS)) {
      const ns = `${db.databaseName}.${name}`;
      const asked = { op: "query", ns, "command.filter": { $exists: true } };
      // What was remembered before may be forgotten at any moment of this one.
      const readsMax = Math.ceil(elapsedMs / rememberedMs);
      expect(await db.collection("system.profile").countDocuments(asked), name).to.be.at.most(readsMax);
    }
  });
});
