import { expect } from "chai";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import type { Db, MongoClient } from "mongodb";
import { AUDIT_INDEXES, type AuditDocument, auditLogOf } from "../../src/store/audit-documents.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { AnchorFile } from "../../src/audit/chain/anchor-file.ts";
import { AuditAnchoring } from "../../src/audit/chain/anchoring.ts";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { verifyAuditLog } from "../../server/admin/verify-audit-log.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { canonicalJson } from "../../src/domain/audit/canonical.ts";
import { type AuditSeal, link } from "../../src/domain/audit/entry.ts";

import type { ChainProblem } from "../../src/domain/audit/verify.ts";
import { until } from "../support/world.ts";
import { Child } from "../support/process.ts";
import { someOrAll } from "../support/soak.ts";
import { withHistory } from "./history.ts";
import { recordOf } from "./tampering.ts";
import { entriesOf, ownSeal, testSeal } from "./support.ts";

const CLI_MS = 120_000;

describe("npm run admin -- verify-audit-log", () => {
  let env: NodeJS.ProcessEnv;
  let organizationId: string;
  let db: Db;
  let mongo: MongoClient;
  let whole: AuditDocument[];
  let anchorsPath: string;
  let anchors: string;
  let seal: AuditSeal;

  before(async () => {
    const world = await withHistory();
    ({ env } = world.service);
    ({ organizationId } = world.organization);
    await world.service.stop();
    ({ db, mongo } = await connectMongo(String(env["MONGODB_URI"])));
    whole = await entriesOf(db, organizationId);
    seal = testSeal(String(env["MASTER_KEY"]));
    anchorsPath = String(env["AUDIT_ANCHOR_FILE"]);
    anchors = await readFile(anchorsPath, "utf8");
  });
  after(async () => {
    await db.dropDatabase();
    await mongo.close();
  });
  afterEach(async () => {
    await writeFile(anchorsPath, anchors);
    await auditLogOf(db).deleteMany({});
    await auditLogOf(db).insertMany(whole);
  });

  const log = () => auditLogOf(db);
  const lines = async () => (await readFile(anchorsPath, "utf8")).trimEnd().split("\n");
  const at = (sequence: number): AuditDocument => {
    const entry = whole[sequence - 1];
    if (entry === undefined) throw new Error(`no entry ${sequence}`);
    return entry;
  };

  const start = () =>
    new AuditAnchoring({
      db,
      seal,
      sink: new AnchorFile(anchorsPath),
      clock: () => new Date(),
      recordRoot: null,
      onWarning: (message, error) => expect.fail(`${message}: ${String(error)}`),
    });
  const tell = (key: string) => new AuditAppender(db, seal).append({ ...serviceRecord, entryKey: key });

  async function firstBroken() {
    const { broken, unbroken } = await verifyAuditLog(env);
    expect(unbroken).to.equal(broken.length === 0);
    expect(broken.length).to.be.at.most(1);
    const found = broken[0]?.broken ?? null;
    return found === null ? null : ([found.sequence, found.problem] as const);
  }

  it("says of an untouched log how much was checked, and exits with 0", async () => {
    const child = Child.node("server/main.ts", ["admin", "verify-audit-log"], env);
    expect(await child.exit(CLI_MS), child.stderr).to.deep.equal({ code: 0, signal: null });
    expect(child.stdout).to.match(
      new RegExp(`^${whole.length} entries of 1 chains checked against 1 anchors; 0 roots`),
    );
  });

  it("reads the anchors of logs from standard input, which may be a socket", async () => {
    const logged = { ...env, AUDIT_ANCHOR_FILE: "-" };
    const child = Child.node("server/main.ts", ["admin", "verify-audit-log"], logged, anchors);
    expect(await child.exit(CLI_MS), child.stderr).to.deep.equal({ code: 0, signal: null });
    expect(child.stdout).to.include("checked against 1 anchors");
  });

  it("names a broken entry, and exits with 1; of one organization alone, too", async () => {
    await log().updateOne({ _id: at(3)._id }, { $set: { action: "nothing" } });
    const child = Child.node("server/main.ts", ["admin", "verify-audit-log"], env);
    expect((await child.exit(CLI_MS)).code, child.stderr).to.equal(1);
    expect(child.stdout).to.include(`BROKEN ${organizationId}: entry 3 (changed)`);
    const unknown = await verifyAuditLog(env, { organization: "another" }).catch(String);
    expect(unknown).to.include("There is no organization another.");
    expect(await verifyAuditLog(env, { organization: "service" })).to.include({ unbroken: true, chains: 0 });
  });

  const places: readonly (readonly [string, () => number])[] = [
    ["first", () => 1],
    ["middle", () => Math.ceil(whole.length / 2)],
    ["last", () => whole.length],
  ];
  for (const [name, place] of someOrAll(places, 1)) {
    const attacks: readonly (readonly [string, ChainProblem, (sequence: number) => Promise<unknown>])[] = [
      [
        "a change of a field",
        "changed",
        (sequence) => log().updateOne({ _id: at(sequence)._id }, { $set: { "actor.id": "somebody" } }),
      ],
      [
        "a field more",
        "changed",
        (sequence) => log().updateOne({ _id: at(sequence)._id }, { $set: { note: "" } }),
      ],
      [
        "a change of the time to a text",
        "changed",
        (sequence) =>
          db
            .collection("audit_log")
            .updateOne({ hash: at(sequence).hash }, { $set: { at: at(sequence).at.toISOString() } }),
      ],
      [
        "a change under a hash made anew",
        "changed",
        async (sequence) => {
          const { at: when, hash: _hash, mac: _mac, _id, ...entry } = at(sequence);
          const head = { sequence: sequence - 1, hash: entry.previousHash };
          const forged = link({ ...recordIn(entry), at: when.getTime(), after: "forged" }, head, ownSeal());
          await log().replaceOne({ _id }, { ...forged, at: when });
        },
      ],
    ];
    for (const [attack, problem, carryOut] of attacks) {
      it(`finds ${attack} in the ${name} entry`, async () => {
        await carryOut(place());
        expect(await firstBroken()).to.deep.equal([place(), problem]);
      });
    }

    it(`finds that the ${name} entry was removed`, async () => {
      await log().deleteOne({ _id: at(place())._id });
      const isLast = place() === whole.length;
      expect(await firstBroken()).to.deep.equal([place(), isLast ? "cut_tail" : "removed"]);
    });

    it(`finds that one was inserted before the ${name} entry, in the place of all behind`, async () => {
      const from = place();
      await log().deleteMany({ _id: { $gte: at(from)._id } });
      const behind = whole.slice(from - 1);
      const moved = behind.map((entry, index) => ({
        ...entry,
        _id: placeAfter(at(from)._id, index + 1),
        sequence: entry.sequence + 1,
        entryKey: `${entry.entryKey}-moved`,
      }));
      await log().insertMany([{ ...at(from), entryKey: "invented", mac: "0".repeat(64) }, ...moved]);
      expect((await firstBroken())?.[0]).to.equal(from);
    });

    it(`finds that everything from the ${name} entry on was cut off`, async () => {
      await log().deleteMany({ _id: { $gte: at(place())._id } });
      expect(await firstBroken()).to.deep.equal([place(), "cut_tail"]);
    });
  }

  it("finds an entry that lies in no chain, and one that was put into another organization's", async () => {
    await log().insertOne({ ...at(2), _id: `${organizationId}/x`, entryKey: "elsewhere" });
    expect((await firstBroken())?.[1]).to.equal("inserted");
    await log().deleteOne({ _id: `${organizationId}/x` });
    await log().insertOne({
      ...at(1),
      _id: at(1)._id.replace(organizationId, "other"),
      entryKey: "elsewhere",
    });
    expect(await firstBroken()).to.deep.equal([1, "inserted"]);
  });

  it("finds an index of the log that is missing, or leaves entries out", async () => {
    const unique = { unique: true, name: "entry_key_unique" };
    await log().dropIndex(unique.name);
    expect(await verifyAuditLog(env)).to.deep.include({ unbroken: false, indexes: [unique.name] });
    const some = { ...unique, partialFilterExpression: { action: "signIn" } };
    await log().createIndex({ organizationId: 1, entryKey: 1 }, some);
    expect(await verifyAuditLog(env)).to.deep.include({ unbroken: false, indexes: [unique.name] });
    await log().dropIndex(unique.name);
    await createIndexes(db, AUDIT_INDEXES);
    expect(await verifyAuditLog(env)).to.deep.include({ unbroken: true, indexes: [] });
  });

  it("bears lines of the anchors' file that a crash tore, and goes on behind them", async () => {
    const [line = ""] = anchors.split("\n");
    const tornLines = [1, 20, line.indexOf("}") + 1, line.length - 1].map((length) => line.slice(0, length));
    await appendFile(anchorsPath, `${tornLines.join("\n")}\n`);
    const { anchorFile, anchors: met, unbroken } = await verifyAuditLog(env);
    expect([unbroken, anchorFile.tornLines, met]).to.deep.equal([true, [2, 3, 4, 5], 1]);
  });

  it("a line of the anchors' file that no crash leaves fails it", async () => {
    const [line = ""] = anchors.split("\n");
    const spoiled = ["nonsense", "{}", line.slice(1), line.replace('"heads"', '"heds"'), `${line}}`];
    await appendFile(anchorsPath, `${spoiled.join("\n")}\n`);
    const { anchorFile, unbroken } = await verifyAuditLog(env);
    expect([unbroken, anchorFile.unreadableLines]).to.deep.equal([false, [2, 3, 4, 5, 6]]);
  });

  it("a removed anchor shows once there is a later one, of the same run or of the next", async () => {
    const first = start();
    await tell("one");
    first.start(1_000);
    await until("an anchor at the start", async () => ((await lines()).length === 2 ? true : null));
    await tell("two");
    await first.stop();
    await tell("three");
    await start().stop();
    const written = await lines();
    expect(written).to.have.lengthOf(4);
    expect((await verifyAuditLog(env)).unbroken).to.equal(true);
    for (const gone of [0, 1, 2]) {
      await writeFile(anchorsPath, `${written.toSpliced(gone, 1).join("\n")}\n`);
      const { anchorFile, unbroken } = await verifyAuditLog(env);
      expect([unbroken, anchorFile.missingAnchors.length], `line ${gone + 1}`).to.deep.equal([false, 1]);
    }
  });

  it("what lies behind the last entry is not anchored", async () => {
    await tell("one");
    const planted = { ...at(1), _id: `${organizationId}/x`, entryKey: "planted", hash: "0".repeat(64) };
    await log().insertOne(planted);
    await start().stop();
    await log().deleteOne({ _id: planted._id });
    expect(await verifyAuditLog(env)).to.include({ unbroken: true, anchors: 2 });
  });

  it("reads lines from before they named each other", async () => {
    const heads = [{ organizationId, sequence: whole.length, hash: at(whole.length).hash }];
    const content = { version: 1, kind: "heads", at: new Date().toISOString(), heads };
    const root = seal.hash(canonicalJson(content));
    await writeFile(anchorsPath, `${JSON.stringify({ ...content, root, mac: seal.mac(root) })}\n`);
    expect(await verifyAuditLog(env)).to.include({ unbroken: true, anchors: 1 });
  });

  it("finds an anchor that was changed, or written without the service's key", async () => {
    const [line = ""] = anchors.split("\n");
    await writeFile(anchorsPath, anchors.replace(at(whole.length).hash, at(1).hash));
    expect((await verifyAuditLog(env)).anchorFile.forgedLines).to.deep.equal([1]);
    await writeFile(anchorsPath, `${line.replace(/"mac":"[0-9a-f]{8}/, '"mac":"00000000')}\n`);
    const { anchorFile, unbroken } = await verifyAuditLog(env);
    expect([unbroken, anchorFile.forgedLines]).to.deep.equal([false, [1]]);
  });

  it("without anchors fails, unless told that there are none: then it proves the links alone", async () => {
    const elsewhere = { ...env, AUDIT_ANCHOR_FILE: `${anchorsPath}.not-there` };
    const child = Child.node("server/main.ts", ["admin", "verify-audit-log"], elsewhere);
    expect((await child.exit(CLI_MS)).code, child.stderr).to.equal(1);
    expect(child.stdout).to.match(/^NO ANCHORS .*--without-anchors/);
    const flags = ["--without-anchors", "--json"];
    const told = Child.node("server/main.ts", ["admin", "verify-audit-log", ...flags], elsewhere);
    expect((await told.exit(CLI_MS)).code, told.stdout).to.equal(0);
    expect(JSON.parse(told.stdout)).to.include({ unbroken: true, anchors: 0 });
    const verdict = await verifyAuditLog(elsewhere, { withoutAnchors: true });
    expect(verdict).to.include({ unbroken: true, anchors: 0, entries: whole.length });
    await writeFile(anchorsPath, "");
    expect((await verifyAuditLog(env)).unbroken).to.equal(false);
  });

  it("finds that a whole chain is gone, anchored or not, but blames none from before the log", async () => {
    await log().deleteMany({});
    await writeFile(anchorsPath, "");
    const { unbroken, vanished } = await verifyAuditLog(env, { withoutAnchors: true });
    expect([unbroken, vanished]).to.deep.equal([false, [organizationId]]);
    const organizations = db.collection<{ _id: string }>("organizations");
    await organizations.updateOne({ _id: organizationId }, { $unset: { isAudited: "" } });
    const before = await verifyAuditLog(env, { withoutAnchors: true, organization: organizationId });
    await organizations.updateOne({ _id: organizationId }, { $set: { isAudited: true } });
    expect(before).to.deep.include({ unbroken: true, vanished: [] });
  });
});

/** Something of the service's own. */
const serviceRecord = { ...recordOf(1), organizationId: "service" };

/** What an entry is made of. */
const recordIn = ({
  version: _version,
  sequence: _sequence,
  previousHash: _previous,
  ...record
}: Omit<AuditDocument, "_id" | "at" | "hash" | "mac">) => record as Omit<Parameters<typeof link>[0], "at">;

const placeAfter = (id: string, by: number): string => {
  const [organizationId = "", digits = ""] = id.split("/");
  return `${organizationId}/${String(Number(digits) + by).padStart(digits.length, "0")}`;
};
