import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "chai";
import { z } from "zod";
import type { Answer } from "../support/api.ts";
import { codeOf, expectError } from "../support/contract-api.ts";
import { startTestService } from "../support/service.ts";
import { send, wire } from "../support/wire.ts";
import { counts, newWorld, type TestAgent, type World } from "../support/world.ts";
import { McpCaller } from "./support.ts";

const rpcError = z.looseObject({ error: z.looseObject({ code: z.int(), message: z.string() }) });

const call = (name: unknown, args: unknown, _meta?: object) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta } });

const outcome = (answer: Answer) => {
  expectError(answer);
  return [answer.status, codeOf(answer)];
};

describe("MCP as a protocol", () => {
  let world: World;
  let agent: TestAgent;
  let mcp: McpCaller;
  let baseUrl: string;
  before(async () => {
    world = await newWorld();
    ({ baseUrl } = world.service);
    agent = await world.agent();
    mcp = await McpCaller.connect(baseUrl, agent.key);
  });
  after(() => mcp.close());

  const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = (
    token: string | null,
    body: string,
    headers: Readonly<Record<string, string>> = HEADERS,
    path = "/mcp",
  ) => {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    return send(baseUrl, path, { method: "POST", headers: { ...headers, ...authorization }, body });
  };
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  const counted = async () => {
    const { headers } = await post(agent.key, list);
    return [headers.get("x-ratelimit-reset"), Number(headers.get("x-ratelimit-remaining"))] as const;
  };

  it("an unknown tool is JSON-RPC error -32602, not a tool error", async () => {
    for (const name of ["delete_policy", "get_wallets", "__proto__", "constructor", ""]) {
      const error: unknown = await mcp.client
        .callTool({ name, arguments: {} })
        .catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(McpError);
      expect(error).to.include({ code: -32_602 });
      // The client puts its own prefix before what the server said.
      const { message } = z.instanceof(McpError).parse(error);
      expect(message).to.equal(
        `MCP error -32602: There is no tool ${JSON.stringify(name)}: use one of those that are listed.`,
      );
    }
    const long: unknown = await mcp.client
      .callTool({ name: "x".repeat(10_000), arguments: {} })
      .catch((thrown: unknown) => thrown);
    expect(z.instanceof(McpError).parse(long).message.length).to.be.below(200);
  });

  it("a call whose name is no text or whose arguments are no object is -32602 and says so", async () => {
    const odd: readonly (readonly [name: unknown, args: unknown, part: string])[] = [
      ["get_budget", [], "`arguments` must be an object"],
      ["get_budget", "{}", "`arguments` must be an object"],
      ["get_budget", null, "`arguments` must be an object"],
      ["create_card_payment", 7, "`arguments` must be an object"],
      [7, {}, "`name` must be text"],
      [undefined, {}, "`name` must be text"],
    ];
    for (const [name, args, part] of odd) {
      const { body, status } = await post(agent.key, call(name, args));
      const { error } = rpcError.parse(body);
      expect([status, error.code], String(args)).to.deep.equal([200, -32_602]);
      expect(error.message).to.match(new RegExp(`^${part}[^[{]*$`));
    }
    const batch = await post(
      agent.key,
      `[${call("get_budget", [])},${call("get_budget", {}).replace(":1", ":2")}]`,
    );
    const answers = z.array(z.looseObject({ id: z.int() })).parse(batch.body);
    const [malformed, good] = answers.toSorted((a, b) => a.id - b.id);
    expect(rpcError.parse(malformed).error.code).to.equal(-32_602);
    expect(good).to.have.property("result");
  });

  it("every JSON-RPC error names its request, as the header does", async () => {
    const unknown = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "resources/list", params: {} });
    for (const [body, code, more] of [
      [call("delete_policy", {}), -32_602, {}],
      [unknown, -32_601, {}],
      ['{"jsonrpc":"1.0"}', -32_600, {}],
      [list, -32_000, { accept: "text/event-stream" }],
      [list, -32_000, { "mcp-protocol-version": "1999-01-01" }],
      [
        `[${call("delete_policy", {})},${call("delete_policy", {}).replace('"id":1', '"id":2')}]`,
        -32_602,
        {},
      ],
    ] as const) {
      const { body: answered, headers } = await post(agent.key, body, { ...HEADERS, ...more });
      for (const one of z.array(z.unknown()).parse(Array.isArray(answered) ? answered : [answered])) {
        const { error } = rpcError.parse(one);
        expect(error, body).to.deep.include({ code, data: { requestId: headers.get("x-request-id") } });
      }
      expect(headers.get("x-request-id")).to.match(/^[0-9a-f-]{36}$/);
    }
  });

  it("a tool of the management toolset is WRONG_CREDENTIAL for an agent's key, and does nothing", async () => {
    for (const name of ["update_agent_budget_policy", "list_agents", "set_team_budget"]) {
      const result = await mcp.client.callTool({ name, arguments: {} });
      expect(result, name).to.include({ isError: true });
      expect(result.structuredContent, name).to.include({ error: "WRONG_CREDENTIAL" });
    }
  });

  it("bad arguments are VALIDATION_FAILED with the argument's name, and nothing is written", async () => {
    const card = { amountCents: 100, merchant: "shop", purpose: "x", idempotencyKey: "k" };
    const before = await counts(world);
    const bad: readonly (readonly [object, string])[] = [
      [{ ...card, amountCents: -1 }, "amountCents"],
      [{ ...card, amountCents: "1e2" }, "amountCents"],
      [{ ...card, merchant: { $gt: "" } }, "merchant"],
      [{ ...card, merchant: "a\u0000" }, "merchant"],
      [{ ...card, purpose: "\ud800" }, "purpose"],
      [{ ...card, budgetCents: 1_000_000 }, "budgetCents"],
      [{ ...card, constructor: 1 }, "constructor"],
      [{ ...card, rail: "card" }, "rail"],
      [{ ...card, agentId: agent.id }, "agentId"],
    ];
    for (const [args, path] of bad) {
      const { issues } = await mcp.refused("create_card_payment", "VALIDATION_FAILED", { ...args });
      expect(
        issues?.map((issue) => issue.path),
        JSON.stringify(args),
      ).to.deep.equal([path]);
    }
    const { idempotencyKey: _key, ...keyless } = card;
    await mcp.refused("create_card_payment", "IDEMPOTENCY_KEY_REQUIRED", keyless);
    for (const args of [{}, { transactionId: 7 }, { transactionId: null }]) {
      const { issues } = await mcp.refused("get_payment", "VALIDATION_FAILED", args);
      expect(issues?.map(({ path }) => path)).to.deep.equal(["transactionId"]);
    }
    await mcp.refused("get_payment", "VALIDATION_FAILED", { id: "txn_1" });
    await mcp.refused("get_payment", "NOT_FOUND", { transactionId: "txn_1" });
    await mcp.refused("get_budget", "VALIDATION_FAILED", { agentId: agent.id });
    for (const args of [
      { rail: "card", amountCents: 1 },
      { rail: "wallet", amountCents: 1, merchant: "x" },
    ]) {
      await mcp.refused("check_payment", "VALIDATION_FAILED", args);
    }
    expect(await counts(world)).to.deep.equal(before);
  });

  it("no credential, a session, and a mistyped key are HTTP 401 with WWW-Authenticate", async () => {
    for (const token of [null, world.token, `${agent.key.slice(0, -1)}_`, `svc_org_live_${"0".repeat(46)}`]) {
      expect(outcome(await post(token, list))).to.deep.equal([401, "UNAUTHORIZED"]);
    }
    const failure: unknown = await McpCaller.connect(baseUrl, "nobody").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error);
  });

  it("a revoked key is dead on the next request", async () => {
    const revoked = await world.agent();
    expect((await post(revoked.key, list)).status).to.equal(200);
    const agents = world.service.db.collection<{ _id: string }>("agents");
    await agents.updateOne({ _id: revoked.id }, { $set: { key: null } });
    expect(outcome(await post(revoked.key, list))).to.deep.equal([401, "UNAUTHORIZED"]);
  });

  it("a paused agent is HTTP 403 AGENT_PAUSED whatever it asks, and works again once resumed", async () => {
    const paused = await world.agent();
    const caller = await McpCaller.connect(baseUrl, paused.key);
    await world.api.ok("pauseAgent", 200, { token: world.token, id: paused.id });
    for (const body of [list, call("get_budget", {}), "{"]) {
      expect(outcome(await post(paused.key, body))).to.deep.equal([403, "AGENT_PAUSED"]);
    }
    const failure: unknown = await caller.call("get_budget").catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error).and.to.include({ code: 403 });
    await world.api.ok("resumeAgent", 200, { token: world.token, id: paused.id });
    expect((await caller.call("get_budget")).isError).to.equal(false);
    await caller.close();
  });

  it("only POST is served: anything else is 405 with Allow, without a credential too", async () => {
    for (const method of ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]) {
      const answer = await send(baseUrl, "/mcp", { method });
      expect([answer.status, answer.headers.get("allow")], method).to.deep.equal([405, "POST"]);
      if (method !== "HEAD") expect(outcome(answer)).to.deep.equal([405, "METHOD_NOT_ALLOWED"]);
    }
  });

  it("an unserved method uses up nothing of the key's calls", async () => {
    let [before, after] = [await counted(), await counted()];
    do {
      before = await counted();
      for (const method of ["GET", "DELETE", "OPTIONS"]) {
        const headers = { authorization: `Bearer ${agent.key}` };
        expect((await send(baseUrl, "/mcp", { method, headers })).status).to.equal(405);
      }
      after = await counted();
      // Two calls in different minutes say nothing of each other.
    } while (before[0] !== after[0]);
    expect(after[1]).to.equal(before[1] - 1);
  });

  it("whatever Accept admits JSON is answered in JSON, at /mcp/ too", async () => {
    for (const accept of ["*/*", "application/json", "application/*", null]) {
      const { accept: _accept, ...plain } = HEADERS;
      const headers = accept === null ? plain : { ...plain, accept };
      for (const path of ["/mcp", "/mcp/"]) {
        const { headers: answered, status } = await post(agent.key, list, headers, path);
        expect([status, answered.get("content-type")], `${accept} ${path}`).to.deep.equal([
          200,
          "application/json",
        ]);
      }
    }
    const missing = { transactionId: `txn_${"0".repeat(26)}`, waitSeconds: 1 };
    const waiting = call("get_payment", missing, { progressToken: 1 });
    for (const [accept, type] of [
      ["application/json", "application/json"],
      ["application/json, text/event-stream", "text/event-stream"],
    ] as const) {
      const { headers } = await post(agent.key, waiting, { ...HEADERS, accept });
      expect(headers.get("content-type")).to.equal(type);
    }
  });

  it("where the dashboard has another origin there is no OAuth; a client reads who issues keys", async () => {
    const service = await startTestService({ worker: false, publicUrl: "http://dashboard.example.com" });
    const register = { method: "POST", body: '{"redirect_uris":[]}' };
    try {
      for (const [path, status, request] of [
        ["/.well-known/oauth-authorization-server", 404, {}],
        // After a 404 mcp-remote tries another transport, and ends with what that one says.
        ["/register", 403, register],
      ] as const) {
        const headers = { "content-type": "application/json" };
        const answer = await fetch(`${service.baseUrl}${path}`, { headers, ...request });
        expect(answer.status).to.equal(status);
        expect(await answer.text())
          .to.include("keys are static")
          .and.include("issues another one");
      }
      const refused = await fetch(`${service.baseUrl}/mcp`, { method: "POST" });
      expect(refused.headers.get("www-authenticate")).to.equal("Bearer");
    } finally {
      await service.stop();
    }
  });

  it("bodies have the limits of REST: 413, 415 and 400", async () => {
    expect(outcome(await post(agent.key, "x".repeat(256 * 1_024 + 1)))).to.deep.equal([
      413,
      "PAYLOAD_TOO_LARGE",
    ]);
    const text = { ...HEADERS, "content-type": "text/plain" };
    expect(outcome(await post(agent.key, list, text))).to.deep.equal([415, "UNSUPPORTED_MEDIA_TYPE"]);
    expect(outcome(await post(agent.key, "{"))).to.deep.equal([400, "VALIDATION_FAILED"]);
  });

  it("what is no JSON-RPC is a JSON-RPC error without anything internal, and harms no session", async () => {
    const odd = [
      "{}",
      "[]",
      '{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
      '{"jsonrpc":"2.0","id":1}',
      '{"jsonrpc":"2.0","id":{},"method":"x"}',
      '{"jsonrpc":"2.0","id":1,"method":"resources/list"}',
      '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
      '{"jsonrpc":"2.0","id":1,"method":"constructor"}',
      call(7, {}),
      call({ $gt: "" }, {}),
      call("get_budget", []),
      call("get_budget", "x"),
      call(undefined, {}),
    ];
    for (const body of odd) {
      const answer = await post(agent.key, body);
      expect(answer.status, body).to.be.oneOf([200, 202, 400]);
      const text = JSON.stringify(answer.body);
      expect(text, body).not.to.match(/node_modules|\.ts:\d|\.js:\d|mongo|temporal/i);
      if (body !== "[]") expect(rpcError.safeParse(answer.body).success, `${body}: ${text}`).to.equal(true);
    }
    expect((await mcp.call("get_budget")).isError).to.equal(false);
  });

  it("a Host that is none is refused, a request target that makes no URL is no hindrance", async () => {
    const head = `Authorization: Bearer ${agent.key}\r\nContent-Type: application/json\r\nConnection: close`;
    for (const [target, host, status] of [
      ["/mcp", "a<b>", 403],
      ["http://example.com:99999/mcp", "localhost", 200],
    ] as const) {
      const accept = `Accept: ${HEADERS.accept}\r\nContent-Length: ${list.length}`;
      const start = `POST ${target} HTTP/1.1\r\nHost: ${host}\r\n`;
      const answer = await wire(baseUrl, `${start}${head}\r\n${accept}\r\n\r\n${list}`);
      expect(answer.status, `${target} ${host}`).to.equal(status);
    }
  });

  it("a batch that cancels one of its own messages is answered all the same", async () => {
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    const answer = await post(agent.key, `[${call("get_budget", {})},${JSON.stringify(cancelled)}]`);
    expect(answer.status).to.equal(200);
    expect(JSON.stringify(answer.body)).to.include("remainingCents");
  });

  it("two agents at once, over many connections, each see their own payments only", async () => {
    const other = await world.agent();
    const theirs = await McpCaller.connect(baseUrl, other.key);
    const paid = await Promise.all([agent.pay(), other.pay(), agent.pay(), other.pay()]);
    const [mine, foreign] = await Promise.all([mcp.call("list_payments"), theirs.call("list_payments")]);
    const idsOf = (agentId: string) =>
      paid
        .filter(({ transaction }) => transaction.agentId === agentId)
        .map(({ transaction }) => transaction.id);
    for (const id of idsOf(agent.id)) {
      expect(JSON.stringify(mine.body)).to.include(id);
      expect(JSON.stringify(foreign.body)).not.to.include(id);
    }
    expect(JSON.stringify(foreign.body)).to.include(idsOf(other.id)[0]);
    await theirs.close();
  });
});
