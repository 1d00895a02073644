import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { OAuthRecords, RecordsAdapter } from "../../server/oauth/records.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { oauthRecordsOf } from "../../src/store/oauth-documents.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";

const KEYS = ["first-Key-0123456789abcdefghijklmnopq", "second-Key-0123456789abcdefghijklmno"] as const;

const onReplay = (): never => {
  throw new Error("replayed");
};

const newId = (): string => randomBytes(32).toString("base64url");

describe("records of OAuth", () => {
  let mongo: TestDatabase;
  const clock = (): Date => now;
  let now: Date;
  const forged: string[] = [];
  before(async () => {
    mongo = await testDatabase();
  });
  after(() => mongo?.close());
  beforeEach(() => {
    now = new Date();
  });

  function adapterOf(kind: string, keys: readonly string[] = [KEYS[0]]): RecordsAdapter {
    const masterKey = MasterKey.parseAll(keys.join(" "), "a test");
    const macs = masterKey.macs("oauth-records");
    const records = new OAuthRecords({
      db: mongo.db,
      macs,
      sealer: new Sealer(masterKey),
      clock,
      onForged: (id) => forged.push(id),
    });
    return new RecordsAdapter(kind, records, clock, onReplay, (grantId) => records.removeOfGrant(grantId));
  }
  const payload = { kind: "x", grantId: "a grant", accountId: "agent/akey_1" };

  it("a used refresh token stays good for 30 seconds after its first use, and no longer", async () => {
    const adapter = adapterOf("RefreshToken");
    const id = newId();
    await adapter.upsert(id, payload, 3_600);
    await adapter.consume(id);
    now = new Date(now.getTime() + 29_999);
    expect(await adapter.find(id)).to.deep.equal(payload);
    await adapter.consume(id);
    now = new Date(now.getTime() + 1);
    expect(await adapter.find(id)).to.have.property("consumed");
  });

  it("a used code is used at once, and is given to one of all who use it", async () => {
    const adapter = adapterOf("AuthorizationCode");
    const id = newId();
    await adapter.upsert(id, payload, 60);
    const uses = await Promise.allSettled([1, 2, 3].map(() => adapter.consume(id)));
    expect(uses.filter(({ status }) => status === "fulfilled")).to.have.length(1);
    expect(await adapter.find(id)).to.have.property("consumed");
  });

  it("a record is gone at its end, whenever MongoDB removes it", async () => {
    const adapter = adapterOf("AccessToken");
    const id = newId();
    await adapter.upsert(id, payload, 60);
    now = new Date(now.getTime() + 60_000);
    expect(await adapter.find(id)).to.equal(undefined);
  });

  it("a record moves to the newest master key when it is used; without its key it is none", async () => {
    const id = newId();
    await adapterOf("Grant").upsert(id, payload, 60);
    expect(await adapterOf("Grant", [KEYS[1]]).find(id)).to.equal(undefined);
    expect(await adapterOf("Grant", [KEYS[1], KEYS[0]]).find(id)).to.deep.equal(payload);
    expect(await adapterOf("Grant", [KEYS[1]]).find(id)).to.deep.equal(payload);
    expect(await adapterOf("Grant").find(id)).to.equal(undefined);
  });

  it("what was written into the database, or moved in it, is no record", async () => {
    const [mine, theirs] = [newId(), newId()];
    const adapter = adapterOf("AccessToken");
    for (const id of [mine, theirs]) await adapter.upsert(id, payload, 60);
    const records = oauthRecordsOf(mongo.db);
    const [first, second] = await records.find().sort({ $natural: -1 }).limit(2).toArray();
    await records.updateOne({ _id: first?._id ?? "" }, { $set: { sealed: second?.sealed ?? "" } });
    const found = await Promise.all([mine, theirs].map((id) => adapter.find(id)));
    expect(found.filter((each) => each === undefined)).to.have.length(1);
    expect(forged).to.deep.equal([first?._id]);
  });
});
