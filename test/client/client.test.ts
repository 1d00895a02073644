import { expect } from "chai";
import { type Client, createClient, RefusedError, valueOf } from "../../src/client/client.ts";
import type { Input } from "../../src/client/types.ts";
import { newWorld, type World } from "../support/world.ts";

/** Does nothing but compile: what the contract does not take, no call takes. */
export const wrong: readonly unknown[] = [
  { id: "1" } satisfies Input<"getAgent">,
  { body: { name: "A", teamId: "1", budgetCents: 1, scopes: ["get_budget"] } } satisfies Input<"createAgent">,
  {
    id: "1",
    body: { version: 1, rules: [{ type: "new_recipient", enabled: true, params: {} }] },
  } satisfies Input<"setTeamApprovalRules">,
  {} satisfies Input<"listAgents">,
  { query: { state: "paused", limit: 3 } } satisfies Input<"listAgents">,
];

describe("the client", () => {
  let world: World;
  let client: Client;
  before(async () => {
    world = await newWorld();
    client = clientFor(world.token);
  });

  const clientFor = (token: string, sending: typeof fetch = fetch) =>
    createClient({
      baseUrl: world.service.baseUrl,
      credential: { type: "bearer", token: () => token },
      fetch: sending,
    });

  const newAgent = (name: string) => ({
    body: { name, teamId: world.organization.teamId, budgetCents: 10_000 },
  });

  it("calls operations by their names, with ids, query and body where the contract has them", async () => {
    const { agent, apiKey } = valueOf(await client.createAgent(newAgent("Ada")));
    expect(apiKey).to.match(/^sk_svc_live_/);
    const policy = valueOf(await client.getAgentBudgetPolicy({ id: agent.id }));
    expect([agent.name, policy.budgetCents]).to.deep.equal(["Ada", 10_000]);
    const paused = valueOf(await client.pauseAgent({ id: agent.id }));
    const { agents } = valueOf(await client.listAgents({ query: { state: "paused" } }));
    expect(agents).to.deep.equal([paused.agent]);
  });

  it("goes through a list page by page, only as far as it is asked", async () => {
    const own = await newWorld(world.service);
    let requests = 0;
    const counted = clientFor(own.token, (...args) => {
      requests += 1;
      return fetch(...args);
    });
    for (const name of ["One", "Two", "Three"]) {
      valueOf(await counted.createTeam({ body: { name } }));
    }
    requests = 0;
    const names: string[] = [];
    for await (const { name } of counted.each("listTeams", { query: { limit: 2 } })) names.push(name);
    expect([names, requests]).to.deep.equal([["Three", "Two", "One", "General"], 2]);
    for await (const { name } of counted.each("listTeams", { query: { limit: 2 } })) {
      expect(name).to.equal("Three");
      break;
    }
    expect(requests).to.equal(3);
  });

  it("answers refusals as values with all their particulars, and throws only when asked", async () => {
    const missing = await client.getAgent({ id: "01a2068b-40a6-73a5-aa10-002b054e3cb7" });
    expect(missing.ok ? null : [missing.refused.status, missing.refused.code]).to.deep.equal([
      404,
      "NOT_FOUND",
    ]);
    const invalid = await client.createAgent(newAgent(""));
    if (invalid.ok) throw new Error("An agent needs a name.");
    expect(invalid.refused.issues.map(({ path }) => path)).to.deep.equal(["name"]);
    expect(invalid.refused.requestId).to.be.a("string");
    expect(() => valueOf(invalid)).to.throw(RefusedError);
    const nobody = await clientFor("nobody").listAgents();
    expect(nobody.ok ? null : nobody.refused.code).to.equal("UNAUTHORIZED");
  });

  it("replays a create whose answer was lost under its own key: there is one agent", async () => {
    const lost: unknown[] = [];
    const losing = clientFor(world.token, async (...args) => {
      const response = await fetch(...args);
      if (lost.length > 1) return response;
      lost.push(args[1]?.body);
      throw new TypeError("the line broke");
    });
    const { agent } = valueOf(await losing.createAgent(newAgent("Once")));
    expect(lost[0]).to.equal(lost[1]);
    const { agents } = valueOf(await client.listAgents());
    expect(agents.filter(({ name }) => name === "Once").map(({ id }) => id)).to.deep.equal([agent.id]);
  });

  it("sends nothing twice that is no read and has no key: it says that no answer came", async () => {
    let sent = 0;
    const losing = clientFor(world.token, async () => {
      sent += 1;
      throw new TypeError("the line broke");
    });
    const answer = await losing.createWebhook({
      body: { name: "W", url: "https://example.com", eventTypes: ["*"] },
    });
    expect([answer.ok ? null : answer.refused.code, sent]).to.deep.equal(["NO_ANSWER", 1]);
  });

  it("hands a file over as it comes", async () => {
    const file = valueOf(await client.exportTransactions({ query: { range: "7d" } }));
    expect(file.headers.get("content-type")).to.include("text/csv");
    expect((await file.text()).startsWith("id,createdAt,agentId")).to.equal(true);
  });
});
