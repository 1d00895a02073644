import { expect } from "chai";
import { type FindOrganization, Organizations } from "../../src/identity/organizations.ts";
import { limitsOf } from "../../src/limits/plans.ts";
import type { OrganizationDocument } from "../../src/store/identity-documents.ts";
import { Api } from "../support/api.ts";
import { cookieHeader, cookiesOf } from "../support/cookies.ts";
import type { TestService } from "../support/service.ts";
import type { World } from "../support/world.ts";
import {
  atOnce,
  expectLimited,
  from,
  limitedService,
  limitedWorld,
  message,
  mintKey,
  rpc,
  shown,
  FixedClock,
  type SpentCounts,
  statuses,
} from "./support.ts";

const ROWS = [
  { plan: "free", rest: 100, mcp: 60 },
  { plan: "pro", rest: 1_000, mcp: 600 },
  // Custom limits are the enterprise plan's alone.
  { plan: "pro", restPerMinute: 7, mcpPerMinute: 8, rest: 1_000, mcp: 600 },
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
  let counts: SpentCounts;
  let service: TestService;
  let api: Api;
  /** On the free plan. */
  let world: World;
  before(async () => {
    ({ clock, counts, service } = await limitedService());
    counts.forget();
    api = new Api(service.baseUrl);
    world = await limitedWorld(service);
  });
  beforeEach(() => counts.forget());

  const list = (key: string) => rpc(service, key, message("tools/list"));
  const me = () => api.call("GET", "/v1/auth/me", { token: world.token, ...from() });

  it("a custom one is each caller's, by REST and by MCP, counted apart", async () => {
    const custom = { plan: "enterprise", restPerMinute: 7, mcpPerMinute: 8 } as const;
    const own = await limitedWorld(service, custom);
    const [agent, key] = [await own.agent(), await mintKey(own, clock)];
    counts.forget();
    const reset = clock.resetSeconds;
    for (const [token, path] of [
      [own.token, "/v1/agents"],
      [key, "/v1/agents"],
      [agent.key, "/v1/payments"],
    ] as const) {
      for (const remaining of [6, 5]) {
        const answer = await api.call("GET", path, { token });
        expect(answer.status).to.equal(200);
        expect(shown(answer)).to.deep.equal({ limit: 7, remaining, reset });
      }
    }
    for (const token of [agent.key, key]) {
      const answer = await list(token);
      expect(answer.status).to.equal(200);
      expect(shown(answer)).to.deep.equal({ limit: 8, remaining: 7, reset });
    }
  });

  it("of any number at once on the free plan exactly 100 pass, from however many addresses", async () => {
    counts.leave(5, 100);
    const answers = await atOnce(8, me);
    expect(statuses(answers)).to.deep.equal({ 200: 5, 429: 3 });
    answers.filter(({ status }) => status === 429).forEach(expectLimited);
    const left = answers.filter(({ status }) => status === 200).map((answer) => shown(answer).remaining);
    expect(left.toSorted((a, b) => a - b)).to.deep.equal([0, 1, 2, 3, 4]);
  });

  it("a person's dashboard has 1,000 calls a minute on the free plan, apart from API calls", async () => {
    const { email, password } = world.organization;
    const headers = { "svc-session": "cookie", "sec-fetch-site": "same-origin" };
    const signedIn = await api.call("POST", "/v1/auth/sign-in", { body: { email, password }, headers });
    const cookie = cookieHeader(cookiesOf(signedIn));
    const click = () => api.call("GET", "/v1/auth/me", { headers: { ...headers, cookie } });
    expect(shown(await click())).to.include({ limit: 1_000, remaining: 999 });
    expect(shown(await me())).to.include({ limit: 100, remaining: 99 });
    counts.forget();
    counts.leave(0, 100);
    expectLimited(await me());
    expect((await click()).status).to.equal(200);
  });

  it("windows are the clock's minutes: full again at the turn, and told to the second", async () => {
    clock.nextMinute();
    const reset = clock.resetSeconds;
    clock.advance(59_300);
    counts.leave(1, 100);
    expect((await me()).status).to.equal(200);
    const limited = await me();
    expect(expectLimited(limited)).to.equal(1);
    expect(shown(limited)).to.deep.equal({ limit: 100, remaining: 0, reset });
    clock.advance(699);
    expect(expectLimited(await me())).to.equal(1);
    clock.advance(1);
    expect(shown(await me())).to.deep.equal({ limit: 100, remaining: 0, reset: reset + 60 });
    expect(expectLimited(await me())).to.equal(60);
  });

  it("a user's sessions count together, another user's and each key's apart", async () => {
    const agents = [await world.agent(), await world.agent()];
    const { email, password } = world.organization;
    const tokens = [world.token, await api.signIn(email, password)];
    counts.forget();
    counts.leave(3, 100);
    const mine = await atOnce(6, (index) =>
      api.call("GET", "/v1/auth/me", { token: tokens[index % 2] ?? "" }),
    );
    expect(statuses(mine)).to.deep.equal({ 200: 3, 429: 3 });
    for (const { key } of agents) {
      expect(shown(await api.call("GET", "/v1/payments", { token: key })).remaining).to.equal(2);
    }
    const stranger = await limitedWorld(service);
    expect((await api.call("GET", "/v1/auth/me", { token: stranger.token })).status).to.equal(200);
  });

  it("however the credential is written it is the same: case and spaces of its header", async () => {
    const { token } = world;
    const forms = [
      { authorization: `Bearer ${token}` },
      { Authorization: `bearer ${token}` },
      { AUTHORIZATION: `BEARER   ${token}` },
    ];
    for (const [index, headers] of forms.entries()) {
      const answer = await api.call("GET", "/v1/auth/me", { headers });
      expect([answer.status, shown(answer).remaining]).to.deep.equal([200, 99 - index]);
    }
  });

  it("refused requests count: wrong kind, shape or id, unknown path or method, large body", async () => {
    const { token } = world;
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
    const agent = await world.agent();
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    counts.leave(1, 100);
    for (const _ of ["within its limit", "beyond it"]) {
      const answer = await api.call("GET", "/v1/payments", { token: agent.key });
      expect([answer.status, shown(answer).remaining]).to.deep.equal([403, 0]);
    }
    expect((await list(agent.key)).status).to.equal(403);
  });

  const limit = async (token: string, path: string) => shown(await api.call("GET", path, { token })).limit;

  it("a plan that changes is everybody's limit within 10 s", async () => {
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
  for (const { mcp, rest, ...fields } of ROWS) {
    it(`${JSON.stringify(fields)}: ${rest} by REST and ${mcp} by MCP`, () => {
      expect(limitsOf({ ...organization("o"), ...fields })).to.deep.equal({ rest, mcp });
    });
  }

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
