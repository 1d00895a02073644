import { prove } from "../support/access-proofs.ts";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import {
  cardPayment,
  elevate,
  newWorld,
  organizationKey,
  type TestAgent,
  type World,
} from "../support/world.ts";

/** A body counts as sent with its headers for 20 ms after the admission, which on a busy machine takes long itself. */
const LATE_MS = 250;

const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

/** A request whose headers are with the service, and whose body is not. */
class HalfSent {
  /** When the service had read the headers. */
  #readAt = Infinity;
  readonly #socket: Socket;
  readonly #rest: string;
  readonly #closed: Promise<unknown>;
  #answer = "";

  private constructor(socket: Socket, rest: string) {
    this.#socket = socket;
    this.#rest = rest;
    this.#closed = once(socket, "close");
    socket.setEncoding("utf8");
    // Collected from the start: a service that learns early enough that the credential has ended answers before it has the body.
    socket.on("data", (some) => (this.#answer += String(some)));
    // The rest may be sent to a connection that was answered and closed; the answer is what counts.
    socket.on("error", () => undefined);
  }

  static async of(baseUrl: string, line: string, token: string, body: object): Promise<HalfSent> {
    const { hostname, port } = new URL(baseUrl);
    const socket = connect(Number(port), hostname);
    const sent = JSON.stringify(body);
    const half = new HalfSent(socket, sent.slice(1));
    const head = [
      `${line} HTTP/1.1`,
      `Host: ${hostname}`,
      `Authorization: Bearer ${token}`,
      "Content-Type: application/json",
      "Accept: application/json, text/event-stream",
      "Connection: close",
      // What is answered at once says that the headers have been read; the request itself comes to its handler with them.
      "Expect: 100-continue",
      `Content-Length: ${Buffer.byteLength(sent)}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${sent.slice(0, 1)}`);
    await once(socket, "data");
    half.#readAt = performance.now();
    return half;
  }

  /** Sends the rest, so late that it does not pass for a part of the same message; what is answered, as text. */
  async finish(): Promise<string> {
    await sleep(Math.max(0, this.#readAt + LATE_MS - performance.now()));
    this.#socket.write(this.#rest);
    await this.#closed;
    expect(this.#answer.startsWith(CONTINUE)).to.equal(true);
    return this.#answer.slice(CONTINUE.length);
  }
}

describe("a request whose body comes after its credential has ended", () => {
  let world: World;
  let agent: TestAgent;
  beforeEach(async () => {
    world = await newWorld();
    await elevate(world);
    agent = await world.agent();
  });

  const half = (line: string, token: string, body: object) =>
    HalfSent.of(world.service.baseUrl, line, token, body);
  const spentOf = async () => {
    const { usage } = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id: agent.id });
    return usage.spentCents;
  };

  it("a payment by an agent's key that was revoked meanwhile is 401, and not made", async () => {
    const paying = await half("POST /v1/payments", agent.key, cardPayment());
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    expect(await paying.finish()).to.match(/^HTTP\/1\.1 401 /);
    expect(await spentOf()).to.equal(0);
  });

  it("the same over MCP", async () => {
    const args = { amountCents: 100, merchant: "shop", purpose: "x", idempotencyKey: "once" };
    const params = { name: "create_card_payment", arguments: args };
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    const paying = await half("POST /mcp", agent.key, body);
    await world.api.ok("revokeAgentKey", 200, { token: world.token, id: agent.id });
    expect(await paying.finish()).to.match(/^HTTP\/1\.1 401 /);
    expect(await spentOf()).to.equal(0);
  });

  it("a payment of an agent that was paused meanwhile is refused", async () => {
    const paying = await half("POST /v1/payments", agent.key, cardPayment());
    await world.api.ok("pauseAgent", 200, { token: world.token, id: agent.id });
    expect(await paying.finish()).to.match(/^HTTP\/1\.1 403 /);
    expect(await spentOf()).to.equal(0);
  });

  it("a create by an organization's key that was revoked meanwhile is 401", async () => {
    const key = await organizationKey(world, { dailyCreateLimit: 10 });
    const body = {
      name: "Late",
      teamId: world.organization.teamId,
      budgetCents: 1,
      idempotencyKey: "late",
    };
    const creating = await half("POST /v1/agents", key.token, body);
    await world.api.ok("revokeOrganizationKey", 200, { token: world.token, id: key.id });
    expect(await creating.finish()).to.match(/^HTTP\/1\.1 401 /);
  });

  it("a change by a session that was signed out meanwhile is 401", async () => {
    const { email, password } = world.organization;
    const other = await world.service.api.signIn(email, password);
    const creating = await half("POST /v1/projects", other, { name: "Late" });
    await world.api.ok("signOut", 204, { token: other });
    expect(await creating.finish()).to.match(/^HTTP\/1\.1 401 /);
  });

  it("what needs step-up is refused once that is over", async () => {
    const body = { version: 1, budgetCents: 1 };
    const changing = await half(`PATCH /v1/agents/${agent.id}/budget-policy`, world.token, body);
    const { organizationId } = world.organization;
    await prove(world.service.db, "session", { organizationId }, { stepUpExpiresAt: new Date(0) });
    expect(await changing.finish())
      .to.match(/^HTTP\/1\.1 403 /)
      .and.include("STEP_UP_REQUIRED");
  });

  it("a body that only took its time is taken", async () => {
    const paying = await half("POST /v1/payments", agent.key, cardPayment());
    expect(await paying.finish()).to.match(/^HTTP\/1\.1 201 /);
    expect(await spentOf()).to.be.above(0);
  });
});
