import { expect } from "chai";
import { operationList } from "../../src/contract/registry.ts";
import { codeOf, expectError } from "../support/contract-api.ts";
import { someOrAll } from "../support/soak.ts";
import { send, wire } from "../support/wire.ts";
import { elevate, newWorld, type TestAgent, times, type World } from "../support/world.ts";

/** Of the paths, which one mechanism answers, so many in `npm test`. */
const PATHS = 30;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"];

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

const paths = [...new Set(operationList.flatMap(([, { http }]) => (http === null ? [] : [http.path])))];

/** The methods of a path, written out once more. */
function allowedAt(path: string): string[] {
  const methods = operationList.flatMap(([, { http }]) =>
    http?.path === path ? [http.method.toUpperCase()] : [],
  );
  return [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"].toSorted();
}

const allowOf = ({ headers }: { headers: Headers }): string[] =>
  (headers.get("allow") ?? "").split(", ").toSorted();

describe("odd requests", () => {
  let world: World;
  let agent: TestAgent;
  let baseUrl: string;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
    ({ baseUrl } = world.service);
  });

  const notFound = async (path: string, method: string) => {
    const headers = { authorization: `Bearer ${world.token}` };
    const answer = await send(baseUrl, path, { method, headers });
    expect([answer.status, codeOf(answer)], `${method} ${path}`).to.deep.equal([404, "NOT_FOUND"]);
    expectError(answer);
  };

  it("a method that a path does not have is 405, and Allow names those that it has", async () => {
    const headers = { authorization: `Bearer ${world.token}` };
    for (const path of [...someOrAll(paths, PATHS), "/v1/openapi.json"]) {
      const allowed = path === "/v1/openapi.json" ? ["GET", "HEAD", "OPTIONS"] : allowedAt(path);
      for (const method of METHODS.filter((candidate) => !allowed.includes(candidate))) {
        const answer = await send(baseUrl, path.replace(":id", agent.id), { method, headers });
        expect([answer.status, codeOf(answer)], `${method} ${path}`).to.deep.equal([
          405,
          "METHOD_NOT_ALLOWED",
        ]);
        expectError(answer);
        expect(allowOf(answer), path).to.deep.equal(allowed);
      }
    }
  });

  it("OPTIONS is 204 with Allow where a path is, and says nothing else: there is no CORS", async () => {
    for (const path of someOrAll(paths, PATHS)) {
      const answer = await send(baseUrl, path.replace(":id", agent.id), { method: "OPTIONS" });
      expect([answer.status, answer.body, allowOf(answer)], path).to.deep.equal([204, "", allowedAt(path)]);
      expect([...answer.headers.keys()].join(" ")).not.to.include("access-control");
    }
    await notFound("/v1/nothing", "OPTIONS");
  });

  it("HEAD where there is no GET is 405; a bad credential is 401 before any of it", async () => {
    const head = await send(baseUrl, "/v1/auth/sign-in", { method: "HEAD" });
    expect([head.status, allowOf(head)]).to.deep.equal([405, ["OPTIONS", "POST"]]);
    for (const method of ["PUT", "OPTIONS", "HEAD"]) {
      const headers = { authorization: "Bearer nobody" };
      const answer = await send(baseUrl, "/v1/agents/x/pause", { method, headers });
      expect([answer.status, answer.headers.get("allow")], method).to.deep.equal([401, null]);
    }
  });

  it("who filters by a malformed id is told what an id looks like", async () => {
    const headers = { authorization: `Bearer ${world.token}` };
    const answer = await send(baseUrl, "/v1/transactions?agent_id=1", { headers });
    const { issues = [] } = expectError(answer);
    expect(issues.map(({ message }) => message).join()).to.match(/such as [0-9a-f-]{36}/);
  });

  it("who sends no body where one is needed is told each field, and where else what is no object", async () => {
    await elevate(world);
    const held = await (await world.agent({ autoApprovalThresholdCents: 0 })).hold();
    const deny = { token: world.token, id: held.approvalId };
    const pathsOf = async (body?: unknown) => {
      const request = body === undefined ? deny : { ...deny, body };
      const { issues = [] } = await world.api.refused("denyApproval", 400, "VALIDATION_FAILED", request);
      return issues.map(({ path }) => path);
    };
    expect([await pathsOf(), await pathsOf({}), await pathsOf([])]).to.deep.equal([
      ["feedback"],
      ["feedback"],
      ["body"],
    ]);
    const approve = (body: unknown) =>
      world.api.refused("approveApproval", 400, "VALIDATION_FAILED", { ...deny, body });
    expect((await approve([])).issues?.map(({ path }) => path)).to.deep.equal(["body"]);
    expect((await approve({ feedback: "fine" })).issues?.map(({ path }) => path)).to.deep.equal(["feedback"]);
    await world.api.ok("approveApproval", 200, { ...deny, body: {} });
  });

  it("unknown paths are 404: other letters, slashes, versions, dots", async () => {
    for (const path of [
      "/v1",
      "/v1/",
      "/v2/agents",
      "/v1/agents/",
      "/V1/agents",
      "/v1/Agents",
      "//v1/agents",
      "/v1//agents",
      "/v1/agents/pending/x",
      "/v1/approvals",
      "/v1/payments/x/approve",
      "/.env",
      "/v1/openapi.json/",
      "/v1/openapi.yaml",
      "/favicon.ico",
      "/v1/agents;x",
      "/v1/%61gents/%",
    ]) {
      for (const method of ["GET", "POST", "DELETE"]) await notFound(path, method);
    }
  });

  it("percent-encoding that cannot be decoded is 404, on a route or on none", async () => {
    for (const garbage of ["%", "%zz", "%c0%af", "%ff", "%e0%80", "%ed%a0%80", "%u0041"]) {
      await notFound(`/v1/agents/${garbage}`, "GET");
      await notFound(`/v1/agents/${garbage}`, "PUT");
      await notFound(`/v1/agents/${garbage}`, "OPTIONS");
      await notFound(`/v1/agents/${garbage}/pause`, "POST");
      await notFound(`/${garbage}`, "GET");
    }
  });

  it("HEAD answers as GET does, without the body", async () => {
    const headers = { authorization: `Bearer ${world.token}` };
    const head = await send(baseUrl, "/v1/agents", { method: "HEAD", headers });
    const get = await send(baseUrl, "/v1/agents", { headers });
    expect([head.status, head.body]).to.deep.equal([200, ""]);
    expect(head.headers.get("content-length")).to.equal(get.headers.get("content-length"));
    expect((await send(baseUrl, "/v1/agents", { method: "HEAD" })).status).to.equal(401);
  });

  const status = async (authorization: string | null, path: string) => {
    const headers = authorization === null ? {} : { authorization };
    const answer = await send(baseUrl, path, { headers });
    if (answer.status === 401) expectError(answer);
    return answer.status;
  };

  it("a credential is one Bearer token in any case of the word; else 401 with WWW-Authenticate", async () => {
    for (const [token, path] of [
      [world.token, "/v1/agents"],
      [agent.key, "/v1/payments"],
    ] as const) {
      for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer "]) {
        expect(await status(`${scheme} ${token}`, path), scheme).to.equal(200);
      }
      for (const wrong of [
        null,
        "",
        "Bearer",
        "Bearer ",
        token,
        `Basic ${token}`,
        `Token ${token}`,
        `Bearer${token}`,
        `Bearer\t${token}`,
        `Bearer ${token}, Bearer ${token}`,
        `Bearer "${token}"`,
        `Bearer ${token.slice(0, -1)}`,
        `Bearer ${token}x`,
        `Bearer ${token.toUpperCase()}`,
        `Bearer ü${token}`,
        `Bearer ${token} ${token}`,
        `Bearer ${"x".repeat(4097)}`,
        `Bearer ${"x".repeat(1e4)}`,
      ]) {
        expect(await status(wrong, path), String(wrong)).to.equal(401);
      }
    }
  });

  it("two Authorization headers are no credential, whichever of them is good, over REST and MCP", async () => {
    const { host } = new URL(baseUrl);
    for (const [request, token] of [
      ["GET /v1/agents", world.token],
      ["GET /v1/payments", agent.key],
      ["POST /mcp", agent.key],
    ] as const) {
      const good = `Authorization: Bearer ${token}`;
      for (const [first, second] of [
        [good, good],
        [good, "authorization: Bearer x"],
        ["AUTHORIZATION: Bearer x", good],
        [good, "Authorization:"],
      ] as const) {
        const head = `${request} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`;
        const answer = await wire(baseUrl, `${head}${first}\r\n${second}\r\n\r\n`);
        expect(answer.status, `${request}: ${first.slice(0, 24)}, ${second.slice(0, 24)}`).to.equal(401);
        expectError(answer);
      }
    }
  });

  it("spaces around a header's value are not part of it; a control character is no HTTP", async () => {
    const { host } = new URL(baseUrl);
    const ask = (field: string) =>
      wire(baseUrl, `GET /v1/agents HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${field}\r\n\r\n`);
    expect((await ask(`Authorization: \t Bearer ${world.token} \t `)).status).to.equal(200);
    for (const odd of ["\u0000", "\u0001", "\u007f"]) {
      expect((await ask(`Authorization: Bearer ${world.token}${odd}`)).status).to.be.oneOf([400, 401]);
    }
  });

  it("a token with another algorithm, issuer, or an unknown signature is 401", async () => {
    const [header = "", claims = "", signature = ""] = world.token.split(".");
    const decoded: unknown = JSON.parse(Buffer.from(claims, "base64url").toString());
    for (const token of [
      `${encode({ alg: "none", typ: "JWT" })}.${claims}.`,
      `${encode({ alg: "HS256", typ: "JWT" })}.${claims}.${signature}`,
      `${header}.${encode(Object.assign({}, decoded, { org_role: "owner", exp: 9_999_999_999 }))}.${signature}`,
      `${header}.${claims}.`,
      `${header}.${claims}`,
      "..",
    ]) {
      const answer = await send(baseUrl, "/v1/auth/me", { headers: { authorization: `Bearer ${token}` } });
      expect(answer.status).to.equal(401);
      expectError(answer);
    }
  });

  it("what is not HTTP is a flat 400 too: broken request lines, large headers, odd lengths", async () => {
    const host = `Host: ${new URL(baseUrl).host}\r\n`;
    for (const bytes of [
      "GET\r\n\r\n",
      `GET /v1/agents HTTP/9.9\r\n${host}\r\n`,
      `GET /v1/agents HTTP/1.1\r\n${host}X: ${"x".repeat(20_000)}\r\n\r\n`,
      `GET /v1/agents HTTP/1.1\r\n${host}a b: c\r\n\r\n`,
      `POST /v1/payments HTTP/1.1\r\n${host}Content-Length: ten\r\n\r\n`,
      `POST /v1/payments HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      `POST /v1/payments HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    ]) {
      const answer = await wire(baseUrl, bytes);
      expect(answer.status, bytes.slice(0, 60)).to.equal(400);
      expect(expectError(answer).error).to.equal("VALIDATION_FAILED");
    }
  });

  it("callers who hang up in the middle of a body harm no other caller", async () => {
    const head = `POST /v1/payments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n`;
    const partial = `${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"rail"`;
    await Promise.all(times(5, () => hangUp(baseUrl, partial)));
    expect((await agent.pay()).transaction.status).to.equal("approved");
  });
});

async function hangUp(baseUrl: string, bytes: string): Promise<void> {
  const { connect } = await import("node:net");
  const { hostname, port } = new URL(baseUrl);
  await new Promise<void>((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(bytes, () => socket.destroy());
    });
    socket.on("close", () => resolve());
  });
}
