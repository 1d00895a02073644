import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { ChainView, finalPayment, fundedAgent } from "../support/chain.ts";
import { codeOf } from "../support/contract-api.ts";
import { timed } from "../support/in-time.ts";
import { type Fields, newWorld, type TestAgent, until, type World } from "../support/world.ts";
import { restricting } from "../support/restrictions.ts";
import { ask, challengeMpp, openHandMade, requirement, somebody, type TokenFacts } from "./hand-made.ts";
import { facilitatorOn, factsOf, openShop } from "./shops.ts";

/** Answers of 256 KiB at the most are taken. */
const BODY_MAX_BYTES = 256 * 1_024;

/** Exchanges with shops that one agent may have at once, and an organization. */
const OF_AGENT_MAX = 16;
const OF_ORGANIZATION_MAX = 64;
/** Time within which all of them have ended. */
const SHOP_SECONDS = 10;
const BODY_PIECES_MAX = 8_192;

/** After that an authorization of these shops is dead. */
const SHORT_SECONDS = 5;

/** A request for what a URL has. */
const request = (url: string, fields: Fields = {}): Fields => ({
  url,
  maxAmountCents: 5,
  purpose: "a test",
  idempotencyKey: randomUUID(),
  ...fields,
});

describe("purchases from shops that cheat, break or do not settle", () => {
  let world: World;
  let agent: TestAgent;
  let facts: TokenFacts;
  before(async () => {
    world = await newWorld();
    agent = await fundedAgent(world, 10_000, {});
    const token = await new ChainView(world).token(agent);
    facts = await factsOf((await facilitatorOn(rpcUrl())).client, token);
  });

  const rpcUrl = (): string => world.service.env["EVM_RPC_URL"] ?? "";
  const buy = (body: Fields) => world.api.ok("payX402Request", 201, { token: agent.key, body });
  const again = (body: Fields) => world.api.ok("payX402Request", 200, { token: agent.key, body });
  const refused = (status: number, code: Parameters<World["api"]["refused"]>[2], body: Fields) =>
    world.api.refused("payX402Request", status, code, { token: agent.key, body });

  /** A 402 of MPP that is over soon. */
  const askBriefly = () => ({
    "www-authenticate": challengeMpp(facts, {
      params: { expires: new Date(Date.now() + SHORT_SECONDS * 1_000).toISOString() },
    }),
  });

  it("a price above the maximum and offers that nobody may sign are refused, unpaid", async () => {
    const offers: readonly (readonly [code: "PRICE_ABOVE_MAX" | "NO_PAYABLE_OFFER", offer: object])[] = [
      ["PRICE_ABOVE_MAX", { amount: "50001" }],
      ["NO_PAYABLE_OFFER", { network: "eip155:1" }],
      ["NO_PAYABLE_OFFER", { asset: somebody() }],
      ["NO_PAYABLE_OFFER", { extra: { name: "USD Coin", version: facts.version } }],
      ["NO_PAYABLE_OFFER", { payTo: (await new ChainView(world).walletAddress(agent)).toLowerCase() }],
    ];
    for (const [code, offer] of offers) {
      const shop = await openHandMade((_visit, response) => ask(response, requirement(facts, offer)));
      await refused(422, code, request(`${shop.url}/`));
      expect(shop.visits).to.deep.equal([{ path: "/", payment: null }]);
      await shop.close();
    }
    const { transactions } = await world.api.ok("listTransactions", 200, { token: world.token });
    expect(transactions).to.deep.equal([]);
  });

  it("a 402 after paying, with other terms, gets the same payment again and no other", async () => {
    let isPaid = false;
    const shop = await openHandMade(({ payment }, response) => {
      if (payment !== null && isPaid) response.end("late goods");
      else ask(response, requirement(facts, payment === null ? {} : { amount: "9000", payTo: somebody() }));
    });
    const body = request(`${shop.url}/`);
    const first = await buy(body);
    expect(first).to.deep.include({ httpStatus: 402, body: null });
    expect(first.transaction?.status).to.equal("pending");
    isPaid = true;
    const second = await until("the goods are there", async () => {
      const answer = await again(body);
      return answer.httpStatus === 200 ? answer : null;
    });
    expect(second.body).to.equal("late goods");
    // The chain has seen nothing, whatever the shop says.
    expect(second.transaction).to.deep.include({ id: first.transaction?.id, status: "pending" });
    const payments = new Set(shop.visits.flatMap(({ payment }) => payment ?? []));
    expect(payments.size).to.equal(1);
    await shop.close();
  });

  it("what a shop delivers and never settles is kept, and the payment fails once it is dead", async () => {
    const shop = await openHandMade(({ payment }, response) =>
      payment === null ? void response.writeHead(402, askBriefly()).end() : void response.end("goods"),
    );
    const body = request(`${shop.url}/`);
    const bought = await buy(body);
    expect(bought).to.deep.include({ httpStatus: 200, body: "goods" });
    expect(bought.transaction?.status).not.to.equal("approved");
    const ended = await finalPayment(world, agent, bought.transaction?.id ?? "", 120_000);
    expect(ended.transaction).to.deep.include({ status: "failed", denialCode: "NOT_CHARGED" });
    expect(await again(body)).to.deep.include({ httpStatus: 200, body: "goods" });
    await shop.close();
  });

  it("a shop's error keeps the amount held, and its settlement afterwards is still booked", async () => {
    let isBroken = true;
    const shop = await openShop({
      rpcUrl: rpcUrl(),
      token: facts.token,
      deliver: (_request, response) =>
        isBroken ? void response.status(500).send("broken") : void response.send("goods"),
    });
    const body = request(`${shop.url}/paid/x`);
    const broken = await buy(body);
    expect(broken).to.deep.include({ httpStatus: 500, body: "broken" });
    expect(broken.transaction?.status).to.equal("pending");
    isBroken = false;
    const bought = await until("it is settled", async () => {
      const answer = await again(body);
      return answer.transaction?.status === "approved" ? answer : null;
    });
    expect(bought).to.deep.include({ httpStatus: 200, body: "goods" });
    await shop.close();
  });

  it("a facilitator that dies after its settlement was sent costs nothing twice", async () => {
    const shop = await openShop({
      rpcUrl: rpcUrl(),
      token: facts.token,
      decorate: (facilitator) => ({
        ...facilitator,
        async settle(payload, requirements) {
          await facilitator.settle(payload, requirements);
          throw new Error("the facilitator died");
        },
      }),
    });
    const body = request(`${shop.url}/paid/x`);
    const bought = await buy(body);
    expect(bought.httpStatus).to.equal(402);
    const ended = await finalPayment(world, agent, bought.transaction?.id ?? "");
    expect(ended.transaction.status).to.equal("approved");
    // Paid, and not delivered.
    expect(await again(body)).to.deep.include({ httpStatus: 402, body: null });
    await shop.close();
  });

  it("redirects are answered and not followed, before and after paying", async () => {
    const elsewhere = await openHandMade((_visit, response) => void response.end("elsewhere"));
    const redirect = { location: `${elsewhere.url}/` };
    const shop = await openHandMade(({ path, payment }, response) => {
      if (path === "/free" || payment !== null) response.writeHead(307, redirect).end();
      else response.writeHead(402, askBriefly()).end();
    });
    for (const path of ["/free", "/paid"]) {
      const answer = await buy(request(`${shop.url}${path}`));
      expect(answer.httpStatus).to.equal(307);
      expect(answer.headers["location"]).to.equal(redirect.location);
    }
    expect(elsewhere.visits).to.deep.equal([]);
    await Promise.all([shop.close(), elsewhere.close()]);
  });

  it("endless bodies are cut, and endless headers and silence are no answer", async () => {
    const shop = await openHandMade(({ path }, response) => {
      if (path === "/headers") {
        for (let at = 0; at < 100; at += 1) response.setHeader(`x-${String(at)}`, "a".repeat(1_000));
        response.end();
        return;
      }
      if (path === "/crumbs") {
        for (let at = 0; at <= BODY_PIECES_MAX; at += 1) response.write("a");
        response.end();
        return;
      }
      const write = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, "a")));
      };
      response.on("drain", write);
      response.writeHead(200);
      write();
    });
    const cut = await buy(request(`${shop.url}/endless`));
    expect([cut.isTruncated, cut.body?.length]).to.deep.equal([true, BODY_MAX_BYTES]);
    const crumbs = await buy(request(`${shop.url}/crumbs`));
    expect([crumbs.isTruncated, crumbs.body?.length]).to.deep.equal([true, BODY_PIECES_MAX]);
    await refused(422, "SHOP_UNREACHABLE", request(`${shop.url}/headers`));
    await shop.close();
  });

  it("a shop that stays silent has 10 s, and the agent is told that it gave no answer", async () => {
    const shop = await openHandMade(() => undefined);
    const { ms, ownMs } = await timed(refused(422, "SHOP_UNREACHABLE", request(`${shop.url}/`)));
    expect(ms).to.be.at.least(SHOP_SECONDS * 1_000);
    expect(ownMs).to.be.below((SHOP_SECONDS + 1) * 1_000);
    await shop.close();
  });

  it("silent shops fill their agent's share and no more, and cards are paid meanwhile", async () => {
    const shop = await openHandMade(() => undefined);
    const visit = () => world.api.call("payX402Request", { token: agent.key, body: request(`${shop.url}/`) });
    const waiting = Array.from({ length: OF_AGENT_MAX }, visit);
    await until("all wait", () => Promise.resolve(shop.visits.length >= OF_AGENT_MAX ? true : null));
    const another = await visit();
    expect([another.status, codeOf(another)]).to.deep.equal([503, "SERVICE_UNAVAILABLE"]);
    expect((await agent.pay()).transaction.status).to.equal("approved");
    await shop.close();
    for (const answer of await Promise.all(waiting)) expect(codeOf(answer)).to.equal("SHOP_UNREACHABLE");
  });

  it("a full organization's purchases are put off in turn, and finished ones are answered again", async () => {
    const [shop, silent] = [
      await openShop({ rpcUrl: rpcUrl(), token: facts.token }),
      await openHandMade(() => undefined),
    ];
    const body = request(`${shop.url}/paid/x`);
    const bought = await buy(body);
    const agents = await Promise.all(
      Array.from({ length: OF_ORGANIZATION_MAX / OF_AGENT_MAX }, () => world.agent()),
    );
    const visit = (token: string) =>
      world.api.call("payX402Request", { token, body: request(`${silent.url}/`) });
    const waiting = agents.flatMap(({ key }) => Array.from({ length: OF_AGENT_MAX }, () => visit(key)));
    await until("all wait", () => Promise.resolve(silent.visits.length >= waiting.length ? true : null));
    const began = performance.now();
    const others = await Promise.all(Array.from({ length: OF_ORGANIZATION_MAX }, () => visit(agent.key)));
    const elapsedSeconds = Math.ceil((performance.now() - began) / 1_000);
    const seconds = others.map((other) => {
      expect(codeOf(other)).to.equal("SERVICE_UNAVAILABLE");
      return Number(Object(other.body)["retry_after_seconds"]);
    });
    expect(Math.min(...seconds)).to.equal(SHOP_SECONDS);
    expect(Math.max(...seconds)).to.be.within(2 * SHOP_SECONDS - elapsedSeconds, 2 * SHOP_SECONDS);
    expect(await again(body)).to.deep.include({ body: bought.body, httpStatus: 200, replayed: true });
    expect(silent.visits).to.have.length(waiting.length);
    await Promise.all([shop.close(), silent.close()]);
    await Promise.all(waiting);
  });

  it("addresses that are not public, other schemes and forms of a URL are 400", async () => {
    const urls = [
      "http://10.0.0.1/",
      "https://169.254.169.254/latest/meta-data/",
      "http://93.184.215.14:443/",
      "ftp://127.0.0.1/",
      "http://user@127.0.0.1/",
      "http://127.0.0.1/#part",
      "file:///etc/passwd",
    ];
    for (const url of urls) await refused(400, "VALIDATION_FAILED", request(url));
    await refused(400, "VALIDATION_FAILED", request("http://127.0.0.1/", { headers: { "X-Payment": "x" } }));
    await refused(400, "VALIDATION_FAILED", request("http://127.0.0.1/", { body: "{}" }));
  });

  it("a rule that names the shop's host, on every port or one, holds its purchases", async () => {
    const shop = await openShop({ rpcUrl: rpcUrl(), token: facts.token });
    const { port } = new URL(shop.url);
    const id = world.organization.projectId;
    const { version } = await world.api.ok("getProjectApprovalRules", 200, { token: world.token, id });
    const names = ["host:127.0.0.1:1", "HOST:127.0.0.1", `host:127.0.0.1:${port}`];
    for (const [at, name] of names.entries()) {
      const rules = [{ type: "recipient", enabled: true, params: { anyOf: [name] } }];
      const body = { rules, version: version + at };
      await world.api.ok("setProjectApprovalRules", 200, { token: world.token, id, body });
      const answer = await buy(request(`${shop.url}/paid/x`));
      expect(answer.approval?.flaggedByRuleTypes ?? [], name).to.deep.equal(at === 0 ? [] : ["recipient"]);
    }
    await shop.close();
  });

  it("restrictions deny purchases by the shop's host or its payee, and admit them by either", async () => {
    const shop = await openShop({ rpcUrl: rpcUrl(), token: facts.token });
    const of = { token: world.token, id: world.organization.projectId };
    const { version: rulesVersion } = await world.api.ok("getProjectApprovalRules", 200, of);
    const noRules = { rules: [], version: rulesVersion };
    await world.api.ok("setProjectApprovalRules", 200, { ...of, body: noRules });
    const restrict = async (only: string[] | null, never: string[]) => {
      const { version } = await world.api.ok("getProjectRestrictions", 200, of);
      const body = restricting({ recipients: { only, never } }, version);
      await world.api.ok("setProjectRestrictions", 200, { ...of, body });
      const { httpStatus, transaction } = await buy(request(`${shop.url}/paid/x`));
      return [httpStatus, transaction?.denialCode ?? null, transaction?.merchant ?? ""];
    };
    const [, , payee = ""] = await restrict(["host:127.0.0.1"], []);
    const denied = [402, "RECIPIENT_NOT_ALLOWED", payee];
    expect(await restrict(null, ["HOST:127.0.0.1"])).to.deep.equal(denied);
    expect(await restrict(null, [String(payee).toLowerCase()])).to.deep.equal(denied);
    expect(await restrict(["host:127.0.0.1:1", "another"], [])).to.deep.equal(denied);
    expect(await restrict([String(payee)], [])).to.deep.equal([200, null, payee]);
    expect(await restrict(null, [])).to.deep.equal([200, null, payee]);
    await shop.close();
  });
});
