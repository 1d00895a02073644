import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import { expect } from "chai";
import { z } from "zod";
import type { Answer } from "../support/api.ts";
import { McpCaller } from "../mcp/support.ts";
import type { TestService } from "../support/service.ts";
import { cardPayment, newWorld, type TestAgent, until, type World } from "../support/world.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const line = z.strictObject({
  level: z.literal(30),
  time: z.int(),
  pid: z.int(),
  hostname: z.string(),
  requestId: z.string(),
  surface: z.enum(["rest", "mcp"]).nullable(),
  operation: z.string().nullable(),
  status: z.int().nullable(),
  code: z.string().optional(),
  ms: z.number().nonnegative(),
  msg: z.literal("request"),
});

const idOf = ({ headers }: Pick<Answer, "headers">): string => {
  const id = headers.get("x-request-id") ?? "";
  expect(id).to.match(UUID);
  return id;
};

describe("every request has an id, and a line in the log", () => {
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  before(async () => {
    world = await newWorld();
    service = world.service;
    agent = await world.agent();
  });

  const log = () =>
    readFile(join(process.env["TEST_LOG_DIR"] ?? "", `${service.db.databaseName}.log`), "utf8");

  /** The request's line; strict: there is nothing else in it. */
  const lineOf = (requestId: string) =>
    until("the request's line", async () => {
      const lines = (await log()).split("\n").filter((one) => one.includes(requestId));
      const found = lines.filter((one) => one.includes('"msg":"request"'));
      expect(found.length).to.be.at.most(1);
      return found[0] === undefined ? null : line.parse(JSON.parse(found[0]));
    });

  it("a success: operation, surface, status, time, and nothing of what was asked or answered", async () => {
    const purpose = `purpose ${randomUUID()}`;
    const request = { token: agent.key, body: cardPayment({ purpose }) };
    const answer = await world.api.call("createPayment", request);
    const said = await lineOf(idOf(answer));
    expect(said).to.include({ surface: "rest", operation: "createPayment", status: 201 });
    expect(said).not.to.have.property("code");
    expect((await log()).includes(purpose)).to.equal(false);
  });

  it("a refusal: the id is in the header, in the body and in the log, with the code", async () => {
    const answer = await world.api.call("createPayment", {
      token: agent.key,
      body: { idempotencyKey: randomUUID() },
    });
    const body = z.looseObject({ requestId: z.string() }).parse(answer.body);
    expect(body.requestId).to.equal(idOf(answer));
    const said = await lineOf(body.requestId);
    expect(said).to.include({ operation: "createPayment", status: 400, code: "VALIDATION_FAILED" });
  });

  it("a tool: the id of a refusal is in what the model reads, and the line names the operation", async () => {
    const mcp = await McpCaller.connect(service.baseUrl, agent.key);
    const { requestId } = await mcp.refused("get_payment", "NOT_FOUND", { transactionId: randomUUID() });
    await mcp.close();
    const said = await lineOf(requestId);
    expect(said).to.include({ surface: "mcp", operation: "getPayment", status: 200, code: "NOT_FOUND" });
  });

  it("an unknown path and a page have one too; what it was is not told", async () => {
    for (const path of ["/v1/nowhere-in-particular", "/docs"]) {
      const { headers } = await fetch(`${service.baseUrl}${path}`);
      expect((await lineOf(idOf({ headers }))).operation).to.equal(null);
    }
    expect((await log()).includes("nowhere-in-particular")).to.equal(false);
  });

  it("a probe has an id and no line at info", async () => {
    const { headers } = await fetch(`${service.baseUrl}/healthz`);
    const id = idOf({ headers });
    await lineOf(idOf(await world.api.call("getMe", { token: world.token })));
    const [found = "{}"] = (await log()).split("\n").filter((one) => one.includes(id));
    expect(JSON.parse(found)).to.include({ level: 20 });
  });

  it("what is no HTTP is answered with an id as well", async () => {
    const { hostname, port } = new URL(service.baseUrl);
    const socket = connect(Number(port), hostname);
    socket.write("what is this\r\n\r\n");
    const answer = await text(socket);
    const [, id = ""] = /^X-Request-Id: (\S+)\r$/m.exec(answer) ?? [];
    expect(id).to.match(UUID);
    expect(answer).to.include(`"requestId":"${id}"`);
  });
});
