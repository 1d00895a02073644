import { expect } from "chai";
import { McpCallers } from "../../server/mcp/callers.ts";
import { codeOf, expectError } from "../support/contract-api.ts";
import { wire } from "../support/wire.ts";
import { newWorld } from "../support/world.ts";

describe("who may come to the MCP endpoint", () => {
  const callers = new McpCallers(
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
      expect(callers.refusalOf({ headers })?.code ?? null).to.equal(code);
    });
  }

  it("on the machine itself a page may come by any of its names, at the service's port", () => {
    const local = new McpCallers(["http://127.0.0.1:8080"], []);
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
});
