import { expect } from "chai";
import { Api } from "../support/api.ts";
import { type OrganizationLimits, type TestService, WITHOUT_LIMITS } from "../support/service.ts";
import { tally, times, type World } from "../support/world.ts";
import {
  atOnce,
  callTool,
  expectLimited,
  FREE,
  limitedWorld,
  message,
  mintKey,
  rpc,
  shown,
  type FixedClock,
  startLimitedService,
  statuses,
} from "./support.ts";

const NOBODY = "018f0000-0000-7000-8000-000000000000";

describe("limits over MCP", () => {
  let clock: FixedClock;
  let service: TestService;
  before(async () => {
    ({ clock, service } = await startLimitedService());
  });
  beforeEach(() => clock.nextMinute());
  after(() => service.stop());

  const newWorld = (limits: OrganizationLimits = WITHOUT_LIMITS) => limitedWorld(service, limits);
  const keysOf = async (world: World, count: number): Promise<string[]> => {
    const keys: string[] = [];
    for (const _ of times(count, () => null)) keys.push(await mintKey(world, clock));
    return keys;
  };
  const pause = (key: string, agentId: string = NOBODY) => callTool(service, key, "pause_agent", { agentId });
  const create = (key: string, args: object) => callTool(service, key, "create_agent", args);
  const list = (key: string) => rpc(service, key, message("tools/list"));

  describe("per minute", () => {
    it("of 90 requests at once on the free plan exactly 60 pass, the others are 429 of any kind", async () => {
      const agent = await (await newWorld(FREE)).agent();
      clock.nextMinute();
      const bodies = [message("tools/list"), message("tools/call", { name: "get_budget" }), message("ping")];
      const answers = await atOnce(90, (index) => rpc(service, agent.key, bodies[index % bodies.length]));
      expect(statuses(answers)).to.deep.equal({ 200: 60, 429: 30 });
      answers.filter(({ status }) => status === 429).forEach(expectLimited);
      clock.nextMinute();
      expect((await list(agent.key)).status).to.equal(200);
    });

    it("what MCP itself refuses counts, and REST is not counted with it", async () => {
      const { key } = await (await newWorld(FREE)).agent();
      clock.nextMinute();
      const odd = [
        "{",
        "{}",
        "[]",
        JSON.stringify(message("nothing")),
        JSON.stringify(message("tools/call")),
      ];
      await atOnce(60, (index) => rpc(service, key, odd[index % odd.length]));
      expectLimited(await list(key));
      const rest = await new Api(service.baseUrl).call("GET", "/v1/payments", { token: key });
      expect([rest.status, shown(rest).remaining]).to.deep.equal([200, 99]);
    });

    it("a batch counts as its messages: packing calls together gets no caller more", async () => {
      const { key } = await (await newWorld(FREE)).agent();
      clock.nextMinute();
      const batch = (count: number) =>
        rpc(
          service,
          key,
          times(count, (id) => ({ ...message("ping"), id })),
        );
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
      const world = await newWorld();
      const [key = ""] = await keysOf(world, 1);
      const { id } = await world.agent();
      clock.nextMinute();
      const codes = await Promise.all(times(30, () => pause(key, id)));
      expect(tally(codes)).to.deep.equal({ null: 20, RATE_LIMITED: 10 });
      expect(await callTool(service, key, "get_agent", { agentId: id })).to.equal(null);
      expect(await callTool(service, key, "list_agents", {})).to.equal(null);
      const rest = await new Api(service.baseUrl).call("POST", `/v1/agents/${id}/resume`, { token: key });
      expect(rest.status).to.equal(200);
      clock.nextMinute();
      expect(await pause(key, id)).to.equal(null);
    });

    it("refused writes count: wrong shape, wrong scope, unknown id, missing idempotency key", async () => {
      const world = await newWorld();
      const key = await mintKey(world, clock, ["agents:write"]);
      clock.nextMinute();
      const refused = [
        ["VALIDATION_FAILED", () => callTool(service, key, "pause_agent", {})],
        ["VALIDATION_FAILED", () => create(key, { name: 7, idempotencyKey: "k" })],
        ["IDEMPOTENCY_KEY_REQUIRED", () => create(key, { name: "x" })],
        ["INSUFFICIENT_SCOPE", () => callTool(service, key, "create_project", { name: "x" })],
        ["NOT_FOUND", () => pause(key)],
      ] as const;
      for (const _ of times(4, () => null)) {
        for (const [code, attempt] of refused) expect(await attempt()).to.equal(code);
      }
      for (const [, attempt] of refused) expect(await attempt()).to.equal("RATE_LIMITED");
      const { id } = await world.agent();
      expect(await pause(key, id)).to.equal("RATE_LIMITED");
      const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id });
      expect(agent.state, "nothing was written").to.equal("active");
    });

    it("40 a minute and organization over all of its keys; another organization's are apart", async () => {
      const world = await newWorld();
      const keys = await keysOf(world, 3);
      const [stranger = ""] = await keysOf(await newWorld(), 1);
      clock.nextMinute();
      const codes = await Promise.all(times(45, (index) => pause(keys[index % 3] ?? "")));
      expect(tally(codes)).to.deep.equal({ NOT_FOUND: 40, RATE_LIMITED: 5 });
      expect(await pause(stranger)).to.equal("NOT_FOUND");
    });

    it("a runaway key does not stop the others: beyond its own cap it is not counted for them", async () => {
      const world = await newWorld();
      const [wild = "", other = "", third = ""] = await keysOf(world, 3);
      clock.nextMinute();
      const theirs = await Promise.all(times(60, () => pause(wild)));
      expect(tally(theirs)).to.deep.equal({ NOT_FOUND: 20, RATE_LIMITED: 40 });
      const others = await Promise.all(times(20, () => pause(other)));
      expect(tally(others)).to.deep.equal({ NOT_FOUND: 20 });
      expect(await pause(third)).to.equal("RATE_LIMITED");
    });

    it("calls packed into one batch count one by one", async () => {
      const [key = ""] = await keysOf(await newWorld(), 1);
      clock.nextMinute();
      const params = { name: "pause_agent", arguments: { agentId: NOBODY } };
      const batch = times(25, (id) => ({ ...message("tools/call", params), id }));
      const { body, status } = await rpc(service, key, batch);
      expect(status).to.equal(200);
      expect(JSON.stringify(body).split('"structuredContent":{"error":"RATE_LIMITED"')).to.have.lengthOf(6);
    });

    it("an agent's payments are no management writes", async () => {
      const agent = await (await newWorld()).agent({ budgetCents: 1_000_000 });
      clock.nextMinute();
      const pay = (index: number) =>
        callTool(service, agent.key, "create_card_payment", {
          amountCents: 1,
          merchant: "shop",
          purpose: "a test",
          idempotencyKey: `key ${index}`,
        });
      expect(tally(await Promise.all(times(45, pay)))).to.deep.equal({ null: 45 });
    });
  });
});
