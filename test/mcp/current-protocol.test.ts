import { expect } from "chai";
import { z } from "zod";
import { madePayment, payment } from "../../src/contract/records.ts";
import { noteSecretsGiven } from "../support/secrets.ts";
import { send } from "../support/wire.ts";
import { cardPayment, newWorld, organizationKey, type TestAgent, type World } from "../support/world.ts";
import { connectCurrent, CURRENT_REVISION } from "./current-client.ts";
import { McpCaller } from "./support.ts";

const TASKS = "io.modelcontextprotocol/tasks";
const META = "io.modelcontextprotocol/";

const rpc = z.looseObject({
  result: z.looseObject({ resultType: z.string().optional() }).optional(),
  error: z.looseObject({ code: z.int(), message: z.string(), data: z.looseObject({}) }).optional(),
});
const taskResult = z.looseObject({
  taskId: z.string(),
  status: z.string(),
  statusMessage: z.string().optional(),
  ttlMs: z.int(),
  pollIntervalMs: z.int(),
  result: z.looseObject({ structuredContent: payment }).optional(),
});

type Capabilities = Readonly<Record<string, unknown>>;
const KNOWS_TASKS: Capabilities = { extensions: { [TASKS]: {} } };

function pay(fields: Readonly<Record<string, unknown>> = {}) {
  const { rail: _rail, ...args } = cardPayment(fields);
  return { name: "create_card_payment", arguments: args };
}

describe("MCP in its revision of 2026-07-28", () => {
  let world: World;
  let agent: TestAgent;
  let baseUrl: string;
  before(async () => {
    world = await newWorld();
    ({ baseUrl } = world.service);
    agent = await world.agent({ autoApprovalThresholdCents: 1_000, budgetCents: 1_000_000 });
  });

  /** A request as the revision has it on the wire. */
  async function ask(
    key: string,
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: { capabilities?: Capabilities; headers?: Readonly<Record<string, string>> } = {},
  ) {
    const { capabilities = {}, headers = {} } = options;
    const name = params["name"] ?? params["taskId"];
    const _meta = {
      [`${META}protocolVersion`]: CURRENT_REVISION,
      [`${META}clientInfo`]: { name: "test", version: "1.0.0" },
      [`${META}clientCapabilities`]: capabilities,
    };
    const answer = await send(baseUrl, "/mcp", {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": CURRENT_REVISION,
        "mcp-method": method,
        ...(typeof name === "string" ? { "mcp-name": name } : {}),
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    });
    return { ...answer, ...rpc.parse(answer.body) };
  }

  for (const mode of ["auto", { pin: CURRENT_REVISION }] as const) {
    it(`the official client speaks it (${JSON.stringify(mode)}) and validates what tools answer`, async () => {
      const client = await connectCurrent(baseUrl, agent.key, mode);
      expect(client.getNegotiatedProtocolVersion()).to.equal(CURRENT_REVISION);
      expect(client.getInstructions()).to.be.a("string");
      const { tools } = await client.listTools();
      const old = await McpCaller.connect(baseUrl, agent.key);
      expect(tools.map(({ name }) => name)).to.deep.equal(
        (await old.client.listTools()).tools.map(({ name }) => name),
      );
      await old.close();
      const budget = await client.callTool({ name: "get_budget", arguments: {} });
      expect(budget.structuredContent).to.include({ budgetCents: 1_000_000 });
      const paid = await client.callTool(pay());
      noteSecretsGiven(paid.structuredContent);
      expect(madePayment.parse(paid.structuredContent).transaction.status).to.equal("approved");
      await client.close();
    });
  }

  it("one address serves both generations, and the bytes of the earlier one are as they were", async () => {
    const headers = {
      authorization: `Bearer ${agent.key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const earlier = await send(baseUrl, "/mcp", { method: "POST", headers, body });
    const current = await ask(agent.key, "tools/list");
    expect(earlier.headers.get("content-type")).to.equal("application/json");
    const { result } = rpc.parse(earlier.body);
    expect(result).to.have.all.keys("tools");
    expect(current.result).to.deep.include({ ...result, resultType: "complete", cacheScope: "private" });
  });

  it("discovery names the revision, the tools and, to agents alone, the tasks extension", async () => {
    const { result } = await ask(agent.key, "server/discover");
    expect(result).to.deep.include({ supportedVersions: [CURRENT_REVISION] });
    expect(result?.["capabilities"]).to.deep.equal({ tools: {}, extensions: { [TASKS]: {} } });
    const manager = await organizationKey(world);
    const managed = await ask(manager.token, "server/discover");
    expect(managed.result?.["capabilities"]).to.deep.equal({ tools: {} });
  });

  const wrong: readonly (readonly [string, number, number, Readonly<Record<string, string>>])[] = [
    ["another method in the header", 400, -32_020, { "mcp-method": "tools/call" }],
    ["another version in the header", 400, -32_020, { "mcp-protocol-version": "2026-07-29" }],
  ];
  for (const [what, status, code, headers] of wrong) {
    it(`${what} than in the body is refused`, async () => {
      const { error, headers: answered, status: got } = await ask(agent.key, "tools/list", {}, { headers });
      expect([got, error?.code]).to.deep.equal([status, code]);
      expect(error?.data).to.deep.include({ requestId: answered.get("x-request-id") });
    });
  }

  it("arguments that are no object are -32602 in the service's words", async () => {
    for (const args of [[], "{}", null]) {
      const { error, status } = await ask(agent.key, "tools/call", { name: "get_budget", arguments: args });
      expect([status, error?.code]).to.deep.equal([200, -32_602]);
      expect(error?.message).to.match(/^`arguments` must be an object[^[{]*$/);
    }
  });

  it("an unknown tool is -32602, a tool of the other toolset WRONG_CREDENTIAL", async () => {
    const unknown = await ask(agent.key, "tools/call", { name: "delete_policy", arguments: {} });
    expect(unknown.error).to.include({
      code: -32_602,
      message: 'There is no tool "delete_policy": use one of those that are listed.',
    });
    const foreign = await ask(agent.key, "tools/call", { name: "list_agents", arguments: {} });
    expect(foreign.result).to.deep.include({ isError: true });
    expect(foreign.result?.["structuredContent"]).to.include({ error: "WRONG_CREDENTIAL" });
  });

  it("a bad key is 401 whatever the revision", async () => {
    const { status } = await send(baseUrl, "/mcp", {
      method: "POST",
      headers: { authorization: "Bearer nobody", "mcp-protocol-version": CURRENT_REVISION },
      body: "{}",
    });
    expect(status).to.equal(401);
  });

  const look = async (taskId: string, key = agent.key) => {
    const { error, result } = await ask(key, "tasks/get", { taskId }, { capabilities: KNOWS_TASKS });
    return { error, task: result === undefined ? null : taskResult.parse(result) };
  };

  const approvalOf = async (transactionId: string) => {
    const { approval } = await world.api.ok("getPayment", 200, { token: agent.key, id: transactionId });
    return approval?.id ?? "";
  };

  describe("tasks", () => {
    const HELD = { amountCents: 2_000 };

    async function heldTask() {
      const { result } = await ask(agent.key, "tools/call", pay(HELD), { capabilities: KNOWS_TASKS });
      expect(result?.resultType).to.equal("task");
      return taskResult.parse(result);
    }

    it("a held payment is a task to a client that declares them, and as it is to any other", async () => {
      const task = await heldTask();
      expect(task).to.include({ status: "working", ttlMs: 86_400_000 });
      expect(task.statusMessage).to.include(`${baseUrl}/approvals/apr_`);
      const { result } = await ask(agent.key, "tools/call", pay(HELD));
      expect(result?.resultType).to.equal("complete");
      expect(madePayment.parse(result?.["structuredContent"]).transaction.status).to.equal("pending");
    });

    it("a payment that is not held is its own answer to a client that knows tasks, too", async () => {
      const { result } = await ask(agent.key, "tools/call", pay(), { capabilities: KNOWS_TASKS });
      expect(result?.resultType).to.equal("complete");
    });

    it("approved, the task is completed with the payment as its result", async () => {
      const { taskId } = await heldTask();
      expect((await look(taskId)).task?.status).to.equal("working");
      await world.api.ok("approveApproval", 200, { token: world.token, id: await approvalOf(taskId) });
      const { task } = await look(taskId);
      expect(task?.status).to.equal("completed");
      expect(task?.result?.structuredContent.transaction).to.include({ id: taskId, status: "approved" });
    });

    it("cancelled, the payment is taken back and the task is cancelled; again changes nothing", async () => {
      const { taskId } = await heldTask();
      for (const _again of [1, 2]) {
        const { error } = await ask(agent.key, "tasks/cancel", { taskId }, { capabilities: KNOWS_TASKS });
        expect(error).to.equal(undefined);
      }
      expect((await look(taskId)).task?.status).to.equal("cancelled");
      const { transaction } = await world.api.ok("getPayment", 200, { token: agent.key, id: taskId });
      expect(transaction.denialCode).to.equal("CANCELLED_BY_AGENT");
    });

    it("only its agent sees a task, and what never was one is none", async () => {
      const { taskId } = await heldTask();
      const other = await world.agent();
      const { transaction } = await other.pay();
      for (const [key, id] of [
        [other.key, taskId],
        [other.key, transaction.id],
        [other.key, "txn_1"],
        [other.key, ""],
      ] as const) {
        expect((await look(id, key)).error?.code, id).to.equal(-32_602);
        const cancel = await ask(key, "tasks/cancel", { taskId: id }, { capabilities: KNOWS_TASKS });
        expect(cancel.error?.code, id).to.equal(-32_602);
      }
      expect((await look(taskId)).task?.status).to.equal("working");
    });

    it("a task that the header names otherwise than the body is refused", async () => {
      const { taskId } = await heldTask();
      for (const method of ["tasks/get", "tasks/cancel"]) {
        const headers = { "mcp-name": "txn_other" };
        const { error, status } = await ask(
          agent.key,
          method,
          { taskId },
          { capabilities: KNOWS_TASKS, headers },
        );
        expect([status, error?.code], method).to.deep.equal([400, -32_020]);
      }
      expect((await look(taskId)).task?.status).to.equal("working");
    });

    it("who does not declare tasks is told which capability is missing", async () => {
      const { taskId } = await heldTask();
      for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
        const { error } = await ask(agent.key, method, { taskId });
        expect(error?.code).to.equal(-32_021);
        expect(error?.data).to.deep.include({ requiredCapabilities: KNOWS_TASKS });
      }
    });

    it("without get_payment an agent may follow its task, without cancel_payment not cancel it", async () => {
      const paying = await world.agent({
        autoApprovalThresholdCents: 0,
        scopes: ["create_card_payment"],
      });
      const { result } = await ask(paying.key, "tools/call", pay(), { capabilities: KNOWS_TASKS });
      const { taskId } = taskResult.parse(result);
      await ask(paying.key, "tasks/cancel", { taskId }, { capabilities: KNOWS_TASKS });
      expect((await look(taskId, paying.key)).task?.status).to.equal("working");
      const reading = await world.agent({ scopes: ["get_budget"] });
      expect((await look(taskId, reading.key)).error?.code).to.equal(-32_602);
    });
  });
});
