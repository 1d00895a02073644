import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { Db } from "mongodb";
import { booked, capturedInFull, NO_BOOKS } from "../../src/domain/ledger/books.ts";
import { withBooks } from "../../src/domain/ledger/payment.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { EventJournal } from "../../src/store/journal.ts";
import { deliveryKeysOf } from "../support/life.ts";
import { MongoDeliveryWindows } from "../../src/agents/key-deliveries/windows.ts";
import { paymentIn } from "../../src/store/payment-records.ts";
import { ORDER_INDEXES } from "../../src/rails/challenge/orders.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { ensureRetention, RETENTION_INDEX } from "../../src/store/retention.ts";
import { reconcileOn } from "../../server/admin/reconcile/reconcile.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { readConfig } from "../../server/config.ts";
import { ConfigError } from "../../src/lib/config-error.ts";
import { breakIn, entriesOf, testSeal } from "../audit/support.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { cardPayment, newWorld, organizationKey, until, type World } from "../support/world.ts";

const DAY_MS = 86_400_000;
const RETAINED = [COLLECTIONS.events, COLLECTIONS.creates, COLLECTIONS.keyDeliveries, COLLECTIONS.approvals];

const indexOf = async (db: Db, name: string) =>
  (await db.collection(name).indexes()).find((index) => index.name === RETENTION_INDEX);

/** Removes what MongoDB would have removed by then, by the very indexes that it goes by. */
async function removeAsAfter(db: Db, days: number): Promise<void> {
  for (const name of RETAINED) {
    const index = await indexOf(db, name);
    const [field = ""] = Object.keys(index?.key ?? {});
    const before = new Date(Date.now() + days * DAY_MS - (index?.expireAfterSeconds ?? Infinity) * 1_000);
    await db.collection(name).deleteMany({ [field]: { $lt: before } });
  }
}

const config = (env: NodeJS.ProcessEnv) => readConfig(env, "127.0.0.1").retention;

describe("the retention's indexes", () => {
  let database: TestDatabase;
  before(async () => (database = await testDatabase()));
  after(() => database.close());

  it("are as the settings say, and as the next start's say after that; 0 keeps for good", async () => {
    const { db } = database;
    const days = { eventDays: 3, createDays: 4, keyDeliveryDays: 5, approvalDays: 6 };
    const seconds = () =>
      Promise.all(RETAINED.map(async (name) => (await indexOf(db, name))?.expireAfterSeconds ?? null));
    const daySeconds = DAY_MS / 1_000;
    await ensureRetention(db, days);
    await ensureRetention(db, days);
    expect(await seconds()).to.deep.equal([3, 4, 5, 6].map((each) => each * daySeconds));
    await ensureRetention(db, { ...days, eventDays: 30, approvalDays: 0 });
    expect(await seconds()).to.deep.equal([30 * daySeconds, 4 * daySeconds, 5 * daySeconds, null]);
  });

  it("purchases' orders are removed 30 days after they were made", async () => {
    const { db } = database;
    await createIndexes(db, ORDER_INDEXES);
    const indexes = await db.collection(COLLECTIONS.purchases).indexes();
    const expiry = indexes.flatMap(({ expireAfterSeconds, key }) =>
      expireAfterSeconds === undefined ? [] : [[key, expireAfterSeconds]],
    );
    expect(expiry).to.deep.equal([[{ createdAt: 1 }, 30 * (DAY_MS / 1_000)]]);
  });

  it("count from the end: what is not over is kept, however long ago it began", async () => {
    const { db } = database;
    await ensureRetention(db, { eventDays: 3, createDays: 4, keyDeliveryDays: 5, approvalDays: 6 });
    const began = new Date(0);
    const [open, ended, now] = ["open", "ended", new Date()];
    const begun = {
      [COLLECTIONS.events]: [{ createdAt: began, isPending: true }, { dispatchedAt: now }],
      [COLLECTIONS.keyDeliveries]: [
        { state: "open", at: began },
        { at: now, endedAt: now },
      ],
      [COLLECTIONS.approvals]: [{ state: "pending", createdAt: began, expiresAt: began }, { closedAt: now }],
    };
    const all = (name: string) => db.collection<{ _id: string }>(name);
    for (const [name, [before, after]] of Object.entries(begun)) {
      await all(name).insertMany([
        { _id: open, ...before },
        { _id: ended, ...before, ...after },
      ]);
    }
    await removeAsAfter(db, 2);
    for (const name of Object.keys(begun)) expect(await all(name).countDocuments(), name).to.equal(2);
    await removeAsAfter(db, 3_650);
    for (const name of Object.keys(begun)) {
      expect(
        (await all(name).find().toArray()).map(({ _id }) => _id),
        name,
      ).to.deep.equal([open]);
    }
  });

  it("events are kept as long as webhooks are replayed, and nothing for less than 2 days", () => {
    const defaults = { eventDays: 90, createDays: 0, keyDeliveryDays: 30, approvalDays: 400 };
    expect(config({})).to.deep.equal(defaults);
    expect(config({ WEBHOOK_RETENTION_DAYS: "365" })).to.deep.equal({ ...defaults, eventDays: 365 });
    expect(config({ EVENT_RETENTION_DAYS: "0" })).to.deep.equal({ ...defaults, eventDays: 0 });
    expect(() => config({ EVENT_RETENTION_DAYS: "29" })).to.throw(ConfigError, /WEBHOOK_RETENTION_DAYS/);
    expect(() => config({ CREATE_RETENTION_DAYS: "1" })).to.throw(
      ConfigError,
      /^CREATE_RETENTION_DAYS: must be 0/,
    );
  });
});

describe("what a retention removes", () => {
  let service: TestService;
  let world: World;
  let apiKey: string;
  let agentId: string;
  let create: { readonly token: string; readonly body: object };
  const made: { readonly body: object; readonly id: string; readonly status: string }[] = [];
  let heldId: string;

  before(async () => {
    service = await startTestService({ keyDeliveryWindowSeconds: 1 });
    world = await newWorld(service);
    const { api, organization, token } = world;
    const fields = { name: "Agent", teamId: organization.teamId, budgetCents: 10_000 };
    const body = { ...fields, autoApprovalThresholdCents: 500, idempotencyKey: randomUUID() };
    create = { token: (await organizationKey(world)).token, body };
    const created = await api.made("createAgent", create);
    agentId = created.agent.id;
    // Its own window may be over by now.
    apiKey = created.apiKey ?? (await api.ok("mintAgentKey", 200, { token, id: agentId })).apiKey;
    for (const decision of ["none", "approveApproval", "denyApproval", "held"] as const) {
      const payment = cardPayment({ amountCents: decision === "none" ? 100 : 600 });
      const { approval, transaction } = await api.ok("createPayment", 201, { token: apiKey, body: payment });
      const id = approval?.id ?? "";
      if (decision === "approveApproval") await api.ok(decision, 200, { token, id });
      if (decision === "denyApproval") await api.ok(decision, 200, { token, id, body: { feedback: "no" } });
      if (decision === "held") heldId = id;
      else made.push({ body: payment, id: transaction.id, status: "" });
    }
    const { approvals, events, keyDeliveries } = collectionsOf(service.db);
    await until("all of it is over", async () => {
      const counts = await Promise.all([
        approvals.countDocuments({ agentId, closedAt: { $exists: true } }),
        events.countDocuments({ agentId, dispatchedAt: { $exists: true } }),
        keyDeliveries.countDocuments({ _id: agentId, endedAt: { $exists: true } }),
      ]);
      // Created; asked for three times, decided twice, completed twice, denied once.
      return JSON.stringify(counts) === "[2,9,1]" ? true : null;
    });
  });
  after(() => service.stop());

  const seal = () => testSeal(service.env["MASTER_KEY"] ?? "");

  it("is not removed before its time: a create is replayed, a held payment's approval stays", async () => {
    await removeAsAfter(service.db, 89);
    expect((await world.api.ok("createAgent", 200, create)).agent.id).to.equal(agentId);
    const { approvals, events } = collectionsOf(service.db);
    expect(await events.countDocuments({ agentId })).to.equal(9);
    await removeAsAfter(service.db, 3_650);
    const left = await approvals.find({ agentId }).toArray();
    expect(left.map(({ _id, state }) => [_id, state])).to.deep.equal([[heldId, "pending"]]);
    expect(await events.countDocuments({ agentId })).to.equal(0);
    expect(await collectionsOf(service.db).keyDeliveries.countDocuments({ _id: agentId })).to.equal(0);
  });

  it("is nothing of what concerns the organization alone: its events are kept for good", async () => {
    const { events } = collectionsOf(service.db);
    const { payment } = await world.api.ok("failBilling", 201, { token: world.token });
    const { organizationId } = world.organization;
    const failed = { organizationId, type: "billing.payment_failed" } as const;
    await until("its deliveries are made", async () =>
      (await events.countDocuments({ ...failed, isPending: { $exists: false } })) === 1 ? true : null,
    );
    await removeAsAfter(service.db, 3_650);
    expect((await events.findOne(failed))?.data.payment?.id).to.equal(payment.id);
  });

  it("is no longer needed for idempotency: payments' keys answer the same, none is paid twice", async () => {
    const { transactions } = collectionsOf(service.db);
    const before = await transactions.countDocuments({ agentId });
    for (const { body, id } of made) {
      const again = await world.api.ok("createPayment", 200, { token: apiKey, body });
      expect(again.transaction.id).to.equal(id);
    }
    expect(await transactions.countDocuments({ agentId })).to.equal(before);
  });

  it("expired events of an old payment are not published again with a later one", async () => {
    const { approvals, events, transactions } = collectionsOf(service.db);
    const held = await transactions.findOne({ approvalId: heldId });
    const approval = await approvals.findOne({ _id: heldId });
    if (held === null || approval === null) throw new Error("it is on hold");
    const { projectId, teamId } = held;
    const { organizationId } = world.organization;
    const profile = { organizationId, projectId, teamId, agentId, name: "Agent" };
    const journal = new EventJournal(service.db, TEST_ACCESS_PROOFS, undefined, 90);
    const payment = paymentIn(held, approval);
    await journal.publishPayment(profile, payment, new Date(Date.now() + 91 * DAY_MS), "now");
    expect(await events.countDocuments({ agentId })).to.equal(0);
    const later = new Date(Date.now() + 91 * DAY_MS);
    const authorizations = [capturedInFull(payment.request.amountMc)];
    const books = booked({ ...NO_BOOKS, authorizations }, later.getTime(), payment.day);
    await journal.publishPayment(profile, withBooks(payment, books, later.getTime()), later, "now");
    expect((await events.find({ agentId }).toArray()).map(({ type }) => type)).to.deep.equal([
      "transaction.completed",
    ]);
    await journal.publishPayment(profile, payment, new Date(Date.now() + 89 * DAY_MS), "now");
    expect(await events.countDocuments({ agentId, type: "approval.requested" })).to.equal(1);
  });

  it("leaves an agent that is there committed, and one that is not there can't be any more", async () => {
    const keys = deliveryKeysOf(service);
    const windows = new MongoDeliveryWindows(service.db, keys, () => new Date());
    expect(await windows.close(agentId)).to.equal("committed");
    expect(await collectionsOf(service.db).keyDeliveries.countDocuments({ _id: agentId })).to.equal(0);
    expect(await windows.close(randomUUID())).to.equal("discarded");
  });

  it("is not missed by reconcile, of payments that are older than their approvals are kept", async () => {
    const { db } = service;
    const { transactions } = collectionsOf(db);
    const lost = async () => {
      const { organizationId } = world.organization;
      const options = { organizationId, repair: false, patienceMs: 1_500, onProgress: () => undefined };
      const { left } = await reconcileOn(service.connections, service.env, options);
      return left.filter(({ kind }) => kind === "approval_record_differs").length;
    };
    expect(await lost(), "those that should be there still").to.equal(2);
    const old = { createdAt: new Date(Date.now() - 401 * DAY_MS) };
    await transactions.updateMany({ agentId, status: { $ne: "pending" } }, { $set: old });
    expect(await lost()).to.equal(0);
  });

  it("is not needed for the audit chain: it is whole, and says who decided", async () => {
    const entries = await entriesOf(service.db, world.organization.organizationId);
    expect(breakIn(entries, seal())).to.equal(null);
    const resolved = entries.filter(({ action }) => action === "resolvePayment");
    expect(resolved).to.have.length(2);
  });
});
