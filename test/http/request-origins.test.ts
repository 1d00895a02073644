import { expect } from "chai";
import { RequestOrigins } from "../../server/http/request-origins.ts";
import { cookieHeader, cookiesOf } from "../support/cookies.ts";
import { codeOf, expectError } from "../support/contract-api.ts";
import { wire } from "../support/wire.ts";
import { newWorld, type World } from "../support/world.ts";

describe("who may come to MCP, to the pages, and with cookies", () => {
  const origins = new RequestOrigins(
    ["https://spend.example.com", "https://mcp.example.com:8443"],
    ["mcp.internal"],
  );
  const spend = "spend.example.com";

  const rows: readonly (readonly [string, Readonly<Record<string, string>>, string | null])[] = [
    ["no Origin", { host: spend }, null],
    ["the service's own page", { host: spend, origin: "https://spend.example.com" }, null],
    ["a page at MCP_URL", { host: "mcp.example.com:8443", origin: "https://mcp.example.com:8443" }, null],
    ["a foreign page", { host: spend, origin: "http://evil.example.com" }, "ORIGIN_NOT_ALLOWED"],
    ["the same host over http", { host: spend, origin: "http://spend.example.com" }, "ORIGIN_NOT_ALLOWED"],
    ["another port", { host: spend, origin: "https://spend.example.com:444" }, "ORIGIN_NOT_ALLOWED"],
    ["a sandboxed page", { host: spend, origin: "null" }, "ORIGIN_NOT_ALLOWED"],
    ["an empty Origin", { host: spend, origin: "" }, "ORIGIN_NOT_ALLOWED"],
    ["a name that was rebound", { host: "evil.example.com:8080" }, "HOST_NOT_ALLOWED"],
    ["a name that only begins like ours", { host: "spend.example.com.evil.com" }, "HOST_NOT_ALLOWED"],
    ["a user before another host", { host: "spend.example.com@evil.com" }, "HOST_NOT_ALLOWED"],
    ["no Host", {}, "HOST_NOT_ALLOWED"],
    ["what is no host", { host: "a b" }, "HOST_NOT_ALLOWED"],
    ["our name in capitals, with a port", { host: "SPEND.example.com:443" }, null],
    ["a name that was allowed", { host: "mcp.internal:8080" }, null],
    ["localhost", { host: "localhost:8080" }, null],
    ["an IPv4 address", { host: "10.0.0.7:8080" }, null],
    ["an IPv6 address", { host: "[::1]:8080" }, null],
  ];
  for (const [what, headers, code] of rows) {
    it(`${what}: ${code ?? "may come"}`, () => {
      expect(origins.refusalOf({ headers })?.code ?? null).to.equal(code);
    });
  }

  it("on the machine itself a page may come by any of its names, at the service's port", () => {
    const local = new RequestOrigins(["http://127.0.0.1:8080"], []);
    const codeFor = (origin: string) =>
      local.refusalOf({ headers: { host: "localhost:8080", origin } })?.code ?? null;
    for (const name of ["localhost", "127.0.0.1", "[::1]"]) {
      expect(codeFor(`http://${name}:8080`), name).to.equal(null);
      expect(codeFor(`http://${name}:8081`), name).to.equal("ORIGIN_NOT_ALLOWED");
    }
  });

  it("a foreign page is 403 with a good key, and reads and pays nothing", async () => {
    const world = await newWorld();
    const { key } = await world.agent();
    const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    for (const [headers, code] of [
      [["Host: localhost", "Origin: http://evil.example.com"], "ORIGIN_NOT_ALLOWED"],
      [["Host: evil.example.com"], "HOST_NOT_ALLOWED"],
    ] as const) {
      for (const [method, body] of [
        ["POST", list],
        ["GET", ""],
      ] as const) {
        const head = [
          `${method} /mcp HTTP/1.1`,
          ...headers,
          `Authorization: Bearer ${key}`,
          "Content-Type: application/json",
          `Content-Length: ${body.length}`,
          "Connection: close",
        ];
        const answer = await wire(world.service.baseUrl, [...head, "", body].join("\r\n"));
        expectError(answer);
        expect([answer.status, codeOf(answer)]).to.deep.equal([403, code]);
      }
    }
  });

  describe("a name that was rebound", () => {
    let world: World;
    let cookie = "";
    before(async () => {
      world = await newWorld();
      const { email, password } = world.organization;
      const headers = { "svc-session": "cookie", "sec-fetch-site": "same-origin" };
      const answer = await world.api.call("signIn", { body: { email, password }, headers });
      expect(answer.status).to.equal(200);
      cookie = cookieHeader(cookiesOf(answer).slice(0, 1));
    });

    /** As a browser sends it that takes the page for one of `host`'s: same-origin, to its own mind. */
    const from = async (host: string, request: string, headers: readonly string[], body = "") => {
      const origin = request.startsWith("GET") ? [] : [`Origin: http://${host}`];
      const head = [
        `${request} HTTP/1.1`,
        `Host: ${host}`,
        ...origin,
        "Sec-Fetch-Site: same-origin",
        ...headers,
      ];
      const length = [
        `Content-Length: ${body.length}`,
        "Content-Type: application/json",
        "Connection: close",
      ];
      return wire(world.service.baseUrl, [...head, ...length, "", body].join("\r\n"));
    };

    const credentials = () => {
      const { email, password } = world.organization;
      return JSON.stringify({ email, password });
    };
    const reached: readonly (readonly [string, string, () => readonly string[], () => string])[] = [
      ["the set-up page", "GET /setup", () => [], () => ""],
      ["the page of invites", "GET /invite", () => [], () => ""],
      ["an approval's page", "GET /approvals/018f0000-0000-7000-8000-000000000000", () => [], () => ""],
      ["a read by cookie", "GET /v1/auth/me", () => [`Cookie: ${cookie}`], () => ""],
      ["a write by cookie", "POST /v1/auth/sign-out", () => [`Cookie: ${cookie}`], () => ""],
      ["an agent's route by cookie", "GET /v1/payments", () => [`Cookie: ${cookie}`], () => ""],
      ["a sign-in into cookies", "POST /v1/auth/sign-in", () => ["svc-session: cookie"], credentials],
      ["a link's token at set-up", "POST /v1/setup/check", () => [], () => '{"token":"x"}'],
      ["an invite's token", "POST /v1/invites/accept", () => [], () => "{}"],
    ];
    for (const [what, request, headers, body] of reached) {
      it(`gets nothing from ${what}: 403, and no cookie`, async () => {
        for (const host of ["evil.example", "evil.example:8080"]) {
          const answer = await from(host, request, headers(), body());
          expectError(answer);
          const isRead = request.startsWith("GET");
          expect([answer.status, codeOf(answer)]).to.deep.equal([
            403,
            isRead ? "HOST_NOT_ALLOWED" : "ORIGIN_NOT_ALLOWED",
          ]);
          expect(answer.headers.has("set-cookie")).to.equal(false);
        }
      });
    }

    it("may be a proxy's for API clients: what comes with a bearer token is answered", async () => {
      const { token } = world;
      for (const cookies of [[], [`Cookie: ${cookie}`]]) {
        const headers = [`Authorization: Bearer ${token}`, ...cookies];
        expect((await from("proxy.internal", "GET /v1/auth/me", headers)).status).to.equal(200);
      }
      expect((await from("proxy.internal", "POST /v1/auth/sign-in", [], credentials())).status).to.equal(200);
    });

    it("another site's page uses up no tries of its visitor's address", async () => {
      const { email, password } = world.organization;
      const body = { email, password: "not the right password" };
      const address = { "x-forwarded-for": "127.9.9.9" };
      const foreign = { ...address, origin: "https://evil.example" };
      for (let tries = 0; tries < 15; tries += 1)
        await world.api.refused("signIn", 403, "ORIGIN_NOT_ALLOWED", { body, headers: foreign });
      await world.api.ok("signIn", 200, { body: { email, password }, headers: address });
    });

    it("under the service's own name the same requests are answered", async () => {
      const { host } = new URL(world.service.baseUrl);
      for (const [what, request, headers, body] of reached) {
        const { status } = await from(host, request, headers(), body());
        expect(status, what).not.to.equal(403);
      }
    });
  });
});
