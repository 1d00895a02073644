import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { httpFailure, McpCaller } from "../mcp/support.ts";
import { codeOf } from "../support/contract-api.ts";
import { expectDead, expectEvents, mintKey, orchestrator, readAgent, revokeKey } from "../support/life.ts";
import { cardPayment, type Fields, newWorld, tally, times, type World } from "../support/world.ts";

/** Texts that a query language, an update or a page might take for something else. */
const ODD_TEXTS = [
  "$name",
  "a.b",
  "{ $gt: '' }",
  "__proto__",
  "<script>alert(1)</script>",
  "é 漢字 🤖",
  "x".repeat(100),
];

describe("changes of an agent over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  const change = async ({ id }: { readonly id: string }, body: Fields) =>
    (await world.api.ok("updateAgent", 200, { token: world.token, id, body })).agent;

  describe("PATCH of name, description and appearance", () => {
    it("changes what is sent, keeps what is left out, clears by null; all else stays as it was", async () => {
      const agent = await world.agent({ description: "first" });
      const before = await readAgent(world, agent);
      const steps: readonly (readonly [Fields, Fields])[] = [
        [{ name: "Renamed" }, { name: "Renamed" }],
        [{ description: "second" }, { description: "second" }],
        [{ appearance: { color: "#1a2b3c", icon: "🤖" } }, { appearance: { color: "#1a2b3c", icon: "🤖" } }],
        [{}, {}],
        [{ description: null }, { description: null }],
        [
          { appearance: null, name: "Again" },
          { appearance: null, name: "Again" },
        ],
      ];
      let expected: Fields = { ...before };
      for (const [body, changed] of steps) {
        expected = { ...expected, ...changed };
        const answered = await change(agent, body);
        expect({ ...answered, updatedAt: "" }).to.deep.equal({ ...expected, updatedAt: "" });
        expect(await readAgent(world, agent)).to.deep.equal(answered);
      }
      expect((await readAgent(world, agent)).updatedAt > before.updatedAt).to.equal(true);
      await expectEvents(world, agent, { "agent.created": 1 });
    });

    it("any text is that text: in the record, in lists, and in the transactions that come later", async () => {
      const agent = await world.agent({ budgetCents: 100_000 });
      for (const text of ODD_TEXTS) {
        const appearance = { color: "#000000", icon: text.slice(0, 60) };
        const changed = await change(agent, { name: text, description: text, appearance });
        expect([changed.name, changed.description, changed.appearance]).to.deep.equal([
          text,
          text,
          appearance,
        ]);
        const { transaction } = await agent.pay();
        expect(transaction.agentName).to.equal(text);
        const query = { agent_id: agent.id, limit: "1" };
        const listed = await world.api.ok("listTransactions", 200, { token: world.token, query });
        expect(listed.transactions.map(({ agentName }) => agentName)).to.deep.equal([text]);
      }
    });

    it("earlier transactions keep the name of their time; approvals on hold, too", async () => {
      const agent = await world.agent({ name: "Before", autoApprovalThresholdCents: 100 });
      const early = await agent.pay();
      const held = await agent.hold({ amountCents: 101 });
      await change(agent, { name: "After" });
      const late = await agent.pay();
      const name = async (id: string) =>
        (await world.api.ok("getPayment", 200, { token: agent.key, id })).transaction.agentName;
      expect(await name(early.transaction.id)).to.equal("Before");
      expect(await name(late.transaction.id)).to.equal("After");
      expect(await name(held.transactionId)).to.equal("Before");
    });

    it("what is wrong is 400 and changes nothing; what is not known is refused by its name", async () => {
      const agent = await world.agent();
      const before = await readAgent(world, agent);
      const wrong: readonly (readonly [Fields, string])[] = [
        [{ name: "" }, "name"],
        [{ name: null }, "name"],
        [{ name: "x".repeat(101) }, "name"],
        [{ name: 7 }, "name"],
        [{ description: "x".repeat(501) }, "description"],
        [{ appearance: { color: "red", icon: "x" } }, "appearance.color"],
        [{ appearance: { color: "#123456" } }, "appearance.icon"],
        [{ appearance: { color: "#123456", icon: "x", size: 1 } }, "appearance.size"],
        [{ budgetCents: 1 }, "budgetCents"],
        [{ state: "archived" }, "state"],
        [{ scopes: [] }, "scopes"],
        [{ name: "Fine", nmae: "misspelt" }, "nmae"],
      ];
      for (const [body, path] of wrong) {
        const request = { token: world.token, id: agent.id, body };
        const { issues } = await world.api.refused("updateAgent", 400, "VALIDATION_FAILED", request);
        expect(issues?.map((issue) => issue.path)).to.include(path);
      }
      expect(await readAgent(world, agent)).to.deep.equal(before);
    });

    it("names at once while it pays: the last one stands everywhere, and no payment is lost", async () => {
      const agent = await world.agent();
      const names = times(8, (index) => `Name ${index}`);
      await Promise.all([
        ...names.map((name) => change(agent, { name })),
        ...times(8, () => agent.pay({ amountCents: 1 })),
      ]);
      const { name, spentCents } = await readAgent(world, agent);
      expect(names).to.include(name);
      expect(spentCents).to.equal(8);
      expect((await agent.pay({ amountCents: 1 })).transaction.agentName).to.equal(name);
    });
  });

  describe("pausing", () => {
    it("403 AGENT_PAUSED at once for all the agent's requests, over REST and MCP; nothing is paid", async () => {
      const agent = await world.agent();
      const { id } = agent;
      const { transaction } = await agent.pay();
      const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
      await mcp.ok(operations.getBudget.output, "get_budget");
      await world.api.ok("pauseAgent", 200, { token: world.token, id });
      const { key: token } = agent;
      const answers = await Promise.all([
        ...times(3, () => world.api.call("createPayment", { token, body: cardPayment() })),
        world.api.call("listPayments", { token }),
        world.api.call("getPayment", { token, id: transaction.id }),
        world.api.call("cancelPayment", { token, id: transaction.id }),
      ]);
      expect(tally(answers.map(codeOf))).to.deep.equal({ AGENT_PAUSED: 6 });
      const connected: unknown = await mcp.call("get_budget").catch((error: unknown) => error);
      expect(httpFailure.parse(connected).code).to.equal(403);
      expect(String(connected)).to.include("AGENT_PAUSED").and.include("Do not retry");
      const anew: unknown = await McpCaller.connect(world.service.baseUrl, token).catch(
        (error: unknown) => error,
      );
      expect(httpFailure.parse(anew).code).to.equal(403);
      const transactions = world.service.db.collection("transactions");
      expect(await transactions.countDocuments({ agentId: id })).to.equal(1);
      await world.api.ok("resumeAgent", 200, { token: world.token, id });
      await mcp.ok(operations.getBudget.output, "get_budget");
      await agent.pay();
      await mcp.close();
    });

    it("the emergency stop: pause and revoke end all; mint and resume bring all of it back", async () => {
      const agent = await world.agent({ autoApprovalThresholdCents: 500 });
      const { id } = agent;
      const held = await agent.hold({ amountCents: 600 });
      await agent.pay();
      const before = await readAgent(world, agent);
      const paused = await world.api.ok("pauseAgent", 200, { token: world.token, id });
      // When it was last used is written every few seconds.
      const { lastUsedAt } = paused.agent.key ?? { lastUsedAt: null };
      expect(paused.agent).to.deep.include({ state: "paused", key: { ...before.key, lastUsedAt } });
      await world.api.refused("listPayments", 403, "AGENT_PAUSED", { token: agent.key });
      await revokeKey(world, agent);
      await expectDead(world, agent.key);
      const stopped = await readAgent(world, agent);
      expect([stopped.state, stopped.key, stopped.reservedCents]).to.deep.equal(["paused", null, 600]);

      const { apiKey } = await mintKey(world, agent);
      await world.api.refused("listPayments", 403, "AGENT_PAUSED", { token: apiKey });
      await world.api.ok("resumeAgent", 200, { token: world.token, id });
      const { transaction } = await world.api.ok("createPayment", 201, {
        token: apiKey,
        body: cardPayment(),
      });
      expect(transaction.status).to.equal("approved");
      await world.api.ok("approveApproval", 200, { token: world.token, id: held.approvalId });
      await expectDead(world, agent.key);
      const after = await readAgent(world, agent);
      expect([after.state, after.spentCents, after.reservedCents]).to.deep.equal(["active", 800, 0]);
      expect([after.budgetCents, after.version, after.wallet]).to.deep.equal([
        before.budgetCents,
        before.version,
        before.wallet,
      ]);
    });

    it("by a person or a key alike, idempotent in any order, also many at once", async () => {
      const agent = await world.agent();
      const { token } = await orchestrator(world);
      for (const [operation, state] of [
        ["pauseAgent", "paused"],
        ["resumeAgent", "active"],
      ] as const) {
        const answers = await Promise.all(
          times(6, (index) =>
            world.api.ok(operation, 200, { token: index % 2 === 0 ? token : world.token, id: agent.id }),
          ),
        );
        expect(tally(answers.map((answer) => answer.agent.state))).to.deep.equal({ [state]: 6 });
      }
      await expectEvents(world, agent, { "agent.created": 1, "agent.paused": 1, "agent.resumed": 1 });
    });
  });
});
