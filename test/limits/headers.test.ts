import { expect } from "chai";
import { MemoryCounts } from "../../src/limits/memory-counts.ts";
import { Api, type CallOptions, freshAddress } from "../support/api.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { listen } from "../../server/http/server.ts";
import type { Counts } from "../../src/limits/counts.ts";
import { expectError } from "../support/contract-api.ts";
import { send } from "../support/wire.ts";
import { cardPayment, type TestAgent, type World } from "../support/world.ts";
import {
  atOnce,
  FixedClock,
  from,
  limitedService,
  limitedWorld,
  shown,
  type SpentCounts,
  statuses,
} from "./support.ts";

const MCP = { accept: "application/json, text/event-stream", "content-type": "application/json" };
const LARGE = "x".repeat(256 * 1_024 + 1);

/** Whose limit an answer shows: the pro plan's over REST, over MCP, or that of an address. */
const LIMITS = { rest: 1_000, mcp: 600, address: 100 } as const;

const PING = { jsonrpc: "2.0", id: 1, method: "ping" };

describe("x-ratelimit-limit, -remaining and -reset", () => {
  let clock: FixedClock;
  let counts: SpentCounts;
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  let paused: TestAgent;
  before(async () => {
    ({ clock, counts, service } = await limitedService());
    counts.forget();
    world = await limitedWorld(service, { plan: "pro" });
    [agent, paused] = [await world.agent(), await world.agent()];
    await world.api.ok("pauseAgent", 200, { token: world.token, id: paused.id });
    clock.nextMinute();
  });

  const owner = (more: CallOptions = {}) => ({ token: world.token, ...more });
  const text = { "content-type": "text/plain" };

  type Row = readonly [number, string, string, () => CallOptions, keyof typeof LIMITS];
  const rows: readonly Row[] = [
    [200, "GET", "/v1/agents", owner, "rest"],
    [200, "HEAD", "/v1/agents", owner, "rest"],
    [200, "GET", "/v1/openapi.json", () => ({}), "address"],
    [201, "POST", "/v1/payments", () => ({ token: agent.key, body: cardPayment() }), "rest"],
    [400, "POST", "/v1/agents", () => owner({ body: "{" }), "rest"],
    [400, "POST", "/v1/auth/sign-in", () => ({ body: {} }), "address"],
    [401, "GET", "/v1/agents", () => ({}), "address"],
    [401, "GET", "/v1/agents", () => ({ token: "nobody" }), "address"],
    [401, "GET", "/v1/nothing", () => ({ token: "nobody" }), "address"],
    [401, "POST", "/v1/auth/refresh", () => ({ body: { refreshToken: "x" } }), "address"],
    [401, "POST", "/mcp", () => ({ headers: MCP, body: "{}" }), "address"],
    [401, "POST", "/mcp", () => ({ headers: MCP, body: "{}", token: world.token }), "mcp"],
    [403, "GET", "/v1/payments", owner, "rest"],
    [403, "GET", "/v1/payments", () => ({ token: paused.key }), "rest"],
    [403, "POST", "/mcp", () => ({ token: paused.key, headers: MCP, body: "{}" }), "mcp"],
    [404, "GET", "/v1/agents/nobody", owner, "rest"],
    [404, "GET", "/v1/nothing", owner, "rest"],
    [404, "GET", "/v1/nothing", () => ({}), "address"],
    [404, "GET", "/v1/agents/%zz", () => ({}), "address"],
    [204, "OPTIONS", "/v1/agents", owner, "rest"],
    [401, "PUT", "/v1/agents", () => ({ token: "nobody" }), "address"],
    [405, "PUT", "/v1/agents", owner, "rest"],
    [405, "POST", "/v1/openapi.json", () => ({}), "address"],
    [404, "POST", "/mcp/x", () => ({}), "address"],
    [413, "POST", "/v1/agents", () => owner({ body: LARGE }), "rest"],
    [413, "POST", "/mcp", () => ({ token: agent.key, headers: MCP, body: LARGE }), "mcp"],
    [415, "POST", "/v1/agents", () => owner({ body: "x", headers: text }), "rest"],
    [415, "POST", "/mcp", () => ({ token: agent.key, body: "x", headers: text }), "mcp"],
    // No stream of events is accepted: the protocol's own answer, from its library.
    [406, "POST", "/mcp", () => ({ token: agent.key, body: PING, headers: { accept: "*/x" } }), "mcp"],
  ];
  for (const [status, method, path, options, whose] of rows) {
    it(`are on ${status} ${method} ${path}: the limit per minute of ${whose === "address" ? "the address" : whose}`, async () => {
      const { body, headers, token } = options();
      const answer = await send(service.baseUrl, path, {
        method,
        headers: {
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      expect(answer.status, JSON.stringify(answer.body)).to.equal(status);
      expect(shown(answer)).to.include({ limit: LIMITS[whose], reset: clock.resetSeconds });
      expect(shown(answer).remaining).to.be.below(LIMITS[whose]);
    });
  }

  it("show the limit per minute, not the cap of the route that refuses", async () => {
    const address = freshAddress();
    const api = new Api(service.baseUrl);
    const signIn = (index: number) =>
      api.call("POST", "/v1/auth/sign-in", {
        body: { email: `nobody-${index}@example.com`, password: "x" },
        ...from(address),
      });
    counts.leave(1, 10);
    expect((await signIn(0)).status).to.equal(401);
    const limited = await signIn(1);
    expect([limited.status, shown(limited).limit, shown(limited).remaining]).to.deep.equal([429, 100, 98]);
  });

  it("are not on what is not the API: pages, health, metrics, other paths", async () => {
    for (const path of [
      "/",
      "/docs",
      "/healthz",
      "/readyz",
      "/metrics",
      "/nothing",
      "/v2/agents",
      "/V1/agents",
    ]) {
      const { headers } = await send(service.baseUrl, path);
      expect(
        [...headers.keys()].filter((name) => name.startsWith("x-ratelimit")),
        path,
      ).to.deep.equal([]);
    }
  });
});

describe("a service without trusted proxies", () => {
  const broken = new Error("a defect");
  const clock = new FixedClock();
  /** Requests that fail. */
  const fails = { add: false, read: false };
  let service: TestService;
  let api: Api;
  before(async () => {
    const memory = new MemoryCounts();
    const counts: Counts = {
      add: (key, points) => (fails.add ? Promise.reject(broken) : memory.add(key, points)),
      read: (key) => (fails.read ? Promise.reject(broken) : memory.read(key)),
    };
    service = await startTestService({ trustedProxies: "", clock: clock.read, counts });
    api = new Api(service.baseUrl);
  });
  after(() => service.stop());

  it("500 has the headers too, and an answer without them is still an answer", async () => {
    await send(service.baseUrl, "/v1/agents");
    fails.add = true;
    const answer = await send(service.baseUrl, "/v1/agents");
    expect([answer.status, shown(answer).remaining]).to.deep.equal([500, 99]);
    fails.read = true;
    const bare = await send(service.baseUrl, "/v1/agents");
    expect([bare.status, expectError(bare).error]).to.deep.equal([500, "INTERNAL"]);
    Object.assign(fails, { add: false, read: false });
  });

  it("does not believe x-forwarded-for: all count by the socket's address, however it is written", async () => {
    const names = ["x-forwarded-for", "X-Forwarded-For", "forwarded", "x-real-ip", "cf-connecting-ip"];
    const { remaining } = shown(await api.call("GET", "/v1/agents"));
    const answers = await atOnce(remaining + 10, (index) => {
      const name = names[index % names.length] ?? "";
      return api.call("GET", "/v1/agents", { headers: { [name]: freshAddress() } });
    });
    expect(statuses(answers)).to.deep.equal({ 401: remaining, 429: 10 });
  });

  it("503 before the caller is known shows how its address stands, and counts nothing", async () => {
    clock.nextMinute();
    const world = await limitedWorld(service);
    const agent = await world.agent();
    clock.nextMinute();
    const { remaining } = shown(await api.call("GET", "/v1/agents"));
    expect(remaining).to.equal(99);
    // For good: the driver takes no operation on a client that was closed.
    await service.connections.mongo.close();
    for (const [method, path, token] of [
      ["GET", "/v1/agents", world.token],
      ["GET", "/v1/payments", agent.key],
      ["POST", "/mcp", agent.key],
      ["GET", "/v1/nothing", agent.key],
    ] as const) {
      const answer = await api.call(method, path, { token });
      expect(answer.status, path).to.equal(503);
      expect(shown(answer)).to.include({ limit: 100, remaining });
    }
    const answer = await api.call("POST", "/v1/auth/sign-in", {
      body: { email: "a@example.com", password: "x" },
    });
    expect([answer.status, shown(answer).remaining]).to.deep.equal([503, 98]);
  });
});

describe("x-ratelimit headers of a server that starts", () => {
  it("are on its 503 under /v1 and /mcp, and nowhere else", async () => {
    const http = await listen("127.0.0.1", 0);
    const baseUrl = `http://127.0.0.1:${http.port}`;
    for (const path of ["/v1/agents", "/mcp"]) {
      const answer = await send(baseUrl, path);
      expect([answer.status, shown(answer).limit]).to.deep.equal([503, 100]);
    }
    expect((await send(baseUrl, "/docs")).headers.has("x-ratelimit-limit")).to.equal(false);
    await http.drain();
  });
});
