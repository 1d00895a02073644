import { expect } from "chai";
import { PLAN_LIMITS } from "../../src/contract/rate-classes.ts";
import { type FindOrganization, Organizations } from "../../src/identity/organizations.ts";
import { limitsOf } from "../../src/limits/plans.ts";
import type { OrganizationDocument } from "../../src/store/identity-documents.ts";
import { Api } from "../support/api.ts";
import { cookieHeader, cookiesOf } from "../support/cookies.ts";
import type { TestService } from "../support/service.ts";
import {
  atOnce,
  expectLimited,
  from,
  limitedWorld,
  message,
  mintKey,
  rpc,
  shown,
  FixedClock,
  startLimitedService,
  statuses,
} from "./support.ts";

const ROWS = [
  { plan: "free", rest: 100, mcp: 60 },
  { plan: "pro", rest: 1_000, mcp: 600 },
  { plan: "enterprise", rest: 5_000, mcp: 3_000 },
  { plan: "enterprise", restPerMinute: 7, mcpPerMinute: 8, rest: 7, mcp: 8 },
  { plan: "enterprise", restPerMinute: 12_345, rest: 12_345, mcp: 3_000 },
] as const;

const organization = (id: string): OrganizationDocument => ({
  _id: id,
  name: "x",
  plan: "pro",
  restPerMinute: null,
  mcpPerMinute: null,
  status: "ready",
  defaultProjectId: "p",
  defaultTeamId: "t",
  createdAt: new Date(0),
  creation: "",
  readyAt: null,
});

describe("limits per minute of a plan", () => {
  let clock: FixedClock;
  let service: TestService;
  let api: Api;
  before(async () => {
    ({ clock, service } = await startLimitedService());
    api = new Api(service.baseUrl);
  });
  beforeEach(() => clock.nextMinute());
  after(() => service.stop());

  const list = (key: string) => rpc(service, key, message("tools/list"));

  for (const { mcp, plan, rest, ...custom } of ROWS) {
    it(`${plan} ${JSON.stringify(custom)}: ${rest} by REST and ${mcp} by MCP, counted apart`, async () => {
      const world = await limitedWorld(service, { plan, ...custom });
      const [agent, key] = [await world.agent(), await mintKey(world, clock)];
      clock.nextMinute();
      const reset = clock.resetSeconds;
      for (const [token, path] of [
        [world.token, "/v1/agents"],
        [key, "/v1/agents"],
        [agent.key, "/v1/payments"],
      ] as const) {
        for (const left of [rest - 1, rest - 2]) {
          const answer = await api.call("GET", path, { token });
          expect(answer.status).to.equal(200);
          expect(shown(answer)).to.deep.equal({ limit: rest, remaining: left, reset });
        }
      }
      for (const token of [agent.key, key]) {
        const answer = await list(token);
        expect(answer.status).to.equal(200);
        expect(shown(answer)).to.deep.equal({ limit: mcp, remaining: mcp - 1, reset });
      }
    });
  }

  it("of 150 requests at once on the free plan exactly 100 pass, from however many addresses", async () => {
    const { token } = await limitedWorld(service);
    clock.nextMinute();
    const answers = await atOnce(150, () => api.call("GET", "/v1/auth/me", { token, ...from() }));
    expect(statuses(answers)).to.deep.equal({ 200: 100, 429: 50 });
    answers.filter(({ status }) => status === 429).forEach(expectLimited);
    const left = answers.filter(({ status }) => status === 200).map((answer) => shown(answer).remaining);
    expect(left.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 100 }, (_, index) => index));
  });

  it("a person's dashboard has 1,000 calls a minute on the free plan, apart from API calls", async () => {
    const world = await limitedWorld(service);
    const { token } = world;
    const { email, password } = world.organization;
    const headers = { "svc-session": "cookie", "sec-fetch-site": "same-origin" };
    const signedIn = await api.call("POST", "/v1/auth/sign-in", { body: { email, password }, headers });
    const cookie = cookieHeader(cookiesOf(signedIn));
    clock.nextMinute();
    const click = () => api.call("GET", "/v1/auth/me", { headers: { ...headers, cookie } });
    expect(shown(await click())).to.include({ limit: 1_000, remaining: 999 });
    expect(shown(await api.call("GET", "/v1/auth/me", { token }))).to.include({ limit: 100, remaining: 99 });
    expect(statuses(await atOnce(110, click))).to.deep.equal({ 200: 110 });
  });

  it("windows are the clock's minutes: full again at the turn, and told to the second", async () => {
    const { token } = await limitedWorld(service);
    clock.nextMinute();
    const ask = () => api.call("GET", "/v1/auth/me", { token });
    const reset = clock.resetSeconds;
    clock.advance(59_300);
    await atOnce(100, ask);
    const limited = await ask();
    expect(expectLimited(limited)).to.equal(1);
    expect(shown(limited)).to.deep.equal({ limit: 100, remaining: 0, reset });
    clock.advance(699);
    expect(expectLimited(await ask())).to.equal(1);
    clock.advance(1);
    expect(shown(await ask())).to.deep.equal({ limit: 100, remaining: 99, reset: reset + 60 });
    for (const _ of Array.from({ length: 99 })) await ask();
    expect(expectLimited(await ask())).to.equal(60);
  });

  it("a user's sessions count together, another user's and each key's apart", async () => {
    const world = await limitedWorld(service);
    const agents = [await world.agent(), await world.agent()];
    const { email, password } = world.organization;
    const again = await api.signIn(email, password);
    clock.nextMinute();
    const tokens = [world.token, again];
    const mine = await atOnce(110, (index) =>
      api.call("GET", "/v1/auth/me", { token: tokens[index % 2] ?? "" }),
    );
    expect(statuses(mine)).to.deep.equal({ 200: 100, 429: 10 });
    for (const { key } of agents) {
      expect(shown(await api.call("GET", "/v1/payments", { token: key })).remaining).to.equal(99);
    }
    const stranger = await limitedWorld(service);
    expect((await api.call("GET", "/v1/auth/me", { token: stranger.token })).status).to.equal(200);
  });

  it("however the credential is written it is the same: case and spaces of its header", async () => {
    const { token } = await limitedWorld(service);
    clock.nextMinute();
    const forms = [
      { authorization: `Bearer ${token}` },
      { Authorization: `bearer ${token}` },
      { AUTHORIZATION: `BEARER   ${token}` },
    ];
    const answers = await atOnce(120, (index) =>
      api.call("GET", "/v1/auth/me", { headers: forms[index % forms.length] ?? {} }),
    );
    expect(statuses(answers)).to.deep.equal({ 200: 100, 429: 20 });
  });

  it("refused requests count: wrong kind, shape or id, unknown path or method, large body", async () => {
    const world = await limitedWorld(service);
    const { token } = world;
    clock.nextMinute();
    const refused = [
      ["GET", "/v1/payments", {}],
      ["POST", "/v1/agents", { body: "{" }],
      ["GET", "/v1/agents/nobody", {}],
      ["GET", "/v1/nothing", {}],
      ["PATCH", "/v1/agents", {}],
      ["OPTIONS", "/v1/agents", {}],
      ["GET", "/v1/agents/%zz", {}],
      ["POST", "/v1/agents", { body: "x".repeat(300_000) }],
      ["POST", "/v1/agents", { body: "x", headers: { "content-type": "text/plain" } }],
    ] as const;
    const codes: number[] = [];
    for (const [index, [method, path, more]] of refused.entries()) {
      const answer = await api.call(method, path, { token, ...more });
      codes.push(answer.status);
      expect(shown(answer).remaining, `${method} ${path}`).to.equal(99 - index);
    }
    expect(codes).to.deep.equal([403, 400, 404, 404, 405, 204, 404, 413, 415]);
  });

  it("a paused agent's requests count for its key, which stays 403, not 429, beyond its limit", async () => {
    const world = await limitedWorld(service);
    const agent = await world.agent();
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    clock.nextMinute();
    const ask = () => api.call("GET", "/v1/payments", { token: agent.key });
    const answers = await atOnce(100, ask);
    expect(statuses(answers)).to.deep.equal({ 403: 100 });
    expect(Math.min(...answers.map((answer) => shown(answer).remaining))).to.equal(0);
    const over = await ask();
    expect([over.status, shown(over).remaining]).to.deep.equal([403, 0]);
    expect((await list(agent.key)).status).to.equal(403);
  });

  const limit = async (token: string, path: string) => shown(await api.call("GET", path, { token })).limit;

  it("a plan that changes is everybody's limit within 10 s", async () => {
    const world = await limitedWorld(service);
    const agent = await world.agent();
    expect(await limit(agent.key, "/v1/payments")).to.equal(100);
    const _id: string = world.organization.organizationId;
    const organizations = service.db.collection<{ _id: string }>("organizations");
    await organizations.updateOne({ _id }, { $set: { plan: "pro" } });
    clock.advance(10_000);
    expect(await limit(world.token, "/v1/agents")).to.equal(1_000);
    expect(await limit(agent.key, "/v1/payments")).to.equal(1_000);
  });
});

describe("the organizations of callers, and their plans", () => {
  it("custom limits are the enterprise plan's alone", () => {
    const custom = { ...organization("o"), restPerMinute: 7, mcpPerMinute: 8 };
    expect(limitsOf(custom)).to.deep.equal(PLAN_LIMITS.pro);
    expect(limitsOf({ ...custom, plan: "enterprise" })).to.deep.equal({ rest: 7, mcp: 8 });
  });

  it("are read once in 10 s, however many ask at once, and again after a read that failed", async () => {
    const clock = new FixedClock();
    let [reads, fails] = [0, false];
    const find: FindOrganization = (id) => {
      reads += 1;
      return fails ? Promise.reject(new Error("away")) : Promise.resolve(organization(id));
    };
    const organizations = new Organizations(find, clock.read);
    await Promise.all(Array.from({ length: 50 }, () => organizations.of("a")));
    expect(reads).to.equal(1);
    clock.advance(9_999);
    expect(await organizations.of("a")).to.include({ plan: "pro" });
    expect(reads).to.equal(1);
    clock.advance(1);
    fails = true;
    expect(await organizations.of("a").catch(String)).to.equal("Error: away");
    fails = false;
    expect(await organizations.of("a")).to.include({ plan: "pro" });
    expect(reads).to.equal(3);
  });

  it("are kept for so many organizations and no more: the one read longest ago leaves", async () => {
    let reads = 0;
    const find: FindOrganization = (id) => {
      reads += 1;
      return Promise.resolve(organization(id));
    };
    const organizations = new Organizations(find, new FixedClock().read);
    for (let index = 0; index <= 10_000; index += 1) await organizations.of(String(index));
    expect(reads).to.equal(10_001);
    await organizations.of("10000");
    expect(reads).to.equal(10_001);
    await organizations.of("0");
    expect(reads).to.equal(10_002);
  });
});
