import { expect } from "chai";
import type { Document } from "mongodb";
import { verifyAuditLog } from "../../server/admin/verify-audit-log.ts";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { AUDIT_LOG, type AuditDocument, entryId } from "../../src/store/audit-documents.ts";
import { someOrAll } from "../support/soak.ts";
import { newWorld, until, type World } from "../support/world.ts";
import { type Entry, LogReader } from "./log-reader.ts";
import { entriesOf, testSeal } from "./support.ts";
import { recordOf, times } from "./tampering.ts";

/** A document with a field more than once, which no driver writes by itself: MongoDB filters by the first one. */
class Repeating extends Map<string, unknown> {
  readonly #fields: readonly (readonly [string, unknown])[];

  constructor(fields: readonly (readonly [string, unknown])[]) {
    super(fields);
    this.#fields = fields;
  }

  override *entries(): MapIterator<[string, unknown]> {
    for (const [name, value] of this.#fields) yield [name, value];
    return undefined;
  }
}

const FORGED = { action: "forged", result: { status: 200, code: null } } as const;

const sequencesOf = (entries: readonly Entry[]) => entries.map(({ sequence }) => sequence);

describe("what is put into the audit log by access to MongoDB alone", () => {
  let world: World;
  let other: World;
  let log: LogReader;
  let transactionId: string;
  let whole: readonly AuditDocument[];

  before(async () => {
    world = await newWorld();
    other = await newWorld(world.service);
    log = new LogReader(world);
    const agent = await world.agent();
    transactionId = (await agent.pay()).transaction.id;
    whole = await until("the payment's decision", async () => {
      const entries = await entriesOf(world.service.db, own());
      return entries.some(({ resource }) => resource.id === transactionId) ? entries : null;
    });
  });
  afterEach(async () => {
    await collection().deleteMany({ entryKey: /^forged/ });
    for (const entry of whole) await collection().replaceOne({ _id: entry._id }, entry, { upsert: true });
    expect(await verdict()).to.deep.equal({ rest: null, command: null });
  });

  const own = (): string => world.organization.organizationId;
  const collection = () => world.service.db.collection<Document & { readonly _id: string }>(AUDIT_LOG);
  const at = (sequence: number): AuditDocument => {
    const entry = whole[sequence - 1];
    if (entry === undefined) throw new Error(`there is no entry ${String(sequence)}`);
    return entry;
  };
  const plant = (document: Document & { readonly _id: string }) =>
    collection().insertOne({ ...at(2), ...FORGED, entryKey: "forged", ...document });

  /** What both verifications of the organization find. */
  async function verdict() {
    const { env } = world.service;
    const { broken } = await verifyAuditLog(env, { organization: own(), withoutAnchors: true });
    return { rest: await brokenOverRest(), command: broken[0]?.broken?.problem ?? null };
  }

  async function brokenOverRest(): Promise<string | null> {
    for (let after = 0; ;) {
      const query = { after: String(after) };
      const found = await world.api.ok("verifyAuditLog", 200, { token: world.token, query });
      if (found.broken !== null || found.verifiedTo >= found.lastSequence)
        return found.broken?.problem ?? null;
      after = found.verifiedTo;
    }
  }

  async function listed(): Promise<Entry[]> {
    const entries: Entry[] = [];
    let cursor: string | null = null;
    do {
      const page = await log.list({ limit: "3", ...(cursor === null ? {} : { cursor }) });
      entries.push(...page.entries);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return entries.toReversed();
  }

  const all = () => times(whole.length, (index) => index + 1);

  const OUTSIDE: Readonly<Record<string, () => Promise<unknown>>> = {
    "under an id of no chain": () => plant({ _id: "elsewhere" }),
    "as a copy that is genuine but for its id": () =>
      plant({ ...at(2), _id: "elsewhere", entryKey: "forged" }),
    "in another organization's chain": () => plant({ _id: entryId(other.organization.organizationId, 900) }),
    "for several organizations": () => plant({ _id: "elsewhere", organizationId: [own()] }),
    "without a time": () => plant({ _id: "elsewhere", at: "never" }),
    "from another organization's log": async () => {
      const [foreign] = await entriesOf(world.service.db, other.organization.organizationId);
      await plant({ ...foreign, _id: "elsewhere", organizationId: own(), entryKey: "forged" });
    },
  };
  for (const [how, attack] of someOrAll(Object.entries(OUTSIDE), 2))
    it(`${how}, is not listed, and both verifications find it`, async () => {
      await attack();
      expect(sequencesOf(await listed())).to.deep.equal(all());
      expect(await verdict()).to.deep.equal({ rest: "inserted", command: "inserted" });
    });

  const INSIDE: Readonly<Record<string, () => Promise<unknown>>> = {
    "before the first entry": () => plant({ _id: `${own()}/!` }),
    "between two entries": () => plant({ _id: `${entryId(own(), 2)}5` }),
    "behind the last entry": () => plant({ _id: entryId(own(), whole.length + 1) }),
    "far behind the last entry": () => plant({ _id: entryId(own(), 999_999_999_999_999) }),
    "as a false end": () => plant({ _id: `${own()}/x`, sequence: 1 }),
  };
  for (const [how, attack] of someOrAll(Object.entries(INSIDE), 2))
    it(`${how}, is not listed or exported, and both verifications find it`, async () => {
      await attack();
      expect(sequencesOf(await listed())).to.deep.equal(all());
      expect(sequencesOf(await log.exported())).to.deep.equal(all());
      const { command, rest } = await verdict();
      expect([rest, command]).not.to.include(null);
    });

  it("an entry that was changed is not shown, and both verifications find it", async () => {
    await collection().updateOne({ _id: at(2)._id }, { $set: FORGED });
    expect(sequencesOf(await listed())).not.to.include(2);
    expect(sequencesOf(await log.exported())).not.to.include(2);
    expect(await verdict()).to.deep.equal({ rest: "changed", command: "changed" });
  });

  it("an entry with a second value for filters is found by both verifications", async () => {
    const fields = Object.entries(at(2));
    const twice = new Repeating([...fields.slice(0, 1), ["action", "hidden"], ...fields.slice(1)]);
    await collection().deleteOne({ _id: at(2)._id });
    await world.service.db.command({ insert: AUDIT_LOG, documents: [twice] });
    expect((await log.list({ action: at(2).action })).entries.map(({ sequence }) => sequence)).not.to.include(
      2,
    );
    expect(await verdict()).to.deep.equal({ rest: "changed", command: "changed" });
  });

  it("a payment's story has no entry and no decision that was not written by the service", async () => {
    const story = () => world.api.ok("getTransactionStory", 200, { token: world.token, id: transactionId });
    const before = await story();
    expect(before.decision).to.deep.include({ outcome: "approved" });
    await plant({ _id: "elsewhere", resource: { type: "transaction", id: transactionId } });
    expect(await story()).to.deep.equal(before);
    const decided = { entryKey: `${transactionId}/decided` };
    await collection().updateOne(decided, { $set: { "decision.outcome": "held" } });
    expect(await story()).to.deep.include({ decision: null, auditEntries: [] });
  });

  it("a document behind the last entry that is in no place does not keep the chain from going on", async () => {
    await plant({ _id: `${own()}/x`, sequence: undefined });
    const appender = new AuditAppender(world.service.db, testSeal(String(world.service.env["MASTER_KEY"])));
    await appender.append({ ...recordOf(1), organizationId: own(), entryKey: "genuine" });
    await collection().deleteOne({ _id: `${own()}/x` });
    whole = await entriesOf(world.service.db, own());
    expect(whole.at(-1)).to.include({ entryKey: "genuine", sequence: whole.length });
  });
});
