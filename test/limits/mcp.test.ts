import { expect } from "chai";
import { Api } from "../support/api.ts";
import { type TestService, WITHOUT_LIMITS } from "../support/service.ts";
import { tally, times, type World } from "../support/world.ts";
import {
  atOnce,
  callTool,
  expectLimited,
  limitedService,
  limitedWorld,
  message,
  mintKey,
  rpc,
  shown,
  type FixedClock,
  type SpentCounts,
  statuses,
} from "./support.ts";

const NOBODY = "018f0000-0000-7000-8000-000000000000";

describe("limits over MCP", () => {
  let clock: FixedClock;
  let counts: SpentCounts;
  let service: TestService;
  let world: World;
  /** Of `world`. */
  let keys: readonly [string, string, string];
  /** Of another organization, on the free plan, and its agent's key. */
  let stranger: World;
  let agentKey: string;
  before(async () => {
    ({ clock, counts, service } = await limitedService());
    counts.forget();
    world = await limitedWorld(service, WITHOUT_LIMITS);
    stranger = await limitedWorld(service);
    agentKey = (await stranger.agent()).key;
    keys = [await mintKey(world, clock), await mintKey(world, clock), await mintKey(world, clock)];
  });
  beforeEach(() => counts.forget());

  const pause = (key: string, agentId: string = NOBODY) => callTool(service, key, "pause_agent", { agentId });
  const create = (key: string, args: object) => callTool(service, key, "create_agent", args);
  const batch = (count: number) =>
    rpc(
      service,
      agentKey,
      times(count, (id) => ({ ...message("ping"), id })),
    );
  const list = (key: string) => rpc(service, key, message("tools/list"));

  describe("per minute", () => {
    it("of any number at once on the free plan exactly 60 pass, the others are 429 of any kind", async () => {
      counts.leave(4, 60);
      const bodies = [message("tools/list"), message("tools/call", { name: "get_budget" }), message("ping")];
      const answers = await atOnce(8, (index) => rpc(service, agentKey, bodies[index % bodies.length]));
      expect(statuses(answers)).to.deep.equal({ 200: 4, 429: 4 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      for (const body of bodies) expectLimited(await rpc(service, agentKey, body));
      clock.nextMinute();
      expect((await list(agentKey)).status).to.equal(200);
    });

    it("what MCP itself refuses counts, and REST is not counted with it", async () => {
      const odd = [
        "{",
        "{}",
        "[]",
        JSON.stringify(message("nothing")),
        JSON.stringify(message("tools/call")),
      ];
      counts.leave(odd.length, 60);
      await atOnce(odd.length, (index) => rpc(service, agentKey, odd[index]));
      expectLimited(await list(agentKey));
      const rest = await new Api(service.baseUrl).call("GET", "/v1/payments", { token: agentKey });
      expect([rest.status, shown(rest).remaining]).to.deep.equal([200, 99]);
    });

    it("a batch counts as its messages: packing calls together gets no caller more", async () => {
      expect(shown(await batch(25)).remaining).to.equal(35);
      expect(shown(await batch(35)).remaining).to.equal(0);
      expectLimited(await batch(2));
      clock.nextMinute();
      const whole = await batch(61);
      expectLimited(whole);
      expect(whole.body).not.to.be.an("array");
    });
  });

  describe("writes by organization keys", () => {
    it("20 a minute and key, as tool errors with a wait; reads and the key's REST are free of it", async () => {
      const [key] = keys;
      const { id } = await world.agent();
      counts.leave(2, 20);
      const codes = await Promise.all(times(4, () => pause(key, id)));
      expect(tally(codes)).to.deep.equal({ null: 2, RATE_LIMITED: 2 });
      expect(await callTool(service, key, "get_agent", { agentId: id })).to.equal(null);
      expect(await callTool(service, key, "list_agents", {})).to.equal(null);
      const rest = await new Api(service.baseUrl).call("POST", `/v1/agents/${id}/resume`, { token: key });
      expect(rest.status).to.equal(200);
      clock.nextMinute();
      expect(await pause(key, id)).to.equal(null);
    });

    it("refused writes count: wrong shape, wrong scope, unknown id, missing idempotency key", async () => {
      const key = await mintKey(world, clock, ["agents:write"]);
      const refused = [
        ["VALIDATION_FAILED", () => callTool(service, key, "pause_agent", {})],
        ["VALIDATION_FAILED", () => create(key, { name: 7, idempotencyKey: "k" })],
        ["IDEMPOTENCY_KEY_REQUIRED", () => create(key, { name: "x" })],
        ["INSUFFICIENT_SCOPE", () => callTool(service, key, "create_project", { name: "x" })],
        ["NOT_FOUND", () => pause(key)],
      ] as const;
      counts.leave(refused.length, 20);
      for (const [code, attempt] of refused) expect(await attempt()).to.equal(code);
      for (const [, attempt] of refused) expect(await attempt()).to.equal("RATE_LIMITED");
      const { id } = await world.agent();
      expect(await pause(key, id)).to.equal("RATE_LIMITED");
      const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id });
      expect(agent.state, "nothing was written").to.equal("active");
    });

    it("40 a minute and organization over all of its keys; another organization's are apart", async () => {
      const theirs = await mintKey(stranger, clock);
      counts.leave(4, 40);
      const codes = await Promise.all(times(6, (index) => pause(keys[index % 3] ?? "")));
      expect(tally(codes)).to.deep.equal({ NOT_FOUND: 4, RATE_LIMITED: 2 });
      expect(await pause(theirs)).to.equal("NOT_FOUND");
    });

    it("a runaway key does not stop the others: beyond its own cap it is not counted for them", async () => {
      const [wild, other, third] = keys;
      counts.leave(2, 20);
      counts.leave(4, 40);
      const theirs = await Promise.all(times(6, () => pause(wild)));
      expect(tally(theirs)).to.deep.equal({ NOT_FOUND: 2, RATE_LIMITED: 4 });
      expect(tally([await pause(other), await pause(other)])).to.deep.equal({ NOT_FOUND: 2 });
      expect(await pause(third)).to.equal("RATE_LIMITED");
    });

    it("calls packed into one batch count one by one", async () => {
      const params = { name: "pause_agent", arguments: { agentId: NOBODY } };
      const calls = times(5, (id) => ({ ...message("tools/call", params), id }));
      counts.leave(3, 20);
      const { body, status } = await rpc(service, keys[0], calls);
      expect(status).to.equal(200);
      expect(JSON.stringify(body).split('"structuredContent":{"error":"RATE_LIMITED"')).to.have.lengthOf(3);
    });

    it("an agent's payments are no management writes", async () => {
      const payment = { amountCents: 1, merchant: "shop", purpose: "a test", idempotencyKey: "one" };
      for (const limit of [20, 40]) counts.leave(0, limit);
      expect(await callTool(service, agentKey, "create_card_payment", payment)).to.equal(null);
    });
  });
});
