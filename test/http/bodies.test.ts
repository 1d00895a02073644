import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { longestPauseMs } from "../support/pauses.ts";
import { expectError } from "../support/contract-api.ts";
import { send, wire } from "../support/wire.ts";
import { cardPayment, counts, elevate, newWorld, type TestAgent, type World } from "../support/world.ts";

const LIMIT_BYTES = 256 * 1_024;
const JSON_TYPE = { "content-type": "application/json" };

const payment = (fields = {}) => JSON.stringify(cardPayment(fields));

const padded = (bytes: number): string => {
  const body = payment({ purpose: "" });
  return body.replace('"purpose":""', `"purpose":"${"x".repeat(bytes - body.length)}"`);
};

/** For how long a body that is refused held everything up. */
const pauseMs = ({ service }: World, path: string, token: string, fields: object): Promise<number> =>
  longestPauseMs(async () => {
    const headers = { authorization: `Bearer ${token}`, ...JSON_TYPE };
    const request = { method: "POST", headers, body: JSON.stringify(fields) };
    expect((await send(service.baseUrl, path, request)).status).to.equal(400);
  });

/** A POST whose second half comes when it would have been answered otherwise. */
const slowly = ({ service }: World, { key }: TestAgent, path: string, body: string) => {
  const half = body.length / 2;
  const head = [
    `POST ${path} HTTP/1.1`,
    "host: localhost",
    "connection: close",
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    "accept: application/json, text/event-stream",
    `content-length: ${String(body.length)}`,
  ];
  const bytes = `${head.join("\r\n")}\r\n\r\n${body.slice(0, half)}`;
  return wire(service.baseUrl, bytes, { pauseMs: 6_000, bytes: body.slice(half) });
};

describe("request bodies", () => {
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    agent = await world.agent();
  });

  /** POST /v1/payments with this very body, which must be refused; each test of it sees that nothing was written. */
  async function refused(
    [status, code]: readonly [number, ErrorCode],
    body: string | Uint8Array,
    headers: Readonly<Record<string, string>> = JSON_TYPE,
  ): Promise<void> {
    const authorization = `Bearer ${agent.key}`;
    const request = { method: "POST", headers: { authorization, ...headers }, body };
    const answer = await send(world.service.baseUrl, "/v1/payments", request);
    const { error } = expectError(answer);
    const what = typeof body === "string" ? body.slice(0, 60) : `${body.length} bytes`;
    expect([answer.status, error], `${JSON.stringify(headers)} ${what}`).to.deep.equal([status, code]);
  }

  const invalid = [400, "VALIDATION_FAILED"] as const;
  const tooLarge = [413, "PAYLOAD_TOO_LARGE"] as const;
  const notJson = [415, "UNSUPPORTED_MEDIA_TYPE"] as const;

  describe("that are refused", () => {
    let held: Awaited<ReturnType<typeof counts>>;
    beforeEach(async () => {
      held = await counts(world);
    });
    afterEach("nothing was written", async () => expect(await counts(world)).to.deep.equal(held));

    it("malformed JSON, and JSON that is no object, is 400", async () => {
      const malformed = [
        "{",
        "}",
        '{"a":1,}',
        "{'a':1}",
        "NaN",
        "null",
        "1",
        '"x"',
        "[]",
        "true",
        "\u0000",
        "{}{}",
      ];
      for (const body of malformed) await refused(invalid, body);
      await refused(invalid, `${"[".repeat(50_000)}${"]".repeat(50_000)}`);
      await refused(
        invalid,
        payment({ merchant: "@" }).replace('"@"', `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`),
      );
    });

    it("bytes that are no UTF-8 are refused, never turned into replacement characters", async () => {
      const [before = "", after = ""] = payment({ purpose: "@" }).split("@");
      for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]]) {
        await refused(invalid, Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]));
      }
    });

    it("256 KiB are read, one byte more is 413, however it is sent", async () => {
      expect(Buffer.byteLength(padded(LIMIT_BYTES))).to.equal(LIMIT_BYTES);
      await refused(invalid, padded(LIMIT_BYTES)); // its purpose is too long
      await refused(tooLarge, padded(LIMIT_BYTES + 1));
      const gzip = { ...JSON_TYPE, "content-encoding": "gzip" };
      await refused(invalid, gzipSync(padded(LIMIT_BYTES)), gzip);
      await refused(tooLarge, gzipSync(padded(LIMIT_BYTES + 1)), gzip);
    });

    it("a gzip bomb is 413 as soon as it is too large, and costs no memory", async () => {
      const bomb = gzipSync(Buffer.alloc(64 * 1_024 * 1_024));
      expect(bomb.length).to.be.below(LIMIT_BYTES);
      const before = process.memoryUsage().rss;
      await refused(tooLarge, bomb, { ...JSON_TYPE, "content-encoding": "gzip" });
      expect(process.memoryUsage().rss - before).to.be.below(48 * 1_024 * 1_024);
    });

    it("what is not JSON by its type, charset or encoding is 415, a broken encoding 400", async () => {
      const types = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "application/jsonp",
        "application/xml",
        "*/*",
        "application/json; charset=latin1",
        "application/json; charset=utf-16",
        "application/json;charset=UTF-32LE",
        'application/json; charset="utf-16be"',
        'application/json; about="; charset=utf-8"; charset=utf-16',
        "application/json; charset=utf-8; charset=utf-16",
      ];
      for (const type of types) await refused(notJson, payment(), { "content-type": type });
      await refused(notJson, Buffer.from(payment()), {}); // no type at all
      await refused(notJson, payment(), { ...JSON_TYPE, "content-encoding": "zip" });
      await refused(invalid, payment(), { ...JSON_TYPE, "content-encoding": "gzip" });
    });

    it("prototype keys are unknown fields like any other", async () => {
      for (const key of ["__proto__", "constructor", "prototype", "toString", "$where", "a.b", ""]) {
        for (const value of ['{"amountCents":1}', '"x"', "null"]) {
          await refused(invalid, payment().replace("{", `{${JSON.stringify(key)}:${value},`));
        }
      }
      const { amountCents: _amount, ...rest } = cardPayment();
      await refused(invalid, JSON.stringify(rest).replace("{", '{"__proto__":{"amountCents":1},'));
    });
  });

  it("a team's budget may have 2 MiB, as 10,000 agents need; one byte more is 413", async () => {
    const { organization, service, token } = world;
    const put = async (length: number) => {
      const body = JSON.stringify({ capCents: null, agents: [], version: 999 }).padEnd(length);
      const headers = { ...JSON_TYPE, authorization: `Bearer ${token}` };
      return (
        await fetch(`${service.baseUrl}/v1/teams/${organization.teamId}/budget`, {
          method: "PUT",
          headers,
          body,
        })
      ).status;
    };
    expect([await put(LIMIT_BYTES + 1), await put(2_097_152), await put(2_097_153)]).to.deep.equal([
      409, 409, 413,
    ]);
  });

  it("what says another charset than UTF-8 is 415 over MCP, too", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const statusWith = async (type: string): Promise<number> => {
      const accept = "application/json, text/event-stream";
      const headers = { authorization: `Bearer ${agent.key}`, accept, "content-type": type };
      return (await send(world.service.baseUrl, "/mcp", { method: "POST", body, headers })).status;
    };
    for (const charset of ["utf-16", "latin1", "UTF-32LE", '"utf-16be"']) {
      expect(await statusWith(`application/json; charset=${charset}`), charset).to.equal(415);
    }
    expect(await statusWith("application/json; charset=utf-8")).to.equal(200);
  });

  it("the type of JSON is taken in any case, with its charset", async () => {
    const headers = {
      authorization: `Bearer ${agent.key}`,
      "content-type": "Application/JSON; charset=UTF-8",
    };
    const answer = await send(world.service.baseUrl, "/v1/payments", {
      method: "POST",
      body: payment(),
      headers,
    });
    expect(answer.status).to.equal(201);
  });

  it("an operation without a body takes none but an empty object, also a GET", async () => {
    const { baseUrl } = world.service;
    const call = async (body: string, type = "application/json") => {
      const headers = { authorization: `Bearer ${world.token}`, "content-type": type };
      return send(baseUrl, `/v1/agents/${agent.id}/pause`, { method: "POST", headers, body });
    };
    expect(expectError(await call('{"force":true}')).error).to.equal("VALIDATION_FAILED");
    expect(expectError(await call('{"$where":"1"}')).error).to.equal("VALIDATION_FAILED");
    expect(expectError(await call("x", "text/plain")).error).to.equal("UNSUPPORTED_MEDIA_TYPE");
    const { agent: record } = await world.api.ok("getAgent", 200, { token: world.token, id: agent.id });
    expect(record.state).to.equal("active");
    expect((await call("{}")).status).to.equal(200);
    await world.api.ok("resumeAgent", 200, { token: world.token, id: agent.id });
  });

  it("that take longer to send than an answer may take are answered as ever, over REST and MCP", async () => {
    const { rail: _rail, ...args } = cardPayment();
    const params = { name: "create_card_payment", arguments: args };
    const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const [rest, mcp] = await Promise.all([
      slowly(world, agent, "/v1/payments", payment()),
      slowly(world, agent, "/mcp", message),
    ]);
    expect([rest.status, mcp.status]).to.deep.equal([201, 200]);
    for (const { body } of [rest, mcp]) expect(JSON.stringify(body)).to.include("approved");
  });

  describe("hold no other request up", () => {
    it("an e-mail of combining marks in an order that is slow to normalize", async () => {
      const email = `a${"\u0301".repeat(60_000)}${"\u0316".repeat(60_000)}`;
      expect(await pauseMs(world, "/v1/auth/sign-in", "", { email, password: "x" })).to.be.below(400);
    });

    it("an array of very many wrong entries", async () => {
      const scopes = Array.from({ length: 120_000 }, () => 1);
      for (const path of ["/v1/agents", "/v1/organization-keys"]) {
        await elevate(world);
        expect(await pauseMs(world, path, world.token, { scopes }), path).to.be.below(400);
      }
    });
  });
});
