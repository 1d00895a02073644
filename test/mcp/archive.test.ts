import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { PLAN_LIMITS } from "../../src/contract/rate-classes.ts";
import { operations } from "../../src/contract/registry.ts";
import { codeOf } from "../support/contract-api.ts";
import { fund } from "../support/chain.ts";
import {
  archive,
  type CreateBody,
  createBody,
  expectDead,
  expiredAgents,
  keyOf,
  made,
  type MadeAgent,
  orchestrator,
  readAgent,
  whileOpen,
  windowClosed,
} from "../support/life.ts";
import {
  elevate,
  newWorld,
  organizationKey,
  rotated,
  tally,
  type TestOrganizationKey,
  times,
  type World,
} from "../support/world.ts";
import {
  callTool,
  expectLimited,
  FREE,
  limitedWorld,
  message,
  mintKey,
  rpc,
  type FixedClock,
  startLimitedService,
} from "../limits/support.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { McpCaller } from "./support.ts";

const { archiveAgent, createAgent } = operations;

const create = (caller: McpCaller, body: CreateBody) => caller.ok(createAgent.output, "create_agent", body);

describe("archive_agent", () => {
  let service: TestService;
  let world: World;
  let by: TestOrganizationKey;
  let mcp: McpCaller;
  let proven: MadeAgent[];
  before(async () => {
    service = await startTestService({ keyDeliveryWindowSeconds: 4 });
    world = await newWorld(service);
    by = await orchestrator(world);
    mcp = await McpCaller.connect(service.baseUrl, by.token);
    proven = await expiredAgents(world, by, 4);
  });
  after(async () => {
    await mcp.close();
    await service.stop();
  });

  function nextProven(): MadeAgent {
    const agent = proven.pop();
    if (agent === undefined) throw new Error("make more agents");
    return agent;
  }

  it("is listed to keys with agents:write only, as a write that may be repeated", async () => {
    const { tools } = await mcp.client.listTools();
    const tool = tools.find(({ name }) => name === "archive_agent");
    expect(tool?.annotations).to.deep.include({ readOnlyHint: false, idempotentHint: true });
    expect(tool?.inputSchema.required).to.deep.equal(["agentId"]);
    const reader = await organizationKey(world, { scopes: ["agents:read"] });
    const reading = await McpCaller.connect(service.baseUrl, reader.token);
    const listed = (await reading.client.listTools()).tools.map(({ name }) => name);
    expect(listed).not.to.include("archive_agent");
    await reading.refused("archive_agent", "INSUFFICIENT_SCOPE", { agentId: randomUUID() });
    await reading.close();
  });

  it("all of it over MCP: deliverable, expired, unproven, proven, archived, archived again", async () => {
    const make = async () => {
      const body = createBody(world);
      const { agent, apiKey } = await create(mcp, body);
      return { id: agent.id, apiKey, body };
    };
    const created = await whileOpen(world, make, async ({ apiKey, body, id }) => {
      expect(apiKey).to.be.a("string");
      expect((await create(mcp, body)).apiKey).to.equal(apiKey);
      await mcp.refused("archive_agent", "KEY_STILL_DELIVERABLE", { agentId: id });
    });
    const args = { agentId: created.id };
    const { body } = created;
    await windowClosed(world, created.id);
    await mcp.refused("archive_agent", "KEY_DELIVERY_UNPROVEN", args);
    const { apiKey, keyDelivery, mcpConfigBlock } = await create(mcp, body);
    expect([apiKey, mcpConfigBlock, keyDelivery]).to.deep.equal([null, null, "expired"]);
    for (const _ of times(2, () => null)) {
      const { agent, walletsFailed } = await mcp.ok(archiveAgent.output, "archive_agent", args);
      expect([agent.state, agent.key, walletsFailed]).to.deep.equal(["archived", null, []]);
      expect(agent).to.deep.equal(await readAgent(world, { id: agent.id }));
    }
    await expectDead(world, created.apiKey ?? "");
  });

  it("a proof stamped over REST counts here, and the archive there; a rotated key's too", async () => {
    const own = await orchestrator(world);
    const [agent] = await expiredAgents(world, own, 1);
    if (agent === undefined) throw new Error("one was made");
    const successor = await rotated(world, own);
    const caller = await McpCaller.connect(service.baseUrl, successor.token);
    const args = { agentId: agent.id };
    const { agent: record } = await caller.ok(archiveAgent.output, "archive_agent", args);
    expect((await archive(world, agent, successor.token)).agent).to.deep.equal(record);
    await caller.close();
  });

  it("MACHINE_ARCHIVE_DENIED is terminal here, too: used, funded, another lineage's, a person's", async () => {
    const [used, funded, foreign] = [nextProven(), nextProven(), nextProven()];
    await world.api.ok("listPayments", 200, { token: keyOf(used) });
    await fund(world, funded, 1);
    for (const { id: agentId } of [used, funded, await world.agent()]) {
      for (const _ of times(2, () => null)) {
        await mcp.refused("archive_agent", "MACHINE_ARCHIVE_DENIED", { agentId });
      }
    }
    const other = await McpCaller.connect(service.baseUrl, (await orchestrator(world)).token);
    await other.refused("archive_agent", "MACHINE_ARCHIVE_DENIED", { agentId: foreign.id });
    await other.close();
    await mcp.ok(archiveAgent.output, "archive_agent", { agentId: foreign.id });
  });

  it("what is not there, or outside of the binding, is told as over REST", async () => {
    await mcp.refused("archive_agent", "NOT_FOUND", { agentId: randomUUID() });
    await mcp.refused("archive_agent", "VALIDATION_FAILED", {});
    const { team } = await world.api.ok("createTeam", 201, { token: world.token, body: { name: "Other" } });
    const { token } = await organizationKey(world, { binding: { type: "team", id: team.id } });
    const bound = await McpCaller.connect(service.baseUrl, token);
    await bound.refused("archive_agent", "OUTSIDE_BINDING", { agentId: nextProven().id });
    await bound.close();
  });

  it("a request of the agent's key over its limit, and so never read, is a use of the key too", async () => {
    const own = await limitedWorld(service, FREE);
    const key = await orchestrator(own);
    const [agent] = await expiredAgents(own, key, 1);
    if (agent === undefined) throw new Error("one was made");
    const beyond = times(PLAN_LIMITS.free.mcp + 1, (id) => ({ ...message("ping"), id }));
    expectLimited(await rpc(service, keyOf(agent), beyond));
    const request = { token: key.token, id: agent.id };
    await own.api.refused("archiveAgent", 403, "MACHINE_ARCHIVE_DENIED", request);
  });

  it("an agent's key archives nothing, not even itself", async () => {
    const agent = await made(world, by);
    const caller = await McpCaller.connect(service.baseUrl, keyOf(agent));
    await caller.refused("archive_agent", "WRONG_CREDENTIAL", { agentId: agent.id });
    await caller.close();
    expect((await readAgent(world, agent)).state).to.equal("active");
  });
});

describe("the cap of 30 archives a minute", () => {
  let clock: FixedClock;
  let service: TestService;
  before(async () => {
    ({ clock, service } = await startLimitedService());
  });
  beforeEach(() => clock.nextMinute());
  after(() => service.stop());

  const agentId = randomUUID();

  it("is one for REST and MCP together, for each key; refused ones count", async () => {
    const world = await newWorld(service);
    const [key, other] = [await mintKey(world, clock), await mintKey(world, clock)];
    clock.nextMinute();
    const overMcp = () => callTool(service, key, "archive_agent", { agentId });
    const overRest = async (token = key) =>
      codeOf(await world.api.call("archiveAgent", { token, id: agentId }));
    const first = await Promise.all(times(18, overMcp));
    expect(tally(first)).to.deep.equal({ NOT_FOUND: 18 });
    const rest = await Promise.all(times(15, () => overRest()));
    expect(tally(rest)).to.deep.equal({ NOT_FOUND: 12, RATE_LIMITED: 3 });
    expect(await overMcp(), "below the toolset's own 20, but over the route's").to.equal("RATE_LIMITED");
    expect(await overRest(other)).to.equal("NOT_FOUND");
    clock.nextMinute();
    expect([await overMcp(), await overRest()]).to.deep.equal(["NOT_FOUND", "NOT_FOUND"]);
  });

  it("a person's is apart from their key mints, and asked after step-up", async () => {
    const world = await newWorld(service);
    const ask = () => world.api.call("archiveAgent", { token: world.token, id: agentId });
    const without = await Promise.all(times(31, ask));
    expect(tally(without.map(({ status }) => status))).to.deep.equal({ "403": 31 });
    await elevate(world, clock.read());
    const elevated = await Promise.all(times(31, ask));
    expect(tally(elevated.map(({ status }) => status))).to.deep.equal({ "404": 30, "429": 1 });
    const mint = await world.api.call("mintAgentKey", { token: world.token, id: agentId });
    expect(mint.status).to.equal(404);
  });
});
