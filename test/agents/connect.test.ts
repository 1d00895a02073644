import { execFile } from "node:child_process";
import { promisify } from "node:util";
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
/** Client that takes the key from a credential of its own, so that its text has no place for it. */
const WITH_CREDENTIAL = "n8n";
const servers = z.record(z.string(), z.object({ "agent-spending-control": ofServer }));

describe("how an agent's MCP client is connected", () => {
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
  });

  const blocks = async () => world.api.ok("connectAgent", 200, { token: world.token, id: agent.id });

  it("each client and framework has a text with the address and a place for the key, no key", async () => {
    const { clients, keyPlaceholder, mcpUrl } = await blocks();
    expect(mcpUrl).to.equal(`${world.service.baseUrl}/mcp`);
    expect(
      clients.filter(({ kind }) => kind === "mcp_client").map(({ client }) => client),
    ).to.include.members(["claude-code", "cursor", "vscode", "zed"]);
    expect(clients.filter(({ kind }) => kind === "framework").map(({ client }) => client)).to.deep.equal([
      "openai-agents-sdk",
      "langchain",
      "vercel-ai-sdk",
      "pydantic-ai",
      "google-adk",
      "crewai",
      "claude-agent-sdk",
      "n8n",
    ]);
    for (const { client, kind, remark, text } of clients) {
      expect(text, client).to.include(kind === "trial" ? `${world.service.baseUrl}/v1/payments` : mcpUrl);
      expect(text.split(keyPlaceholder), client).to.have.lengthOf(client === WITH_CREDENTIAL ? 1 : 2);
      if (client === WITH_CREDENTIAL) expect(remark).to.include("credential");
      expect(text, client).not.to.include("svc_live");
    }
  });

  it("the request to try makes a payment, with the key in its place", async () => {
    const { clients, keyPlaceholder } = await blocks();
    const trial = clients.find(({ kind }) => kind === "trial")?.text.replace(keyPlaceholder, agent.key) ?? "";
    const { stdout } = await promisify(execFile)("sh", [
      "-c",
      `${trial} --silent --write-out '\\n%{http_code}'`,
    ]);
    expect(stdout.split("\n").at(-1), stdout).to.equal("201");
  });

  it("the JSON of each parses, under the name that its client reads", async () => {
    const { clients, keyPlaceholder, mcpUrl } = await blocks();
    const roots: Record<string, string> = {};
    for (const { client, format, kind, text } of clients) {
      if (format !== "json" || kind !== "mcp_client") continue;
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
