import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { DUPLICATE_WINDOW_MS, type PossibleDuplicate } from "../../src/domain/ledger/duplicates.ts";
import type { TransactionStatus } from "../../src/domain/ledger/payment.ts";
import { newId } from "../../src/lib/ids.ts";
import { paymentsByKey } from "../../src/payments/payments-by-key.ts";
import { PossibleDuplicates } from "../../src/payments/possible-duplicates.ts";
import { type Collections, collectionsOf } from "../../src/store/collections.ts";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { TestAccount } from "../domain/support/account.ts";
import { NOON } from "../domain/support/actor.ts";
import { McpCaller } from "../mcp/support.ts";
import { atOnce } from "../support/at-once.ts";
import { successOf } from "../support/contract-api.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import { sharedService } from "../support/service.ts";
import { cardPayment, newWorld, type World } from "../support/world.ts";

describe("a payment that may repeat another one under a new key", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  it("is paid and names the newest one before it, over REST and MCP, and so does its replay", async () => {
    const agent = await world.agent();
    const first = await agent.pay();
    expect(first.possibleDuplicateOf).to.equal(null);
    const body = cardPayment();
    const second = await world.api.ok("createPayment", 201, { token: agent.key, body });
    expect(second.transaction.status).to.equal("approved");
    expect(second.possibleDuplicateOf).to.equal(first.transaction.id);
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const { rail: _rail, ...args } = cardPayment();
    const third = await mcp.ok(operations.createCardPayment.output, "create_card_payment", args);
    await mcp.close();
    expect(third.possibleDuplicateOf).to.equal(second.transaction.id);
    const again = await world.api.ok("createPayment", 200, { token: agent.key, body });
    expect(again).to.deep.equal({ ...second, replayed: true });
  });

  it("of two at once one names the other", async () => {
    const agent = await world.agent();
    const bodies = [cardPayment(), cardPayment()];
    const answers = await atOnce(2, (index) =>
      world.api.call("createPayment", { token: agent.key, body: bodies[index] }),
    );
    const paid = answers.map(({ body }) => successOf("createPayment", body));
    const second = paid.find(({ possibleDuplicateOf }) => possibleDuplicateOf !== null);
    const first = paid.find((each) => each !== second);
    expect(first?.possibleDuplicateOf).to.equal(null);
    expect(second?.possibleDuplicateOf).to.equal(first?.transaction.id);
  });
});

describe("what is looked up of possible duplicates among an agent's records", () => {
  let transactions: Collections["transactions"];
  let duplicates: PossibleDuplicates;
  before(async () => {
    ({ transactions } = collectionsOf((await sharedService()).db));
    duplicates = new PossibleDuplicates(transactions, paymentsByKey(transactions));
  });

  const OWN = 100;
  const SHOP = { rail: "card", recipient: "Shop", comparedRecipient: "shop", amountCents: 7 } as const;

  /** An earlier payment's record. */
  async function record(agentId: string, change: Partial<TransactionDocument> = {}): Promise<string> {
    const _id = newId("txn");
    const fields = { ...SHOP, _id, keyHash: randomUUID(), sequence: OWN - 1, createdAt: new Date(NOON) };
    const document = transactionOf(
      "org_1",
      { agentId, projectId: "prj_1", teamId: "tem_1" },
      { ...fields, ...change },
    );
    await transactions.insertOne(document);
    return _id;
  }

  function duplicateOf(agentId: string, known: PossibleDuplicate, createdAt = NOON) {
    const account = new TestAccount({ budgetCents: 1_000 });
    const { amountCents, rail, recipient } = SHOP;
    const payment = account.pay(amountCents, { rail, recipient });
    return duplicates.of(agentId, { ...payment, createdAt, sequence: OWN }, known);
  }

  const UNKNOWN = { kind: "unknown" } as const;
  const statuses: readonly [TransactionStatus, boolean][] = [
    ["pending", true],
    ["approved", true],
    ["reversed", true],
    ["expired", true],
    ["denied", false],
    ["failed", false],
  ];
  for (const [status, isNamed] of statuses) {
    it(`one that is ${status} is ${isNamed ? "named" : "passed over for an older one"}`, async () => {
      const agentId = randomUUID();
      const older = await record(agentId, { createdAt: new Date(NOON - 1_000), sequence: OWN - 2 });
      const keyHash = randomUUID();
      const newest = await record(agentId, { status, keyHash });
      const expected = isNamed ? newest : older;
      expect(await duplicateOf(agentId, UNKNOWN)).to.equal(expected);
      expect(await duplicateOf(agentId, { kind: "closed", keyHash })).to.equal(expected);
    });
  }

  it("one of up to 10 minutes before is named, and none that was made later", async () => {
    const agentId = randomUUID();
    const id = await record(agentId);
    await record(agentId, { sequence: OWN + 1 });
    expect(await duplicateOf(agentId, UNKNOWN, NOON + DUPLICATE_WINDOW_MS)).to.equal(id);
    expect(await duplicateOf(agentId, UNKNOWN, NOON + DUPLICATE_WINDOW_MS + 1)).to.equal(null);
    expect(await duplicateOf(agentId, UNKNOWN, NOON - 1)).to.equal(null);
  });

  it("another amount, rail, recipient or agent is not alike", async () => {
    const agentId = randomUUID();
    await record(agentId, { amountCents: 8 });
    await record(agentId, { rail: "wallet" });
    await record(agentId, { recipient: "Shops", comparedRecipient: "shops" });
    await record(randomUUID());
    expect(await duplicateOf(agentId, UNKNOWN)).to.equal(null);
  });
});
