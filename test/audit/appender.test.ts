import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { AuditAppender, AuditLogUnavailable } from "../../src/audit/chain/appender.ts";
import { AUDIT_INDEXES, AUDIT_LOG, auditLogOf } from "../../src/store/audit-documents.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { breakIn, entriesOf, ownSeal } from "./support.ts";
import { recordOf, times } from "./tampering.ts";

const WRITERS = 16;
const ENTRIES_EACH = 25;
const HOUR_MS = 3_600_000;
const seal = ownSeal();
let number = 0;
const nextRecord = (organizationId: string) => {
  number += 1;
  return { ...recordOf(number), organizationId };
};

describe("appending to the audit log", () => {
  let database: TestDatabase;
  let organizations = 0;
  let organizationId: string;
  before(async () => {
    database = await testDatabase();
    await createIndexes(database.db, AUDIT_INDEXES);
  });
  after(() => database.close());
  beforeEach(() => {
    organizations += 1;
    organizationId = `organization-${organizations}-own`;
  });

  const appender = () => new AuditAppender(database.db, seal);
  /** Never begins an insert because time has passed. */
  const patient = () => new AuditAppender(database.db, seal, { lingerMs: HOUR_MS });
  const entries = () => entriesOf(database.db, organizationId);

  async function expectUnbroken(count: number): Promise<void> {
    const found = await entries();
    expect(breakIn(found, seal)).to.equal(null);
    expect(found.map(({ sequence }) => sequence)).to.deep.equal(times(count, (index) => index + 1));
  }

  it("puts each entry behind the last, in the order in which they were told", async () => {
    const log = appender();
    const records = times(10, () => nextRecord(organizationId));
    await Promise.all(records.map((record) => log.append(record)));
    await expectUnbroken(10);
    expect((await entries()).map(({ entryKey }) => entryKey)).to.deep.equal(
      records.map(({ entryKey }) => entryKey),
    );
  });

  it("16 writers at once in four processes' places make one chain without a gap or a fork", async () => {
    const logs = times(4, appender);
    const write = async (writer: number): Promise<void> => {
      const log = logs[writer % logs.length];
      for (const record of times(ENTRIES_EACH, () => nextRecord(organizationId))) await log?.append(record);
    };
    await Promise.all(times(WRITERS, write));
    await expectUnbroken(WRITERS * ENTRIES_EACH);
  });

  it("processes that take turns lose a round each, and then look before they append", async () => {
    const { db } = database;
    const logs = times(2, appender);
    await db.setProfilingLevel("all");
    for (const turn of times(20, (index) => index))
      await logs[turn % logs.length]?.append(nextRecord(organizationId));
    await db.setProfilingLevel("off");
    await expectUnbroken(20);
    const inserts = { op: "insert", ns: `${db.databaseName}.${AUDIT_LOG}` };
    expect(await db.collection("system.profile").countDocuments(inserts)).to.equal(22);
  });

  it("the same thing told any number of times, by any process, at once and again, is one entry", async () => {
    const logs = times(4, appender);
    const records = times(20, () => nextRecord(organizationId));
    const tell = () =>
      Promise.all(logs.flatMap((log) => records.toReversed().map((record) => log.append(record))));
    await tell();
    await tell();
    await expectUnbroken(records.length);
  });

  it("an entry among others that is there already does not keep those from their place", async () => {
    const [one, two] = [appender(), appender()];
    const records = times(9, () => nextRecord(organizationId));
    await Promise.all(
      records.filter((_record, index) => index % 3 === 1).map((record) => one.append(record)),
    );
    await Promise.all(records.map((record) => two.append(record)));
    await expectUnbroken(records.length);
  });

  it("what is not urgent goes together, and with what is", async () => {
    const log = patient();
    const soon = times(24, () => log.append(nextRecord(organizationId), "soon"));
    expect(log.waiting).to.equal(24);
    await log.append(nextRecord(organizationId));
    await expectUnbroken(25);
    await Promise.all(soon);
    const late = log.append(nextRecord(organizationId), "soon");
    await log.flush();
    await expectUnbroken(26);
    await late;
  });

  it("enough for an insert does not wait for more", async () => {
    const log = patient();
    await Promise.all(times(50, () => log.append(nextRecord(organizationId), "soon")));
    await expectUnbroken(50);
  });

  it("what is not urgent waits for others also where it came while an insert was under way", async () => {
    const log = patient();
    const first = log.append(nextRecord(organizationId));
    const soon = times(20, () => log.append(nextRecord(organizationId), "soon"));
    await first;
    // The end of the first insert begins the next one, if anything does.
    await setImmediate();
    expect(log.waiting).to.equal(20);
    await log.append(nextRecord(organizationId));
    await Promise.all(soon);
    await expectUnbroken(22);
  });

  it("a flush while others keep coming is done with what waited, and does not hurry those", async () => {
    const log = patient();
    const before = times(3, () => log.append(nextRecord(organizationId), "soon"));
    const flushed = log.flush();
    const after = times(3, () => log.append(nextRecord(organizationId), "soon"));
    await flushed;
    expect(await entries()).to.have.lengthOf(3);
    await log.flush();
    await Promise.all([...before, ...after]);
    await expectUnbroken(6);
  });

  it("what is told together is done when all of it is there, also where a part of it was before", async () => {
    const [one, two] = [appender(), appender()];
    const records = times(5, () => nextRecord(organizationId));
    await one.append(records[1] ?? nextRecord(organizationId));
    const groups = [records.slice(0, 3), records.slice(3), []];
    await Promise.all(groups.map((group) => two.appendAll(organizationId, () => group, "now")));
    await expectUnbroken(records.length);
    const keys = (await entries()).map(({ entryKey }) => entryKey).toSorted();
    expect(keys).to.deep.equal(records.map(({ entryKey }) => entryKey).toSorted());
  });

  it("what can't be made is refused to who told it, and keeps no other entry from the chain", async () => {
    const log = appender();
    const told = [
      log.append(nextRecord(organizationId), "soon"),
      log.appendAll(
        organizationId,
        () => {
          throw new RangeError("no such time");
        },
        "soon",
      ),
      log.append(nextRecord(organizationId)),
    ];
    const settled = await Promise.allSettled(told);
    expect(settled.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    await expectUnbroken(2);
  });

  it("organizations have chains of their own", async () => {
    const log = appender();
    const others = [organizationId, `${organizationId}-other`, organizationId.slice(0, -1)];
    await Promise.all(times(30, (index) => log.append(nextRecord(others[index % 3] ?? ""))));
    for (const each of others) {
      const found = await entriesOf(database.db, each);
      expect(found, each).to.have.lengthOf(10);
      expect(breakIn(found, seal), each).to.equal(null);
    }
  });

  it("an entry that can't be written is refused, and the chain goes on after the last good one", async () => {
    const log = appender();
    await log.append(nextRecord(organizationId));
    const closed = { collMod: AUDIT_LOG, validator: { action: "nothing" }, validationLevel: "strict" };
    await database.db.command(closed);
    const outcome = await log.append(nextRecord(organizationId)).catch((error: unknown) => error);
    expect(outcome).to.be.instanceOf(Error);
    await database.db.command({ ...closed, validator: {} });
    await log.append(nextRecord(organizationId));
    await expectUnbroken(2);
  });

  it("an entry is refused, not skipped, while a foreign document stands under its key", async () => {
    const log = appender();
    const first = nextRecord(organizationId);
    await log.append(first);
    const [there] = await entries();
    if (there === undefined) throw new Error("no entry");
    const [wanted, other] = [nextRecord(organizationId), nextRecord(organizationId)];
    const { entryKey } = wanted;
    const planted = [
      { ...there, entryKey, _id: "elsewhere" },
      { ...there, entryKey, _id: there._id.replace(/.$/, "9"), sequence: 9 },
    ];
    for (const document of planted) {
      await auditLogOf(database.db).insertOne(document);
      const outcomes = await Promise.allSettled([log.append(wanted), log.append(other), log.append(first)]);
      await auditLogOf(database.db).deleteMany({ entryKey });
      const [refused, ...told] = outcomes;
      expect(refused?.status === "rejected" && refused.reason, document._id).to.be.instanceOf(
        AuditLogUnavailable,
      );
      expect(
        told.map(({ status }) => status),
        document._id,
      ).to.deep.equal(["fulfilled", "fulfilled"]);
      await auditLogOf(database.db).deleteMany({ organizationId, sequence: { $gt: 1 } });
    }
    const again = appender();
    await again.append(wanted);
    await again.append(other);
    await expectUnbroken(3);
    expect((await entries()).map((entry) => entry.entryKey)).to.include(entryKey);
  });

  it("a genuine entry counts as told only in its own place", async () => {
    const log = appender();
    const records = times(3, () => nextRecord(organizationId));
    for (const record of records) await log.append(record);
    const last = (await entries()).at(-1);
    if (last === undefined) throw new Error("no entry");
    await auditLogOf(database.db).deleteOne({ _id: last._id });
    await auditLogOf(database.db).insertOne({ ...last, _id: last._id.replace(/.$/, "7") });
    const outcome = await appender()
      .append(records[2] ?? nextRecord(organizationId))
      .catch((error: unknown) => error);
    expect(outcome).to.be.instanceOf(AuditLogUnavailable);
  });

  it("no more wait than it holds: the rest is refused at once", async () => {
    const log = appender();
    const told = times(5_500, () => log.append(nextRecord(organizationId), "soon"));
    const outcomes = await Promise.allSettled(told);
    const refused = outcomes.filter(({ status }) => status === "rejected");
    // The first that are enough for an insert are on their way by then, and do not wait any more.
    expect(refused).to.have.lengthOf(475);
    for (const each of refused) {
      expect("reason" in each && each.reason).to.be.instanceOf(AuditLogUnavailable);
    }
    await expectUnbroken(told.length - refused.length);
  });
});
