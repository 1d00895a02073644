import { expect } from "chai";
import { z } from "zod";
import { clientConfigs } from "../../server/mcp/client-configs.ts";
import { newWorld, organizationKey, type TestAgent, type World } from "../support/world.ts";
import { McpCaller } from "../mcp/support.ts";

const ofServer = z.looseObject({
  url: z.string().optional(),
  serverUrl: z.string().optional(),
  httpUrl: z.string().optional(),
  headers: z.looseObject({ Authorization: z.string() }).optional(),
});
const servers = z.record(z.string(), z.object({ "agent-spending-control": ofServer }));

describe("how an agent's MCP client is connected", () => {
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
  });

  const blocks = async () => world.api.ok("connectAgent", 200, { token: world.token, id: agent.id });

  it("each client has its block with the endpoint and a place for the key, and no key", async () => {
    const { clients, keyPlaceholder, mcpUrl } = await blocks();
    expect(mcpUrl).to.equal(`${world.service.baseUrl}/mcp`);
    expect(clients.map(({ client }) => client)).to.include.members([
      "claude-code",
      "cursor",
      "vscode",
      "zed",
    ]);
    for (const { client, text } of clients) {
      expect(text, client).to.include(mcpUrl);
      expect(text.split(keyPlaceholder), client).to.have.lengthOf(2);
      expect(text, client).not.to.include("svc_agent");
    }
  });

  it("the JSON of each parses, under the name that its client reads", async () => {
    const { clients, keyPlaceholder, mcpUrl } = await blocks();
    const roots: Record<string, string> = {};
    for (const { client, format, text } of clients) {
      if (format !== "json") continue;
      const [[root, block] = ["", null]] = Object.entries(servers.parse(JSON.parse(text)));
      roots[client] = root;
      const { headers, httpUrl, serverUrl, url } = ofServer.parse(block?.["agent-spending-control"]);
      if (client === "claude-desktop") continue;
      expect(url ?? serverUrl ?? httpUrl, client).to.equal(mcpUrl);
      expect(headers?.Authorization, client).to.equal(`Bearer ${keyPlaceholder}`);
    }
    expect(roots).to.include({ vscode: "servers", zed: "context_servers", cursor: "mcpServers" });
  });

  it("with the key in its place, a block connects", async () => {
    const { clients, keyPlaceholder } = await blocks();
    const project = clients.find(({ client }) => client === "claude-code-project");
    const text = project?.text.replace(keyPlaceholder, agent.key) ?? "";
    const { headers, url } = servers.parse(JSON.parse(text))["mcpServers"]?.["agent-spending-control"] ?? {};
    const key = headers?.Authorization.replace("Bearer ", "") ?? "";
    const mcp = await McpCaller.connect((url ?? "").replace(/\/mcp$/, ""), key);
    expect((await mcp.call("get_budget")).isError).to.equal(false);
    await mcp.close();
  });

  it("over plain http the bridge is told to allow it, and each block says what that means", () => {
    for (const [url, isExposed] of [
      ["http://spend.lan:8080", true],
      ["http://localhost:8080", false],
      ["http://127.0.0.1:8080", false],
      ["https://spend.example", false],
    ] as const) {
      const configs = clientConfigs(url, url);
      const bridge = configs.find(({ client }) => client === "claude-desktop")?.text ?? "";
      expect(bridge.includes('"--allow-http"'), url).to.equal(isExposed);
      for (const { remark } of configs)
        expect(remark?.includes("plain http") ?? false, url).to.equal(isExposed);
    }
  });

  it("another organization's agent is 404, and a key needs agents:read", async () => {
    const stranger = await newWorld();
    await stranger.api.refused("connectAgent", 404, "NOT_FOUND", { token: stranger.token, id: agent.id });
    const key = await organizationKey(world, { scopes: ["teams:read"] });
    await world.api.refused("connectAgent", 403, "INSUFFICIENT_SCOPE", { token: key.token, id: agent.id });
  });
});
