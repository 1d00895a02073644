import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../src/lib/config-error.ts";
import { countedAddress, networkAround } from "../../src/limits/address.ts";
import { formatApiKey } from "../../src/domain/api-key.ts";
import { wire } from "../support/wire.ts";
import { Api, freshAddress } from "../support/api.ts";
import { type TestService, WITHOUT_LIMITS } from "../support/service.ts";
import type { World } from "../support/world.ts";
import {
  atOnce,
  expectLimited,
  from,
  limitedService,
  limitedWorld,
  message,
  rpc,
  shown,
  type FixedClock,
  type SpentCounts,
  statuses,
} from "./support.ts";

/** Unknown credentials: none, malformed ones, and keys that were never given out. */
const BAD: readonly (() => Record<string, string>)[] = [
  () => ({}),
  () => ({ authorization: "Basic eDp5" }),
  () => ({ authorization: "Bearer nobody" }),
  () => ({ authorization: `Bearer ${formatApiKey("agent", randomBytes)}` }),
  () => ({ authorization: `Bearer ${formatApiKey("organization", randomBytes)}` }),
];

/** Addresses of one network, each another. */
const spell = (index: number) => `2001:db8:1:2:${(index + 1).toString(16)}::${index.toString(16)}`;

/** What `TRUSTED_PROXIES` is read as. */
const proxies = (text: string | undefined) =>
  readConfig(text === undefined ? {} : { TRUSTED_PROXIES: text }, "127.0.0.1").trustedProxies;

describe("limits of anonymous callers, by address", () => {
  let clock: FixedClock;
  let counts: SpentCounts;
  let service: TestService;
  let api: Api;
  let world: World;
  before(async () => {
    ({ clock, counts, service } = await limitedService());
    api = new Api(service.baseUrl);
    world = await limitedWorld(service, WITHOUT_LIMITS);
  });
  beforeEach(() => counts.forget());

  /** Asks with some bad credential. */
  const nobody = (address: string, index: number, path = "/v1/agents") => {
    const headers = { ...from(address).headers, ...BAD[index % BAD.length]?.() };
    return api.call("GET", path, { headers });
  };

  it("1,200 logos a minute, apart from all else: then 429 until the next", async () => {
    const address = freshAddress();
    const lookUp = (by: string) => api.call("GET", `/logos/${"x".repeat(43)}`, from(by));
    counts.leave(2, 1_200);
    expect(statuses(await atOnce(4, () => lookUp(address)))).to.deep.equal({ 404: 2, 429: 2 });
    expect((await lookUp(freshAddress())).status).to.equal(404);
    const document = await api.call("GET", "/v1/openapi.json", from(address));
    expect([document.status, shown(document).remaining]).to.deep.equal([200, 99]);
    clock.nextMinute();
    expect((await lookUp(address)).status).to.equal(404);
  });

  it("100 a minute without a good credential, whatever is made up: then 429 instead of 401", async () => {
    const address = freshAddress();
    counts.leave(7, 100);
    const answers = await atOnce(12, (index) => nobody(address, index));
    expect(statuses(answers)).to.deep.equal({ 401: 7, 429: 5 });
    for (const answer of answers) expect(shown(answer).limit).to.equal(100);
    for (const [index] of BAD.entries()) {
      const limited = await nobody(address, index);
      expectLimited(limited);
      expect(shown(limited)).to.deep.equal({ limit: 100, remaining: 0, reset: clock.resetSeconds });
    }
    expect((await nobody(freshAddress(), 0)).status).to.equal(401);
    clock.nextMinute();
    expect((await nobody(address, 0)).status).to.equal(401);
  });

  it("a good credential passes from an address that is used up, over REST and MCP", async () => {
    const agent = await world.agent();
    const address = freshAddress();
    counts.leave(0, 100);
    expectLimited(await nobody(address, 0));
    for (const [token, path] of [
      [world.token, "/v1/agents"],
      [agent.key, "/v1/payments"],
    ] as const) {
      const answer = await api.call("GET", path, { token, ...from(address) });
      expect(answer.status).to.equal(200);
    }
    expect((await rpc(service, agent.key, message("tools/list"), from(address))).status).to.equal(200);
  });

  it("public operations count by address, whatever credential comes along, and never for it", async () => {
    const { token } = world;
    const address = freshAddress();
    counts.leave(2, 100);
    const body = { refreshToken: "nobody's" };
    const answers = await atOnce(3, () =>
      api.call("POST", "/v1/auth/refresh", { token, body, ...from(address) }),
    );
    expect(statuses(answers)).to.deep.equal({ 401: 2, 429: 1 });
    const document = await api.call("GET", "/v1/openapi.json", from(address));
    expectLimited(document);
    expect(shown(await api.call("GET", "/v1/auth/me", { token })).remaining).to.equal(999_999);
  });

  it("unknown paths, the OpenAPI document and MCP without a credential count with the rest", async () => {
    const address = freshAddress();
    const asked = [
      ["GET", "/v1/nothing", 404],
      ["OPTIONS", "/v1/agents", 204],
      ["PUT", "/v1/agents", 405],
      ["GET", "/v1/%zz", 404],
      ["GET", "/v1", 404],
      ["GET", "/v1/openapi.json", 200],
      ["POST", "/mcp", 401],
      ["POST", "/mcp/", 401],
      ["GET", "/v1/auth/me", 401],
    ] as const;
    for (const [index, [method, path, status]] of asked.entries()) {
      const answer = await api.call(method, path, from(address));
      expect([answer.status, shown(answer).remaining], path).to.deep.equal([status, 99 - index]);
    }
    counts.leave(0, 100);
    const usedUp = freshAddress();
    for (const [method, path] of asked) expectLimited(await api.call(method, path, from(usedUp)));
  });

  it("a bad credential on an unknown path is 401, a good one 404 and counted to its caller", async () => {
    const { token } = world;
    const address = freshAddress();
    const bad = await nobody(address, 3, "/v1/nothing");
    expect([bad.status, shown(bad).remaining]).to.deep.equal([401, 99]);
    const good = await api.call("DELETE", "/v1/nothing", { token, ...from(address) });
    expect([good.status, shown(good).remaining]).to.deep.equal([404, 999_999]);
    expect(shown(await api.call("GET", "/v1/auth/me", { token })).remaining).to.equal(999_998);
  });

  it("behind a trusted proxy the address is the one it saw, whatever the client claims", async () => {
    const address = freshAddress();
    counts.leave(2, 100);
    const answers = await atOnce(4, () =>
      api.call("GET", "/v1/agents", from(`${freshAddress()}, ${address}`)),
    );
    expect(statuses(answers)).to.deep.equal({ 401: 2, 429: 2 });
  });

  const raw = (...fields: string[]) =>
    wire(
      service.baseUrl,
      ["GET /v1/agents HTTP/1.1", "Host: x", "Connection: close", ...fields, "", ""].join("\r\n"),
    );

  it("headers sent twice are no way round: the last hop counts, and two credentials are none", async () => {
    const address = freshAddress();
    const forwarded = [`X-Forwarded-For: ${freshAddress()}`, `x-forwarded-for: ${address}`];
    for (const remaining of [99, 98]) {
      const answer = await raw(...forwarded);
      expect([answer.status, shown(answer).remaining]).to.deep.equal([401, remaining]);
    }
    const [good, bad] = [`Authorization: Bearer ${world.token}`, "authorization: Bearer nobody"];
    for (const [remaining, pair] of [
      [97, [good, bad]],
      [96, [bad, good]],
    ] as const) {
      const answer = await raw(...pair, ...forwarded);
      expect([answer.status, shown(answer).remaining]).to.deep.equal([401, remaining]);
    }
  });

  it("one network of IPv6 counts together, in any spelling, and IPv4 in IPv6 as IPv4", async () => {
    const four = freshAddress();
    await api.call("GET", "/v1/agents", from(four));
    expect(shown(await api.call("GET", "/v1/agents", from(`::ffff:${four}`))).remaining).to.equal(98);
    counts.leave(2, 100);
    const answers = await atOnce(3, (index) => api.call("GET", "/v1/agents", from(spell(index))));
    expect(statuses(answers)).to.deep.equal({ 401: 2, 429: 1 });
    expect((await api.call("GET", "/v1/agents", from("2001:db8:1:3::1"))).status).to.equal(401);
  });
});

describe("addresses and proxies", () => {
  const rows: readonly (readonly [string | undefined, string | null])[] = [
    ["192.0.2.1", "192.0.2.1"],
    ["192.0.2.1:4711", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:0201", "192.0.2.1"],
    ["[::ffff:192.0.2.1]:4711", "192.0.2.1"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:0DB8:0:0:ffff:ffff:ffff:ffff", "2001:db8:0:0::/64"],
    ["[2001:db8::1]:443", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["unknown", null],
    ["", null],
    [undefined, null],
    ["0x7f.1", null],
    ["192.0.2", null],
    ["3221225985", null],
    ["192.0.2.256", null],
    ["a".repeat(10_000), null],
  ];
  for (const [text, counted] of rows) {
    it(`"${text?.slice(0, 40) ?? "nothing"}" is counted as ${counted ?? "no address"}`, () => {
      expect(countedAddress(text)).to.equal(counted);
    });
  }

  it("what counts as a /64 lies in a /48, and nothing else does", () => {
    expect(networkAround("2001:db8:a:b::/64")).to.equal("2001:db8:a::/48");
    expect(networkAround("0:0:0:0::/64")).to.equal("0:0:0::/48");
    for (const other of ["192.0.2.1", "unknown"]) expect(networkAround(other)).to.equal(null);
  });

  it("TRUSTED_PROXIES takes addresses, networks or hops, none by default; nonsense is fatal", () => {
    expect([proxies(undefined), proxies(""), proxies("false")]).to.deep.equal([false, false, false]);
    expect(proxies("2")).to.equal(2);
    const several = ["loopback", "10.0.0.0/8", "2001:db8::/32", "192.0.2.1"];
    expect(proxies(several.join(", "))).to.deep.equal(several);
    for (const wrong of [
      "true",
      "*",
      "example.com",
      "0.0.0.0/0",
      "::/0",
      "10.0.0.0/33",
      "loopback;x",
      "99",
    ]) {
      expect(() => proxies(wrong), wrong).to.throw(ConfigError, /^TRUSTED_PROXIES: /);
    }
  });
});
