import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { McpCaller } from "../mcp/support.ts";
import { onceReachable } from "../support/api.ts";
import { atOnce, expectDoneOnce, expectOneMade } from "../support/at-once.ts";
import { expectBooksAgree } from "../support/books.ts";
import { successOf } from "../support/contract-api.ts";
import { secondService } from "../support/own-service.ts";
import { cardPayment, newWorld, paymentOf, worldOf, type World } from "../support/world.ts";

describe("idempotency over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("one key 50 times at once: one 201, 49 replays with the same transaction, one effect", async () => {
    const agent = await world.agent();
    const request = { token: agent.key, body: cardPayment() };
    const answers = await atOnce(50, () => world.api.call("createPayment", request));
    expectDoneOnce(answers, "200");
    const told = answers.map(({ body, headers, status }) => {
      const { replayed, ...rest } = successOf("createPayment", body);
      expect([replayed, headers.get("idempotency-replayed")]).to.deep.equal(
        status === 200 ? [true, "true"] : [false, null],
      );
      return JSON.stringify(rest);
    });
    expect(new Set(told).size).to.equal(1);
    expect(await expectBooksAgree(world, agent)).to.deep.include({ entries: 1, spentCents: 100 });
  });

  it("50 different payloads under one key at once: one is made, the others are 422", async () => {
    const agent = await world.agent();
    const idempotencyKey = randomUUID();
    const answers = await atOnce(50, (index) => {
      const body = cardPayment({ idempotencyKey, amountCents: 100 + index });
      return world.api.call("createPayment", { token: agent.key, body });
    });
    expectOneMade(answers);
    expect((await expectBooksAgree(world, agent)).entries).to.equal(1);
  });

  it("each field of the payload counts, the order of fields and a spelt-out default do not", async () => {
    const agent = await world.agent();
    const body = cardPayment();
    const { transaction } = await world.api.ok("createPayment", 201, { token: agent.key, body });
    for (const fields of [
      { amountCents: 101 },
      { merchant: "other" },
      { purpose: "another" },
      { merchantCategory: "5734" },
    ]) {
      const request = { token: agent.key, body: { ...body, ...fields } };
      await world.api.refused("createPayment", 422, "IDEMPOTENCY_KEY_REUSED", request);
    }
    const same = Object.fromEntries(Object.entries({ ...body, currency: "USD" }).toReversed());
    const replayed = await world.api.ok("createPayment", 200, { token: agent.key, body: same });
    expect(replayed.transaction).to.deep.equal(transaction);
  });

  it("the key belongs to the agent: another agent's payment under the same one is its own", async () => {
    const [one, two] = [await world.agent(), await world.agent()];
    const body = cardPayment();
    const first = await world.api.ok("createPayment", 201, { token: one.key, body });
    const second = await world.api.ok("createPayment", 201, { token: two.key, body });
    expect(first.transaction.id).not.to.equal(second.transaction.id);
  });

  it("a replay answers the transaction as it is now: held, then approved; a denial stays one", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0, budgetCents: 150 });
    const body = cardPayment();
    const request = { token: agent.key, body };
    const held = await world.api.ok("createPayment", 201, request);
    const again = await world.api.ok("createPayment", 200, request);
    expect(again).to.deep.equal({ ...held, replayed: true });
    const id = held.approval?.id ?? "";
    const { approval } = await world.api.ok("approveApproval", 200, { token: world.token, id });
    const replayed = await world.api.ok("createPayment", 200, request);
    expect([replayed.transaction.status, replayed.approval]).to.deep.equal(["approved", approval]);
    const tooMuch = { token: agent.key, body: cardPayment() };
    const denied = await world.api.ok("createPayment", 201, tooMuch);
    expect(denied.transaction.denialCode).to.equal("BUDGET_EXCEEDED");
    expect(paymentOf(await world.api.ok("createPayment", 200, tooMuch))).to.deep.equal(paymentOf(denied));
  });

  for (const [what, fields] of [
    ["a denied", { amountCents: 10_001 }],
    ["a failed", { merchant: "sandbox-decline" }],
  ] as const) {
    it(`the replay of ${what} payment says when it was decided and what a new attempt needs`, async () => {
      const agent = await world.agent();
      const { rail: _rail, ...args } = cardPayment(fields);
      const request = { token: agent.key, body: { rail: "card", ...args } };
      const first = await world.api.ok("createPayment", 201, request);
      expect(first).not.to.have.property("message");
      const { id, status } = first.transaction;
      const record = await collectionsOf(world.service.db).transactions.findOne({ _id: id });
      const { message } = await world.api.ok("createPayment", 200, request);
      expect(status).to.be.oneOf(["denied", "failed"]);
      expect(message).to.include(record?.deniedAt?.toISOString()).and.to.include("a new idempotencyKey");
      const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
      const told = await mcp.ok(operations.createCardPayment.output, "create_card_payment", args);
      await mcp.close();
      expect(told.message).to.equal(message);
    });
  }

  it("every create says in a header that it is a replay, and only then", async () => {
    const { teamId } = world.organization;
    const creates = {
      createAgent: { name: "Once", teamId, budgetCents: 1 },
      createInvite: { email: `${randomUUID()}@example.com`, role: "member" },
      createProject: { name: "Once" },
      createTeam: { name: "Once" },
    } as const;
    const ids = ["createAgent", "createInvite", "createProject", "createTeam"] as const;
    for (const id of ids) {
      const request = { token: world.token, body: { ...creates[id], idempotencyKey: randomUUID() } };
      const made = await onceReachable(() => world.api.call(id, request));
      const again = await onceReachable(() => world.api.call(id, request));
      const told = [made, again].map(({ headers, status }) => [status, headers.get("idempotency-replayed")]);
      expect(told, id).to.deep.equal([
        [201, null],
        [200, "true"],
      ]);
    }
  });

  it("a second server on the same engines replays what the first one did, and vice versa", async () => {
    const agent = await world.agent();
    const second = await secondService(world.service);
    try {
      const there = worldOf(second, world.organization);
      const [early, late] = [
        { token: agent.key, body: cardPayment() },
        { token: agent.key, body: cardPayment() },
      ];
      const first = await world.api.ok("createPayment", 201, early);
      const again = await there.api.ok("createPayment", 200, early);
      expect(again).to.deep.equal({ ...first, replayed: true });
      const raced = await atOnce(20, (index) =>
        (index % 2 === 0 ? world : there).api.call("createPayment", late),
      );
      expectDoneOnce(raced, "200");
    } finally {
      await second.stop();
    }
    expect(await expectBooksAgree(world, agent)).to.deep.include({ entries: 2, spentCents: 200 });
  });

  const create = (fields: object = {}) => {
    const { teamId } = world.organization;
    return {
      token: world.token,
      body: { name: "Once", teamId, budgetCents: 1, idempotencyKey: randomUUID(), ...fields },
    };
  };

  describe("of creating an agent", () => {
    it("a replay is 200 with the same agent, no key for a session; another payload is 422", async () => {
      const request = create();
      const created = await world.api.ok("createAgent", 201, request);
      const replayed = await world.api.ok("createAgent", 200, request);
      expect(replayed).to.deep.equal({ agent: created.agent, apiKey: null, mcpConfigBlock: null });
      const { idempotencyKey } = request.body;
      const other = create({ idempotencyKey, budgetCents: 2 });
      await world.api.refused("createAgent", 422, "IDEMPOTENCY_KEY_REUSED", other);
    });

    it("20 times at once: one agent, and its key given out once", async () => {
      const request = create({ name: "At once" });
      expectDoneOnce(await atOnce(20, () => world.api.call("createAgent", request)), "200");
      const agents = await world.service.db.collection("agents").find({ name: "At once" }).toArray();
      expect(agents).to.have.lengthOf(1);
    });

    it("without a key each call creates another", async () => {
      const request = create({ idempotencyKey: undefined });
      const [one, two] = [
        await world.api.ok("createAgent", 201, request),
        await world.api.ok("createAgent", 201, request),
      ];
      expect(one.agent.id).not.to.equal(two.agent.id);
    });

    it("a replay answers the agent also when its team was archived since", async () => {
      const own = await newWorld();
      const { teamId } = own.organization;
      const request = { ...create({ teamId }), token: own.token };
      const { agent } = await own.api.ok("createAgent", 201, request);
      const teams = own.service.db.collection<{ _id: string }>("teams");
      await teams.updateOne({ _id: teamId }, { $set: { archivedAt: new Date() } });
      expect((await own.api.ok("createAgent", 200, request)).agent).to.deep.equal(agent);
    });

    it("the key belongs to the user: another organization's create under the same one is its own", async () => {
      const own = await newWorld();
      const request = create();
      const { agent } = await world.api.ok("createAgent", 201, request);
      const body = { ...request.body, teamId: own.organization.teamId };
      const other = await own.api.ok("createAgent", 201, { token: own.token, body });
      expect(other.agent.id).not.to.equal(agent.id);
    });
  });
});
