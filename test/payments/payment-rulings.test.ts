import { TEST_ACCESS_PROOFS, TEST_PAYMENT_PROOFS } from "../support/access-proofs.ts";
import { RECIPIENT_INDEX } from "../../src/store/projections.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { TransactionDocument } from "../../src/store/documents.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { comparedName } from "../../src/domain/rules/compared-name.ts";
import { newId } from "../../src/lib/ids.ts";
import { fingerprint, PaymentRulings } from "../../src/payments/rules/payment-rules.ts";
import type { AgentProfile } from "../../src/domain/agent/state.ts";
import type { TransactionStatus } from "../../src/domain/ledger/payment.ts";
import type { PaymentRules } from "../../src/domain/rules/checks.ts";
import { proven, transactionOf } from "../support/payments-in-place.ts";
import { newWorld, type World } from "../support/world.ts";

const NOON = Date.UTC(2026, 4, 13, 12);
const duplicates: PaymentRules = { checks: [{ type: "duplicate", windowSeconds: 60 }] };

/** What a server looks up for an actor that does not remember, in a database that has it (docs/policy.md). */
describe("what rules look up among an agent's records", () => {
  let world: World;
  let rulings: PaymentRulings;
  before(async () => {
    world = await newWorld();
    const collections = collectionsOf(world.service.db);
    rulings = new PaymentRulings({
      accessProofs: TEST_ACCESS_PROOFS,
      proofs: TEST_PAYMENT_PROOFS,
      collections,
      clock: () => new Date(NOON),
    });
  });

  const payment = { rail: "card", recipient: "Shop", amountMc: 7_000, merchantCategory: null } as const;

  /** A payment's record, as far as it is looked at. */
  async function record(
    agentId: string,
    change: Partial<TransactionDocument> = {},
    amountMc: number = payment.amountMc,
  ): Promise<void> {
    const { rail } = payment;
    const { recipient = payment.recipient } = change;
    const made = { _id: newId("txn"), agentId, keyHash: randomUUID(), rail, recipient };
    const found = {
      comparedRecipient: comparedName(recipient),
      status: "approved",
      createdAt: new Date(NOON),
      ledgerState: { amountMc },
    };
    const document = { ...made, ...found, ...change };
    await world.service.db.collection<{ _id: string }>("transactions").insertOne(document);
  }

  const similarAt = async (agentId: string) =>
    (await rulings.withSimilarPayment(duplicates, agentId, payment))?.similarAt ?? null;

  const statuses: readonly [TransactionStatus, boolean][] = [
    ["approved", true],
    ["reversed", true],
    ["failed", true],
    ["expired", true],
    ["denied", false],
    // The actor has it itself, and knows what became of it since.
    ["pending", false],
  ];
  for (const [status, isFound] of statuses) {
    it(`a like payment that is ${status} is ${isFound ? "found" : "passed over"}`, async () => {
      const agentId = randomUUID();
      await record(agentId, { status });
      expect(await similarAt(agentId)).to.equal(isFound ? NOON : null);
    });
  }

  it("the newest one is found however it is written; another amount, rail or agent is not alike", async () => {
    const agentId = randomUUID();
    await record(agentId, { createdAt: new Date(NOON + 9_000) }, 8_000);
    for (const change of [
      { rail: "wallet" as const },
      { recipient: "Shops" },
      { recipient: "S hop" },
      { agentId: randomUUID() },
    ]) {
      await record(agentId, { ...change, createdAt: new Date(NOON + 9_000) });
    }
    expect(await similarAt(agentId)).to.equal(null);
    await record(agentId, { createdAt: new Date(NOON + 1_000), recipient: "\u00a0ＳＨ\u200bＯＰ " });
    await record(agentId, { createdAt: new Date(NOON), recipient: "shop" });
    expect(await similarAt(agentId)).to.equal(NOON + 1_000);
  });

  it("nothing is looked up where no rule looks for duplicates", async () => {
    const rules: PaymentRules = { checks: [{ type: "velocity", count: 1, windowSeconds: 1 }] };
    const agentId = randomUUID();
    await record(agentId);
    expect(await rulings.withSimilarPayment(rules, agentId, payment)).to.equal(rules);
    expect(await rulings.withSimilarPayment(undefined, agentId, payment)).to.equal(undefined);
  });

  /** Processor time of judging payments, one after the other, in milliseconds each; the fastest of some rounds. */
  async function judgingMs(profile: AgentProfile): Promise<number> {
    const rounds: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      const before = process.cpuUsage();
      for (let index = 0; index < 10; index += 1) await rulings.of(profile, payment);
      const { system, user } = process.cpuUsage(before);
      rounds.push((system + user) / 10_000);
    }
    return Math.min(...rounds);
  }

  it("the largest rules that are taken cost a payment about what none do", async () => {
    const free = await newWorld();
    const { projectId, teamId, organizationId } = world.organization;
    // 256 KB of names that become as much longer as may be when they are compared.
    const anyOf = Array.from({ length: 36 }, (_, index) => `${"\ufdfa".repeat(44)}${index}`);
    const rules = Array.from({ length: 50 }, () => ({ type: "recipient", params: { anyOf } }));
    const body = { rules, version: 1 };
    const { token } = world;
    await world.api.ok("setProjectApprovalRules", 200, { token, id: projectId, body });
    await world.api.ok("setTeamApprovalRules", 200, { token, id: teamId, body });
    const agent = { agentId: randomUUID(), name: "Agent" };
    const none = await judgingMs({ ...agent, ...free.organization });
    const largest = await judgingMs({ ...agent, organizationId, projectId, teamId });
    expect(largest, `of ${none} ms without rules`).to.be.below(10 * none + 2);
  });

  it("no recipient is known by a record that was made or changed in MongoDB alone", async () => {
    const { api, organization, token } = await newWorld();
    const { organizationId, projectId, teamId } = organization;
    const body = { rules: [{ type: "new_recipient", params: {} }], version: 1 };
    await api.ok("setTeamApprovalRules", 200, { token, id: teamId, body });
    const shop = { recipient: "Shop", comparedRecipient: "shop" };
    const made = (agentId: string, fields: Partial<TransactionDocument> = {}) =>
      transactionOf(organizationId, { agentId, projectId, teamId }, { ...shop, ...fields });
    const records: readonly [what: string, isNew: boolean, (agentId: string) => TransactionDocument][] = [
      ["as it was written", false, (agentId) => proven(made(agentId))],
      ["made", true, (agentId) => made(agentId)],
      [
        "of another payee",
        true,
        (agentId) => ({ ...proven(made(agentId, { recipient: "Other" })), ...shop }),
      ],
      ["of another agent", true, (agentId) => ({ ...proven(made(randomUUID())), agentId })],
      [
        "not paid",
        true,
        (agentId) => ({ ...proven(made(agentId, { status: "denied" })), status: "approved" }),
      ],
    ];
    const { transactions } = collectionsOf(world.service.db);
    for (const [what, isNew, recordOf] of records) {
      const agentId = randomUUID();
      await transactions.insertOne(recordOf(agentId));
      const { rules } = await rulings.of({ ...organization, agentId, name: "Agent" }, payment);
      expect(rules !== undefined, what).to.equal(isNew);
    }
  });

  it("each replacement of rules is found once those before it are forgotten", async () => {
    const { api, organization, token } = await newWorld();
    const profile = { ...organization, agentId: randomUUID(), name: "Agent" };
    const types = async () => (await rulings.of(profile, payment)).rules?.checks.map(({ type }) => type);
    const set = async (version: number, rules: readonly object[]) =>
      api.ok("setTeamApprovalRules", 200, { token, id: organization.teamId, body: { rules, version } });
    const shop = { type: "recipient", params: { anyOf: ["SHOP"] } };
    const other = { type: "recipient", params: { anyOf: ["Shops"] } };
    const rail = { type: "rail", params: { anyOf: ["card"] } };
    const rounds = [[shop], [other], [rail, shop], [{ ...shop, enabled: false }], [shop], []];
    const found: unknown[] = [];
    for (const [index, rules] of rounds.entries()) {
      await set(index + 1, rules);
      // As the ledger has it done, which refuses what was judged by older ones.
      rulings.forget(profile);
      found.push(await types(), await types());
    }
    const expected = [["recipient"], undefined, ["rail", "recipient"], undefined, ["recipient"], undefined];
    expect(found).to.deep.equal(expected.flatMap((each) => [each, each]));
    const { versions } = await rulings.of(profile, payment);
    expect(versions).to.deep.equal({ project: null, team: rounds.length + 1, agent: null });
  });

  it("its index serves it", async () => {
    const plan = await world.service.db
      .collection("transactions")
      .find({
        agentId: randomUUID(),
        rail: "card",
        comparedRecipient: "shop",
        status: { $in: ["approved", "reversed", "failed", "expired"] },
        "ledgerState.amountMc": 7_000,
      })
      .sort({ createdAt: -1 })
      .hint(RECIPIENT_INDEX)
      .explain("queryPlanner");
    const text = JSON.stringify(plan["queryPlanner"].winningPlan);
    expect(text).to.include('"stage":"SORT_MERGE"').and.not.to.include('"stage":"SORT"');
  });

  it("a fingerprint is rail, amount and the recipient as it is compared, and nothing else", () => {
    const hash = fingerprint(payment);
    expect(fingerprint({ ...payment, recipient: "sHOP", merchantCategory: "7995" })).to.equal(hash);
    for (const change of [{ amountMc: 70_000 }, { rail: "wallet" as const }, { recipient: "7 Shop" }]) {
      expect(fingerprint({ ...payment, ...change })).not.to.equal(hash);
    }
  });
});
