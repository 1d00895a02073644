import { capturedInFull } from "../../src/domain/ledger/books.ts";
import { expire } from "../../src/domain/ledger/resolutions.ts";
import { withBooks } from "../../src/domain/ledger/payment.ts";
import { TEST_ACCESS_PROOFS, TEST_PAYMENT_PROOFS } from "../support/access-proofs.ts";
import { BookedTotals } from "../../src/audit/booked-totals.ts";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { AUDIT_INDEXES } from "../../src/store/audit-documents.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { paymentDecisions } from "../../src/domain/audit/payment-decisions.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { Timestamp } from "mongodb";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import { settle } from "../../src/domain/ledger/payment.ts";
import { createPaymentEffects } from "../../src/payments/effects.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { recordsOf } from "../../src/store/held-payments.ts";
import { EventJournal } from "../../src/store/journal.ts";
import { MongoProjections } from "../../src/store/projections.ts";
import { TestAccount } from "../domain/support/account.ts";
import { profile } from "../domain/support/actor.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";
import { MemoryProjections, MemoryRail, silentPublishing, VOUCHED } from "../workflows/support/doubles.ts";
import { times } from "../support/world.ts";

const SETTLED = { status: "settled" } as const;
const seal = auditSeal(MasterKey.parse(TEST_MASTER_KEY, "a test").deriveKeys("audit-log"));
/** Payments that are written at the same time, by each of two processes. */
const PAYMENTS = 20;

/** A payment at each of its revisions: held, approved by a person, paid; or held and denied. */
function heldPayments(): Payment[][] {
  const account = new TestAccount({ autoApprovalThresholdCents: 0 });
  return times(PAYMENTS, (index) => {
    const held = account.pay(100);
    const { transactionId } = held.request;
    const { payment } = account.resolve(index % 2 === 0 ? "approve" : "deny", transactionId);
    if (payment.phase === "done") return [held, payment].map(requested);
    account.settle(transactionId);
    return [held, payment, settle(payment, SETTLED, account.now)].map(requested);
  });
}

const requested = (payment: Payment): Payment => {
  const proof = TEST_PAYMENT_PROOFS.ofOrder(profile, payment.request);
  return { ...payment, request: { ...payment.request, proof } };
};

describe("a held payment's two records", () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase();
  });
  afterEach(() => database.close());

  const projections = (onWritten?: (payment: Payment) => void) =>
    new MongoProjections({
      accessProofs: TEST_ACCESS_PROOFS,
      booked: new BookedTotals(database.db, seal),
      db: database.db,
      journal: new EventJournal(database.db, TEST_ACCESS_PROOFS),
      places: { of: () => Promise.resolve(profile) },
      proofs: TEST_PAYMENT_PROOFS,
      ...(onWritten === undefined ? {} : { onPaymentWritten: onWritten }),
    });

  it("are written in one step at each revision, however many processes write them at once", async () => {
    const { operationTime } = await database.db.command({ ping: 1 });
    if (!(operationTime instanceof Timestamp)) throw new Error("MongoDB does not say what time it is");
    const payments = heldPayments();
    const written: string[] = [];
    const writers = times(2, () =>
      projections(({ request, revision }) => written.push(`${request.transactionId} ${String(revision)}`)),
    );
    for (let revision = 0; revision < 3; revision += 1) {
      const those = payments.flatMap((revisions) => revisions[revision] ?? []);
      await Promise.all(writers.flatMap((one) => those.map((payment) => one.writePayment(profile, payment))));
    }
    const all = payments.flat();
    expect(written.toSorted(), "each revision is told of once").to.deep.equal(
      all.map(({ request, revision }) => `${request.transactionId} ${String(revision)}`).toSorted(),
    );
    const stepsOf = new Map<string, Set<string>>();
    const stream = database.db.watch([], { startAtOperationTime: operationTime });
    for (let seen = 0; seen < 2 * all.length; seen += 1) {
      const change = await stream.next();
      if (change.operationType !== "insert" && change.operationType !== "replace") continue;
      const { clusterTime, fullDocument, ns } = change;
      const { _id, revision, transactionId = _id } = fullDocument;
      const name = `${String(transactionId)} ${String(revision)}`;
      stepsOf.set(name, (stepsOf.get(name) ?? new Set()).add(`${ns.coll} at ${JSON.stringify(clusterTime)}`));
    }
    await stream.close();
    for (const [name, steps] of stepsOf) {
      const [approval = "", transaction = ""] = [...steps].toSorted();
      expect([steps.size, transaction], name).to.deep.equal([
        2,
        approval.replace(COLLECTIONS.approvals, COLLECTIONS.transactions),
      ]);
    }
    expect(stepsOf.size).to.equal(all.length);
  });

  it("are answered as of one revision, though they are written between the reads", async () => {
    const [[held, resolved] = []] = heldPayments();
    if (held === undefined || resolved === undefined) throw new Error("no payment was held");
    const { transactionId, approvalId } = held.request;
    await projections().writePayment(profile, held);
    const collections = collectionsOf(database.db);
    const read = await collections.transactions.findOne({ _id: transactionId });
    if (read === null) throw new Error("the payment has no record");
    await projections().writePayment(profile, resolved);
    const { approval, transaction } = await recordsOf(collections, read);
    expect([transaction.revision, approval?._id, approval?.revision]).to.deep.equal([
      resolved.revision,
      approvalId,
      resolved.revision,
    ]);
  });

  it("give a ledger no books or order that were changed in MongoDB, nor another payment's", async () => {
    const writer = projections();
    const [first, second] = heldPayments().flatMap((revisions) =>
      revisions.filter(({ books }) => books !== null),
    );
    if (first === undefined || second === undefined) throw new Error("two payments were charged");
    for (const payment of [first, second]) await writer.writePayment(profile, payment);
    const { transactionId: _id } = first.request;
    expect((await writer.paymentOf(_id))?.payment.books).to.deep.equal(first.books);
    const { transactions } = collectionsOf(database.db);
    const other = await transactions.findOne({ _id: second.request.transactionId });
    for (const $set of [
      { "ledgerState.books.bookings.0.capturedMc": 1e12 },
      { "ledgerState.amountMc": 1e12 },
      {
        "ledgerState.books": other?.ledgerState.books,
        "ledgerState.booksProof": other?.ledgerState.booksProof,
      },
      { status: "failed", "ledgerState.books": null },
      // A payment that claims to hold money would release that much of others.
      { status: "pending", "ledgerState.books": null },
      { "ledgerState.phase": "sending" },
      { createdAt: new Date(0) },
      { agentId: "another" },
      { organizationId: "another" },
      { "ledgerState.books": null, agentId: "another" },
    ] as const) {
      const before = await transactions.findOneAndUpdate({ _id }, { $set });
      const read = await writer.paymentOf(_id).then(
        () => "taken",
        () => "refused",
      );
      expect(read, JSON.stringify($set)).to.equal("refused");
      if (before !== null) await transactions.replaceOne({ _id }, before);
    }
  });

  it("give a ledger that forgot the payment none that is older than the audit log's", async () => {
    const [paid] = heldPayments().flatMap((revisions) => revisions.filter(({ books }) => books !== null));
    if (paid?.books === undefined || paid.books === null) throw new Error("one was charged");
    const { amountMc, transactionId: _id } = paid.request;
    const { transactions } = collectionsOf(database.db);
    const writer = projections();
    await writer.writePayment(profile, paid);
    const older = await transactions.findOne({ _id });
    if (older === null) throw new Error("the payment has no record");
    const authorizations = [{ ...capturedInFull(amountMc), creditedMc: 1_000 }];
    const booking = { at: 1, day: "2026-01-01", heldMc: 0, recalledMc: 0, disputedMc: 0 };
    const bookings = [{ ...booking, capturedMc: amountMc, creditedMc: 1_000 }];
    const refunded = withBooks(paid, { ...paid.books, authorizations, bookings }, 1);
    await writer.writePayment(profile, refunded);
    await createIndexes(database.db, AUDIT_INDEXES);
    await new AuditAppender(database.db, seal).appendAll(
      profile.organizationId,
      () => paymentDecisions(profile, refunded),
      "now",
    );
    expect((await writer.paymentOf(_id, "to adopt"))?.payment.revision).to.equal(refunded.revision);
    await transactions.replaceOne({ _id }, older);
    const adopted = await writer.paymentOf(_id, "to adopt").then(() => "adopted", String);
    expect(adopted).to.include("older than its entries in the audit log");
    expect((await writer.paymentOf(_id))?.payment.revision).to.equal(paid.revision);
  });

  it("a payment's record keeps its approval and feedback when only its network is late", async () => {
    const writer = projections();
    const paid = heldPayments()
      .flat()
      .find(({ approval, books }) => approval !== null && books !== null);
    if (paid?.approval === undefined || paid.approval === null) throw new Error("one was approved and paid");
    const approval = { ...paid.approval, feedback: "as agreed" };
    await writer.writePayment(profile, { ...paid, approval });
    const { approvals, transactions } = collectionsOf(database.db);
    await approvals.deleteOne({ _id: approval.id });
    const { transactionId: _id, amountMc } = paid.request;
    const read = (await writer.paymentOf(_id))?.payment;
    if (read?.books === undefined || read.books === null) throw new Error("it was charged");
    const authorizations = [{ ...capturedInFull(amountMc), creditedMc: 1_000 }];
    await writer.writePayment(profile, withBooks(read, { ...read.books, authorizations }, 1));
    const record = await transactions.findOne({ _id });
    expect(record?.amounts?.creditedCents).to.equal(1);
    expect([record?.approvalId, record?.feedback]).to.deep.equal([approval.id, "as agreed"]);
    expect(await approvals.countDocuments({ _id: approval.id }), "none is made anew").to.equal(0);
  });

  it("are there before any event tells of them", async () => {
    const steps: string[] = [];
    const [[held] = []] = heldPayments();
    if (held === undefined) throw new Error("no payment was held");
    const records = Object.assign(new MemoryProjections(), {
      async writePayment() {
        await nextTurn();
        steps.push("recorded");
      },
    });
    await effectsOver(records, steps).executeAndPublish(profile, held);
    expect(steps).to.deep.equal(["recorded", "published"]);
  });

  it("keep a decision over an end that an older ledger decides later, which is not published", async () => {
    const [[held, approved] = [], [, denied] = []] = heldPayments();
    if (held === undefined || approved === undefined || denied === undefined)
      throw new Error("none was held");
    const records = new MemoryProjections();
    const steps: string[] = [];
    const effects = effectsOver(records, steps);
    for (const recorded of [approved, { ...denied, request: held.request }]) {
      const expired = { ...expire(held, (held.approval?.expiresAt ?? 0) + 1), request: held.request };
      await records.writePayment(profile, recorded);
      const late = effects.executeAndPublish(profile, expired);
      expect(await late.catch(({ name }: Error) => name)).to.equal("Superseded");
      records.payments.clear();
    }
    expect(steps).to.deep.equal([]);
    await effects.executeAndPublish(profile, denied);
    expect(steps.toSorted()).to.deep.equal(["ended", "published"]);
  });
});

const nothing = (): Promise<void> => Promise.resolve();

/** Effects over `projections` that note in `steps` what is published and which approval's workflow ends. */
function effectsOver(projections: MemoryProjections, steps: string[]) {
  const rail = new MemoryRail(() => SETTLED);
  return createPaymentEffects({
    rails: { card: rail, wallet: rail },
    projections,
    workflows: {
      startApproval: nothing,
      endApproval: async () => void steps.push("ended"),
      startSettlement: nothing,
      textsOf: () => Promise.resolve(null),
    },
    publisher: { ...silentPublishing, publish: async () => void steps.push("published") },
    proofs: VOUCHED,
    clock: () => new Date(),
    monotonicMs: () => 0,
    ledgers: { submit: () => Promise.reject(new Error("nothing is asked of the ledger")) },
  });
}
