import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import {
  createBody,
  expectDead,
  keyOf,
  made,
  type MadeAgent,
  orchestrator,
  readAgent,
  replay,
  whileOpen,
  windowClosed,
} from "../support/life.ts";
import { type TestOrganizationKey, times, type World } from "../support/world.ts";
import { expectLimited, limitedWorld, message, rpc } from "../limits/support.ts";
import { startTestService, type TestService, WITHOUT_LIMITS } from "../support/service.ts";
import { McpCaller } from "./support.ts";

const { archiveAgent, createAgent } = operations;

const MCP_PER_MINUTE = 60;

describe("archive_agent", () => {
  let service: TestService;
  let world: World;
  let by: TestOrganizationKey;
  let mcp: McpCaller;
  let other: MadeAgent;
  before(async () => {
    service = await startTestService({ keyDeliveryWindowSeconds: 4 });
    world = await limitedWorld(service, { ...WITHOUT_LIMITS, mcpPerMinute: MCP_PER_MINUTE });
    by = await orchestrator(world);
    mcp = await McpCaller.connect(service.baseUrl, by.token);
    other = await made(world, by);
  });
  after(async () => {
    await mcp.close();
    await service.stop();
  });

  it("all of it over MCP: deliverable, expired, unproven, proven, archived, archived again", async () => {
    const create = (body: MadeAgent["body"]) => mcp.ok(createAgent.output, "create_agent", body);
    const make = async () => {
      const body = createBody(world);
      const { agent, apiKey } = await create(body);
      return { id: agent.id, apiKey, body };
    };
    const created = await whileOpen(world, make, async ({ apiKey, body, id }) => {
      expect(apiKey).to.be.a("string");
      expect((await create(body)).apiKey).to.equal(apiKey);
      await mcp.refused("archive_agent", "KEY_STILL_DELIVERABLE", { agentId: id });
    });
    const args = { agentId: created.id };
    const { body } = created;
    await windowClosed(world, created.id);
    await mcp.refused("archive_agent", "KEY_DELIVERY_UNPROVEN", args);
    const { apiKey, keyDelivery, mcpConfigBlock } = await create(body);
    expect([apiKey, mcpConfigBlock, keyDelivery]).to.deep.equal([null, null, "expired"]);
    for (const _ of times(2, () => null)) {
      const { agent, walletsFailed } = await mcp.ok(archiveAgent.output, "archive_agent", args);
      expect([agent.state, agent.key, walletsFailed]).to.deep.equal(["archived", null, []]);
      expect(agent).to.deep.equal(await readAgent(world, { id: agent.id }));
    }
    await expectDead(world, created.apiKey ?? "");
  });

  it("a request of the agent's key over its limit, and so never read, is a use of the key too", async () => {
    await windowClosed(world, other.id);
    await replay(world, other, by.token);
    const beyond = times(MCP_PER_MINUTE + 1, (id) => ({ ...message("ping"), id }));
    expectLimited(await rpc(service, keyOf(other), beyond));
    await mcp.refused("archive_agent", "MACHINE_ARCHIVE_DENIED", { agentId: other.id });
  });
});
