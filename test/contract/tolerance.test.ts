import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { toolArguments, withoutNulls } from "../../src/contract/tolerance.ts";
import { derivedTools } from "../../server/mcp/tools.ts";

const cardOf = (fields: object) => ({ merchant: "Acme", amountCents: 1_200, purpose: "x", ...fields });

/** How a tool's arguments reach its operation. */
function sorted(tool: string, args: Readonly<Record<string, unknown>>) {
  const derived = derivedTools.get(tool);
  if (derived === undefined) throw new Error(`there is no tool ${tool}`);
  return derived.inputOf(args);
}

describe("forms that clients cannot help sending", () => {
  const { checkPayment, createPayment, createTeam, setTeamBudget, updateAgentBudgetPolicy } = operations;

  it("null for an optional field counts as left out, in unions and nested objects too", () => {
    const given = cardOf({ rail: "card", currency: null, merchantCategory: null, idempotencyKey: "k" });
    expect(withoutNulls(createPayment.body, given)).to.deep.equal(
      cardOf({ rail: "card", idempotencyKey: "k" }),
    );
    const rules = operations.setTeamApprovalRules.body;
    const rule = { type: "time_window", enabled: null, params: { outside: null, from: "08:00" } };
    expect(withoutNulls(rules, { version: 1, rules: [rule] })).to.deep.equal({
      version: 1,
      rules: [{ type: "time_window", params: { from: "08:00" } }],
    });
  });

  it("null stays where it has a meaning of its own, is required, or is misspelt", () => {
    for (const [{ body }, given] of [
      [updateAgentBudgetPolicy, { version: 1, dailySpendLimitCents: null, autoApprovalThresholdCents: null }],
      [updateAgentBudgetPolicy, { version: null }],
      [setTeamBudget, { capCents: null, agents: null, version: 1 }],
      [createTeam, { name: null, description: null }],
      [checkPayment, { amountCent: null }],
    ] as const) {
      expect(withoutNulls(body, given)).to.deep.equal(given);
    }
  });

  it("what client libraries add to every call is dropped, and a misspelt argument stays", () => {
    const added = {
      toolCallId: "c",
      tool_call_id: "c",
      sessionId: "s",
      chatInput: "",
      action: {},
      tool: "x",
    };
    const { body } = sorted("create_card_payment", { ...cardOf({ amountCent: 1 }), ...added });
    expect(body).to.deep.equal(cardOf({ amountCent: 1 }));
  });

  it("empty text for an optional argument counts as left out, and stays for a required one", () => {
    const given = { rail: "card", merchant: "", recipient: "", purpose: "", amountCents: 1 };
    expect(sorted("check_payment", given).body).to.deep.equal({ rail: "card", amountCents: 1 });
    expect(sorted("list_payments", { cursor: "", status: "" }).query).to.deep.equal({});
    expect(sorted("create_card_payment", { merchant: "" }).body).to.deep.equal({ merchant: "" });
  });

  it("text that is exactly an integer, or JSON of what is expected, counts as that", () => {
    expect(sorted("create_card_payment", { amountCents: "1200", waitSeconds: "0" })).to.deep.include({
      body: { amountCents: 1_200 },
      query: { waitSeconds: 0 },
    });
    const agents = JSON.stringify([{ agentId: "a", budgetCents: "5" }]);
    expect(sorted("set_team_budget", { teamId: "t", agents, version: "3" }).body).to.deep.equal({
      agents: [{ agentId: "a", budgetCents: 5 }],
      version: 3,
    });
    expect(sorted("create_agent", { scopes: '["get_budget"]' }).body).to.deep.equal({
      scopes: ["get_budget"],
    });
  });

  it("every integer argument of every tool may be text", () => {
    const refused = [...derivedTools].flatMap(([tool, { inputOf, listing }]) =>
      Object.entries(listing.inputSchema.properties ?? {}).flatMap(([name, schema]) => {
        if (!("type" in schema) || schema.type !== "integer") return [];
        return JSON.stringify(inputOf({ [name]: "7" })).includes(`"${name}":7`) ? [] : [`${tool}.${name}`];
      }),
    );
    expect(refused).to.deep.equal([]);
  });

  it("text that could be read in another way is left for parsing to refuse", () => {
    for (const text of ["12.50", "1e3", " 12", "12 ", "+1", "-1", "007", "", "0x10", "1,200"]) {
      const args = { amountCents: text, merchant: "12" };
      expect(sorted("create_card_payment", args).body).to.deep.equal(args);
    }
    for (const text of ["{}", "get_budget", "[", "null", '"x"']) {
      expect(sorted("create_agent", { scopes: text }).body).to.deep.equal({ scopes: text });
    }
    const { body } = sorted("create_card_payment", JSON.parse('{"__proto__":{"a":1},"purpose":null}'));
    expect(Object.keys(body as object)).to.deep.equal(["__proto__", "purpose"]);
  });

  it("arguments of no tool's schema are not changed", () => {
    expect(toolArguments(operations.listPayments.query, { limit: "30", more: "30" })).to.deep.equal({
      limit: 30,
      more: "30",
    });
  });
});
