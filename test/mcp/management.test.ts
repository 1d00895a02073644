import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { z } from "zod";
import { operations } from "../../src/contract/registry.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { mintKey } from "../authorization/scene.ts";
import { newWorld, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const {
  createAgent,
  createProject,
  createTeam,
  getAgent,
  getAgentBudgetPolicy,
  listAgents,
  listProjects,
  listTeams,
  listTransactions,
} = operations;

/** The toolset's 21 tools. */
const TOOLSET = [
  "list_agents",
  "get_agent",
  "create_agent",
  "get_agent_budget_policy",
  "update_agent_budget_policy",
  "pause_agent",
  "resume_agent",
  "archive_agent",
  "list_projects",
  "create_project",
  "get_project_budget",
  "set_project_budget",
  "get_project_approval_rules",
  "set_project_approval_rules",
  "list_teams",
  "create_team",
  "get_team_budget",
  "set_team_budget",
  "get_team_approval_rules",
  "set_team_approval_rules",
  "list_transactions",
];
const WRITES = /^(create|update|set|pause|resume|archive)_/;

const input = z.strictObject({
  type: z.literal("object"),
  properties: z.record(z.string(), z.looseObject({})),
  required: z.array(z.string()),
  additionalProperties: z.literal(false),
});

const UNIONS: readonly string[] = ["anyOf", "oneOf", "allOf", "$ref", "not"];

/** Where a schema has keywords that some clients drop from a tool's input. A property may have the name of one. */
function unionsIn(schema: unknown, where = ""): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (where.endsWith(".properties")) return unionsIn(value, `${where}/${key}`);
    return [...(UNIONS.includes(key) ? [`${where}.${key}`] : []), ...unionsIn(value, `${where}.${key}`)];
  });
}

const named = (name: string) => ({ name, idempotencyKey: randomUUID() });

describe("the management toolset", () => {
  let world: World;
  let key: string;
  let mcp: McpCaller;
  before(async () => {
    world = await newWorld();
    key = await mintKey(world, ORGANIZATION_SCOPES);
    mcp = await McpCaller.connect(world.service.baseUrl, key);
  });
  after(() => mcp.close());

  const newAgent = async () =>
    (
      await mcp.ok(createAgent.output, "create_agent", {
        ...named("Agent"),
        teamId: world.organization.teamId,
        budgetCents: 1_000,
      })
    ).agent;

  it("lists its tools to an organization's key, reads marked, with flat inputs and no extras", async () => {
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name }) => name).toSorted()).to.deep.equal(TOOLSET.toSorted());
    for (const { annotations, inputSchema, name } of tools) {
      expect(annotations?.readOnlyHint, name).to.equal(!WRITES.test(name));
      expect(annotations?.openWorldHint, name).to.equal(false);
      const { properties, required } = input.parse(inputSchema);
      expect(unionsIn(inputSchema), name).to.deep.equal([]);
      expect(Object.keys(properties)).to.include.members(required);
      if (name.startsWith("create_")) expect(required, name).to.include("idempotencyKey");
    }
    expect(mcp.client.getInstructions()).to.include("idempotencyKey").and.to.include("version");
  });

  it("projects and teams take no presentation fields, and a team its project", async () => {
    const { tools } = await mcp.client.listTools();
    const common = ["description", "idempotencyKey", "name"];
    for (const [tool, expected] of [
      ["create_project", common],
      ["create_team", [...common, "projectId"]],
    ] as const) {
      const { inputSchema } = tools.find(({ name }) => name === tool) ?? {};
      expect(Object.keys(input.parse(inputSchema).properties), tool).to.have.members(expected);
    }
    await mcp.refused("create_team", "VALIDATION_FAILED", { ...named("Team"), color: "#102030" });
  });

  it("creates answer what REST does, need their idempotencyKey, and with it are made once", async () => {
    const { teamId } = world.organization;
    const args = { ...named("Agent"), teamId, budgetCents: 1_000 };
    const created = await mcp.ok(createAgent.output, "create_agent", args);
    expect(created.agent.createdBy.type).to.equal("organization_key");
    expect(created.apiKey).to.be.a("string");
    const again = await mcp.ok(createAgent.output, "create_agent", args);
    expect(again.agent.id).to.equal(created.agent.id);
    await mcp.refused("create_agent", "IDEMPOTENCY_KEY_REUSED", { ...args, budgetCents: 1_001 });
    const { idempotencyKey: _key, ...without } = args;
    await mcp.refused("create_agent", "IDEMPOTENCY_KEY_REQUIRED", without);

    const project = named("Project");
    const made = await mcp.ok(createProject.output, "create_project", project);
    expect(await mcp.ok(createProject.output, "create_project", project)).to.deep.equal(made);
    const { team } = await mcp.ok(createTeam.output, "create_team", named("Team"));
    expect(team.projectId).to.equal(world.organization.projectId);
  });

  it("reads and lists answer what REST does", async () => {
    const { id } = await newAgent();
    const rest = { token: key, id };
    const read = await mcp.ok(getAgent.output, "get_agent", { agentId: id });
    expect(read).to.deep.equal(await world.api.ok("getAgent", 200, rest));
    const policy = await mcp.ok(getAgentBudgetPolicy.output, "get_agent_budget_policy", { agentId: id });
    expect(policy).to.deep.equal(await world.api.ok("getAgentBudgetPolicy", 200, rest));
    const query = { limit: "1" };
    const args = { limit: 1 };
    for (const [tool, id_, output] of [
      ["list_agents", "listAgents", listAgents.output],
      ["list_projects", "listProjects", listProjects.output],
      ["list_teams", "listTeams", listTeams.output],
      ["list_transactions", "listTransactions", listTransactions.output],
    ] as const) {
      const page = await mcp.ok<z.ZodType>(output, tool, args);
      const twin = await world.api.ok(id_, 200, { token: key, query });
      expect(withoutCursor(page), tool).to.deep.equal(withoutCursor(twin));
    }
  });

  it("pauses, resumes and changes a policy by its version, without ever being challenged", async () => {
    const { id: agentId } = await newAgent();
    const { agent } = await mcp.ok(getAgent.output, "pause_agent", { agentId });
    expect(agent.state).to.equal("paused");
    expect((await mcp.ok(getAgent.output, "resume_agent", { agentId })).agent.state).to.equal("active");
    const change = { agentId, version: 1, perTransactionLimitCents: 100 };
    const { version } = await mcp.ok(getAgentBudgetPolicy.output, "update_agent_budget_policy", change);
    expect(version).to.equal(2);
    await mcp.refused("update_agent_budget_policy", "VERSION_CONFLICT", change);
  });

  it("spends nothing: an agent's tool is WRONG_CREDENTIAL, and an agent's key manages nothing", async () => {
    await mcp.refused("create_card_payment", "WRONG_CREDENTIAL", {});
    const agent = await world.agent();
    const agents = await McpCaller.connect(world.service.baseUrl, agent.key);
    await agents.refused("list_agents", "WRONG_CREDENTIAL", {});
    await agents.close();
  });

  it("a revoked key is HTTP 401 on the very next call of a client that is connected", async () => {
    const doomed = await mintKey(world, ["agents:read"]);
    const caller = await McpCaller.connect(world.service.baseUrl, doomed);
    await caller.ok(listAgents.output, "list_agents");
    const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
    await world.api.ok("revokeOrganizationKey", 200, {
      token: world.token,
      id: organizationKeys[0]?.id ?? "",
    });
    const failure = await caller.call("list_agents").catch((error: unknown) => error);
    expect(String(failure)).to.match(/401|UNAUTHORIZED/i);
    await caller.close();
  });
});

/** Each cursor is sealed anew. */
const withoutCursor = (page: unknown) => ({ ...z.looseObject({}).parse(page), nextCursor: null });
