import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { McpCaller } from "../mcp/support.ts";
import { onceReachable } from "../support/api.ts";
import { atOnce, expectDoneOnce, expectOneMade } from "../support/at-once.ts";
import { expectBooksAgree } from "../support/books.ts";
import { successOf } from "../support/contract-api.ts";
import { shortOrSoak } from "../support/soak.ts";
import { cardPayment, newWorld, paymentOf, type World } from "../support/world.ts";

describe("idempotency over HTTP", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("one key many times at once: one 201, replays with the same transaction, one effect", async () => {
    const agent = await world.agent();
    const request = { token: agent.key, body: cardPayment() };
    const answers = await atOnce(shortOrSoak(16, 50), () => world.api.call("createPayment", request));
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

  it("different payloads under one key at once: one is made, the others are 422", async () => {
    const agent = await world.agent();
    const idempotencyKey = randomUUID();
    const answers = await atOnce(shortOrSoak(16, 50), (index) => {
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
});
