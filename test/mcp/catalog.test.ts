import { expect } from "chai";
import { z } from "zod";
import { AGENT_TOOLS } from "../../src/contract/tool-names.ts";
import { toolsetOf } from "../../src/contract/tool-names.ts";
import { operationList } from "../../src/contract/registry.ts";
import { newWorld, type TestAgent, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

/** Tools of this capability; what is still to come is not listed. */
const TOOLSET = [
  "get_budget",
  "check_payment",
  "create_card_payment",
  "create_wallet_payment",
  "pay_x402_request",
  "get_payment",
  "list_payments",
  "cancel_payment",
  "get_denial_feedback",
  "request_raise",
  "get_wallet",
];
const PAYS = ["create_card_payment", "create_wallet_payment", "pay_x402_request"];
/** Tools that reach beyond the service. */
const LOOKS_OUTSIDE = [...PAYS, "check_payment"];
const DESTROYS = [...PAYS, "cancel_payment"];
const WRITES = [...DESTROYS, "request_raise"];

const input = z.strictObject({
  type: z.literal("object"),
  properties: z.record(z.string(), z.looseObject({})),
  required: z.array(z.string()),
  additionalProperties: z.literal(false),
});
const output = z.strictObject({
  type: z.literal("object"),
  anyOf: z.tuple([z.looseObject({}), z.looseObject({})]),
});
const annotations = z.strictObject({
  readOnlyHint: z.boolean(),
  destructiveHint: z.boolean(),
  idempotentHint: z.boolean(),
  openWorldHint: z.boolean(),
});

describe("the catalogue of MCP tools", () => {
  let world: World;
  let agent: TestAgent;
  let mcp: McpCaller;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
    mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
  });
  after(() => mcp.close());

  const tools = async () => (await mcp.client.listTools()).tools;

  it("initialize answers name, version, tools and how to behave; no session is kept", () => {
    expect(mcp.client.getServerVersion()).to.include({ name: "agent-spending-control" });
    expect(mcp.client.getServerCapabilities()).to.deep.equal({ tools: {} });
    expect(mcp.client.getInstructions()).to.include("idempotencyKey");
  });

  it("tools/list names exactly the agent toolset's tools, each one an agent can be scoped to", async () => {
    const names = (await tools()).map(({ name }) => name);
    expect(names.toSorted()).to.deep.equal(TOOLSET.toSorted());
    expect([...AGENT_TOOLS]).to.include.members(names);
    expect(names).not.to.include.members(["update_agent_budget_policy", "approve_approval"]);
  });

  it("each has a title, a description, the four annotations, and writes are told from reads", async () => {
    for (const tool of await tools()) {
      const hints = annotations.parse(tool.annotations);
      expect(tool.description).to.be.a("string").and.to.have.length.above(40);
      expect(tool.title).to.be.a("string");
      expect(hints.readOnlyHint, tool.name).to.equal(!WRITES.includes(tool.name));
      expect(hints.destructiveHint).to.equal(DESTROYS.includes(tool.name));
      expect(hints.openWorldHint).to.equal(LOOKS_OUTSIDE.includes(tool.name));
      expect(hints.idempotentHint).to.equal(true);
    }
  });

  it("input schemas are flat objects without unions that refuse unknown arguments", async () => {
    for (const tool of await tools()) {
      const { properties, required } = input.parse(tool.inputSchema);
      expect(JSON.stringify(tool.inputSchema), tool.name).not.to.match(/"(anyOf|oneOf|allOf|\$ref|not)"/);
      for (const property of Object.values(properties)) {
        expect(property["type"] ?? property["const"] ?? property["enum"], tool.name).to.be.a("string");
      }
      expect(Object.keys(properties)).to.include.members(required);
    }
  });

  it("ids of paths have their agreed names, and only what a call needs is required", async () => {
    const shapes = Object.fromEntries(
      (await tools()).map(({ inputSchema, name }) => {
        const { properties, required } = input.parse(inputSchema);
        return [name, [Object.keys(properties).toSorted(), required.toSorted()]];
      }),
    );
    const common = ["amountCents", "currency", "idempotencyKey", "merchantCategory", "purpose"];
    const pays = (...more: string[]) => [...common, ...more].toSorted();
    expect(shapes).to.deep.equal({
      get_budget: [[], []],
      check_payment: [pays("maxAmountCents", "merchant", "method", "rail", "recipient", "url"), []],
      create_card_payment: [
        pays("merchant", "waitSeconds"),
        ["amountCents", "idempotencyKey", "merchant", "purpose"],
      ],
      create_wallet_payment: [
        pays("recipient", "waitSeconds"),
        ["amountCents", "idempotencyKey", "purpose", "recipient"],
      ],
      pay_x402_request: [
        ["body", "headers", "idempotencyKey", "maxAmountCents", "method", "purpose", "url", "waitSeconds"],
        ["idempotencyKey", "maxAmountCents", "purpose", "url"],
      ],
      get_payment: [["transactionId", "waitSeconds"], ["transactionId"]],
      list_payments: [["cursor", "limit", "status"], []],
      cancel_payment: [["transactionId"], ["transactionId"]],
      get_denial_feedback: [["transactionId"], []],
      request_raise: [
        ["amountCents", "idempotencyKey", "reason", "transactionId", "waitSeconds"],
        ["amountCents", "idempotencyKey", "reason"],
      ],
      get_wallet: [[], []],
    });
  });

  it("output schemas are objects with anyOf of success and a short error, without references", async () => {
    for (const tool of await tools()) {
      const { anyOf } = output.parse(tool.outputSchema);
      const [success, failure] = anyOf;
      expect(success, tool.name).to.have.all.keys("properties", "required");
      expect(failure, tool.name).to.deep.equal({
        properties: { error: { type: "string" }, message: { type: "string" } },
        required: ["error", "message"],
      });
      expect(JSON.stringify(tool.outputSchema), tool.name).not.to.include("$ref");
    }
  });

  it("every operation that is a tool of the toolset has been listed, and none that is not", async () => {
    const bound = operationList.flatMap(([, { tool }]) =>
      tool !== null && toolsetOf(tool.name) === "agent" ? [tool.name] : [],
    );
    expect((await tools()).map(({ name }) => name)).to.deep.equal(bound);
  });

  it("a scoped agent is shown its tools and may call no other: TOOL_NOT_ALLOWED comes first", async () => {
    const scoped = await world.agent({ scopes: ["get_budget", "get_payment", "get_wallet"] });
    const caller = await McpCaller.connect(world.service.baseUrl, scoped.key);
    try {
      const { tools: shown } = await caller.client.listTools();
      expect(shown.map(({ name }) => name).toSorted()).to.deep.equal([
        "get_budget",
        "get_payment",
        "get_wallet",
      ]);
      for (const name of [
        "check_payment",
        "create_card_payment",
        "create_wallet_payment",
        "list_payments",
        "cancel_payment",
      ] as const) {
        await caller.refused(name, "TOOL_NOT_ALLOWED", { no: "such" });
      }
      await caller.refused("get_denial_feedback", "TOOL_NOT_ALLOWED");
      expect((await caller.call("get_budget")).isError).to.equal(false);
    } finally {
      await caller.close();
    }
  });
});
