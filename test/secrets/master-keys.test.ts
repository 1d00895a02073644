import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Db } from "mongodb";
import { readConfig } from "../../server/config.ts";
import { AgentProofs, type FixedAgent } from "../../src/agents/agent-proofs.ts";
import { auditSeal } from "../../src/audit/chain/seal.ts";
import { type AuditEntry, link, NO_ENTRY } from "../../src/domain/audit/entry.ts";
import { ChainVerifier } from "../../src/domain/audit/verify.ts";
import { DeviceTokens } from "../../src/identity/device-token.ts";
import { RefreshTokens } from "../../src/identity/refresh-token.ts";
import { HmacPaymentProofs } from "../../src/payments/payment-proofs.ts";
import { apiKeyHashes } from "../../src/secrets/api-key-hash.ts";
import { loadMasterKey, outputOf } from "../../src/secrets/load-master-key.ts";
import { Orders } from "../../src/rails/challenge/orders.ts";
import { PocketKeys } from "../../src/rails/pocket/pocket-keys.ts";
import { MasterKey, MasterKeyError } from "../../src/secrets/master-key.ts";
import { SEALED_PLACES, type SealedPlace } from "../../src/secrets/places.ts";
import { renewAll, resealAll, resealing, retireKey } from "../../src/secrets/rotation.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { accessProofsOf } from "../support/access-proofs.ts";
import { recordOf, stored } from "../audit/tampering.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";

const NOW = new Date("2026-03-01T00:00:00.000Z");
const [OLD, NEW] = ["old", "new"].map((name) => `${name}-master-key-of-these-tests-0123456789`);

const keys = (...texts: readonly (string | undefined)[]): MasterKey =>
  MasterKey.parseAll(texts.join("\n"), "MASTER_KEYS");
const [old, both, alone] = [keys(OLD), keys(NEW, OLD), keys(NEW)];

const PAYER = { organizationId: "organization", agentId: "agent" };
const ORDER = {
  transactionId: "txn",
  approvalId: "apr",
  keyHash: "key",
  rail: "card",
  amountMc: 100_000,
  currency: "USD",
  recipient: "shop",
  merchantCategory: null,
  purpose: "Paper.",
} as const;
const AGENT: FixedAgent = {
  _id: "agent",
  organizationId: "organization",
  projectId: "project",
  teamId: "team",
  scopes: null,
  wallet: null,
  createdBy: { type: "user", id: "user" },
  createdByLineage: null,
  createdAt: NOW,
};

/** Values made under a master key, and their recognition under others. */
interface Kind {
  readonly what: string;
  readonly make: (by: MasterKey) => string;
  readonly isKnown: (by: MasterKey, made: string) => boolean;
}

const opens = (open: () => unknown): boolean => {
  try {
    return open() !== null;
  } catch {
    return false;
  }
};

const KINDS: readonly Kind[] = [
  {
    what: "a sealed value",
    make: (by) => new Sealer(by).seal("webhook-secret", "record", "secret"),
    isKnown: (by, made) => opens(() => new Sealer(by).open("webhook-secret", "record", made)),
  },
  {
    what: "a cursor",
    make: (by) => new Sealer(by.deriveKeys("cursor-sealing")).seal("cursor", "list", "place"),
    isKnown: (by, made) =>
      opens(() => new Sealer(by.deriveKeys("cursor-sealing")).open("cursor", "list", made)),
  },
  {
    what: "the hash of an API key",
    make: (by) => apiKeyHashes(by).make("value"),
    isKnown: (by, made) => apiKeyHashes(by).all("value").includes(made),
  },
  {
    what: "the hash of an invite's token",
    make: (by) => by.macs("invite-token").make("token"),
    isKnown: (by, made) => by.macs("invite-token").all("token").includes(made),
  },
  {
    what: "an agent's proof",
    make: (by) => new AgentProofs(by.macs("agent-proofs")).ofAgent(AGENT),
    isKnown: (by, proof) => new AgentProofs(by.macs("agent-proofs")).isAgentGenuine({ ...AGENT, proof }),
  },
  {
    what: "the proof of an agent's key",
    make: (by) => new AgentProofs(by.macs("agent-proofs")).ofKey("agent", { id: "key", hash: "hash" }),
    isKnown: (by, proof) =>
      new AgentProofs(by.macs("agent-proofs")).isKeyGenuine("agent", { id: "key", hash: "hash", proof }),
  },
  {
    what: "the proof of a person's record",
    make: (by) => accessProofsOf(by).make("user", { _id: "user" }),
    isKnown: (by, proof) => {
      const record = { _id: "user", proof };
      return accessProofsOf(by).isGenuine("user", record);
    },
  },
  {
    what: "the proof of a payment's order",
    make: (by) => new HmacPaymentProofs(by.macs("payment-proofs"), () => undefined).ofOrder(PAYER, ORDER),
    isKnown: (by, proof) =>
      new HmacPaymentProofs(by.macs("payment-proofs"), () => undefined).isAccepted(PAYER, {
        request: { ...ORDER, payloadHash: "payload", fingerprint: "like", proof },
        books: null,
        phase: "sending",
      }),
  },
  {
    what: "a refresh token",
    make: (by) => new RefreshTokens(by, randomBytes).issue(randomUUID()).token,
    isKnown: (by, made) => new RefreshTokens(by, randomBytes).read(made) !== null,
  },
  {
    what: "a device's token",
    make: (by) => new DeviceTokens(by, randomBytes).issue(randomUUID(), NOW),
    isKnown: (by, made) => new DeviceTokens(by, randomBytes).read(made, NOW) !== null,
  },
  {
    what: "the seal of an audit entry",
    make: (by) => auditSeal(by.deriveKeys("audit-log")).mac("hash"),
    isKnown: (by, made) => auditSeal(by.deriveKeys("audit-log")).sealingOf("hash", made) !== null,
  },
];

const ordersUnder = (db: Db, by: MasterKey) => new Orders(db, new Sealer(by), () => NOW, accessProofsOf(by));

const load = (env: NodeJS.ProcessEnv) =>
  loadMasterKey({ setting: readConfig(env, "localhost").masterKey, embeddedDataDir: null });

const sandbox = (by: MasterKey) => by.deriveFirst("chain-spender").export();
const pocketOf = (by: MasterKey) => new PocketKeys(by.deriveFirst("pocket-keys")).addressOf("agent");

describe("During a rotation of the master key", () => {
  for (const { isKnown, make, what } of KINDS) {
    it(`${what} stays good under both keys; a new one needs the newest`, () => {
      const [before, since] = [make(old), make(both)];
      expect([old, both, alone].map((by) => isKnown(by, before))).to.deep.equal([true, true, false]);
      expect([old, both, alone].map((by) => isKnown(by, since))).to.deep.equal([false, true, true]);
    });
  }

  it("a refresh token has one successor on servers of either order", () => {
    const [first, second] = [both, keys(OLD, NEW)].map((by) => new RefreshTokens(by, randomBytes));
    const presented = first?.read(new RefreshTokens(old, randomBytes).issue(randomUUID()).token);
    if (presented === null || presented === undefined) throw new Error("the token is good");
    const tokens = [first, second].map((each) => each?.successors(presented).map(({ token }) => token));
    expect(tokens[0]).to.deep.equal(tokens[1]?.toReversed());
  });
});

const errorOf = (work: Promise<unknown>): Promise<MasterKeyError> =>
  work.then(
    () => expect.fail("it was accepted"),
    (error: unknown) => (error instanceof MasterKeyError ? error : expect.fail(String(error))),
  );

describe("The settings of the master key", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "master-keys-"));
    await writeFile(join(folder, "one"), `${String(OLD)}\n`);
    await writeFile(join(folder, "two"), `${String(NEW)}\n${String(OLD)}\n`);
  });
  after(() => rm(folder, { recursive: true }));

  it("name one key or several, as text, as a file or as a command's output, the newest first", async () => {
    const settings: readonly (readonly [NodeJS.ProcessEnv, MasterKey])[] = [
      [{ MASTER_KEY: OLD }, old],
      [{ MASTER_KEY_FILE: join(folder, "one") }, old],
      [{ MASTER_KEYS: `${String(NEW)} ${String(OLD)}`, MASTER_KEY: "" }, both],
      [{ MASTER_KEYS_FILE: join(folder, "two") }, both],
      [{ MASTER_KEYS_COMMAND: `cat ${join(folder, "two")}` }, both],
    ];
    for (const [env, expected] of settings) expect((await load(env)).ids).to.deep.equal(expected.ids);
  });

  const misuses: readonly (readonly [what: string, env: NodeJS.ProcessEnv, message: RegExp])[] = [
    [
      "two of them",
      { MASTER_KEY: OLD, MASTER_KEYS_FILE: "x" },
      /^MASTER_KEY and MASTER_KEYS_FILE are both set; set one of them\.$/,
    ],
    [
      "a key twice",
      { MASTER_KEYS: `${String(OLD)} ${String(OLD)}` },
      /^MASTER_KEYS has the same key twice\.$/,
    ],
    [
      "a short key behind a good one",
      { MASTER_KEYS: `${String(OLD)} short` },
      /^MASTER_KEYS must be 32 to 1024/,
    ],
    [
      "a file that is not there",
      { MASTER_KEY_FILE: "/nowhere" },
      /^MASTER_KEY_FILE: \/nowhere can't be read \(ENOENT\)\.$/,
    ],
    [
      "a command that fails",
      { MASTER_KEYS_COMMAND: `echo ${String(OLD)}; echo no rights >&2; exit 3` },
      /^MASTER_KEYS_COMMAND failed \(exit code 3\): no rights$/,
    ],
    [
      "a command that prints no key",
      { MASTER_KEYS_COMMAND: "true" },
      /^the output of MASTER_KEYS_COMMAND must be/,
    ],
  ];
  for (const [what, env, message] of misuses) {
    it(`refuse ${what} in one line without a key`, async () => {
      const error = await errorOf(Promise.resolve().then(() => load(env)));
      expect(error.message).to.match(message).and.not.include(String(OLD));
    });
  }

  it("end a command that hangs, with what it has started", async () => {
    const error = await errorOf(outputOf("echo waiting >&2; sleep 60; true", 200));
    expect(error.message).to.equal("MASTER_KEYS_COMMAND failed (no end within 0.2 s): waiting");
  });
});

/** A document of a place with a sealed value, as the service writes it. */
function sealedIn({ boundTo, path, purpose }: SealedPlace, by: MasterKey, _id: string, text: string) {
  const fields: Record<string, unknown> = {};
  const put = (at: string, value: string): void => {
    const [outer = "", inner] = at.split(".");
    fields[outer] = inner === undefined ? value : { ...Object(fields[outer]), [inner]: value };
  };
  for (const each of boundTo) put(each, _id);
  put(path, new Sealer(by).seal(purpose, boundTo.map(() => _id).join("/"), text));
  return { ...fields, _id };
}

const webhookSecrets = (): SealedPlace => {
  const found = SEALED_PLACES.find(({ path }) => path === "secret.sealed");
  return found ?? expect.fail("webhooks have secrets");
};

describe("The rotation of what is stored", () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase();
  });
  afterEach(() => database.close());

  const collectionOf = ({ collection }: SealedPlace) => database.db.collection<{ _id: string }>(collection);
  const quiet = { onProgress: () => undefined };

  /** Values that the newest key alone opens. */
  async function openedIn(place: SealedPlace): Promise<number> {
    const { find, renew } = resealing(database.db, alone, place);
    let opened = 0;
    for await (const document of find({})) if (renew(document) !== null) opened += 1;
    return opened;
  }

  for (const place of SEALED_PLACES) {
    it(`leaves ${place.collection}.${place.path} to the newest key alone`, async () => {
      await collectionOf(place).insertOne(sealedIn(place, old, "record", "secret"));
      await resealAll(database.db, both, quiet);
      expect(await openedIn(place)).to.equal(1);
    });
  }

  it("goes on where it was ended, and changes nothing once it is through", async () => {
    const place = webhookSecrets();
    const count = 1_000;
    const sealed = Array.from({ length: count }, (_none, index) =>
      sealedIn(place, old, `endpoint-${String(index)}`, "secret"),
    );
    await collectionOf(place).insertMany(sealed);
    const kill = new AbortController();
    const ended: unknown = await resealAll(database.db, both, {
      onProgress: () => kill.abort(),
      signal: kill.signal,
    }).catch((error: unknown) => error);
    expect(ended).to.equal(kill.signal.reason);
    const done = await openedIn(place);
    expect(done).to.be.within(1, count - 1);
    const rotated = async () => {
      const results = await resealAll(database.db, both, quiet);
      return results.reduce((sum, each) => sum + each.rotated, 0);
    };
    expect([await rotated(), await rotated()]).to.deep.equal([count - done, 0]);
    expect(await openedIn(place)).to.equal(count);
  });

  it("overwrites nothing that the service changes meanwhile", async () => {
    const place = webhookSecrets();
    await collectionOf(place).insertOne(sealedIn(place, old, "endpoint", "secret"));
    const renewing = resealing(database.db, both, place);
    const { _id, ...changed } = sealedIn(place, both, "endpoint", "changed");
    const disturbed = {
      ...renewing,
      async *find(filter: object) {
        for await (const document of renewing.find(filter)) {
          yield document;
          await collectionOf(place).updateOne({ _id }, { $set: changed });
        }
      },
    };
    expect((await renewAll(database.db, both, disturbed, quiet)).rotated).to.equal(0);
    expect(await collectionOf(place).findOne({ _id })).to.deep.equal({ _id, ...changed });
  });

  it("counts what no key opens and leaves it alone", async () => {
    const place = webhookSecrets();
    const { _id: _one, ...moved } = sealedIn(place, old, "one", "secret");
    await collectionOf(place).insertOne({ ...moved, _id: "another" });
    await collectionOf(place).updateOne({ _id: "another" }, { $set: { "secret.id": "another" } });
    const results = await resealAll(database.db, both, quiet);
    expect(results.map(({ rotated, unreadable }) => rotated + unreadable)).to.include(1);
    expect(results.every(({ rotated }) => rotated === 0)).to.equal(true);
  });

  it("is asked for in one line where a key was removed too early, with what needs it", async () => {
    const { db } = database;
    await verifyMasterKey(db, old);
    await collectionOf(webhookSecrets()).insertOne(sealedIn(webhookSecrets(), old, "endpoint", "secret"));
    await verifyMasterKey(db, both);
    const [id] = old.ids;
    const { message } = await errorOf(verifyMasterKey(db, alone));
    expect(message).to.equal(
      `MASTER_KEYS lacks the master key ${String(id)}, which is needed by 1 webhook secrets; add it.`,
    );
    await resealAll(db, both, quiet);
    expect((await errorOf(verifyMasterKey(db, alone))).message).to.include("rotate-master-key");
    await retireKey(db, both, String(id), NOW);
    await verifyMasterKey(db, alone);
    expect((await errorOf(verifyMasterKey(db, keys(OLD, NEW)))).message).to.include("is retired");
  });

  it("a purchase outlives the key under which its order and its answer were sealed", async () => {
    const request = { url: "https://shop.example/", method: "GET", headers: {}, body: null };
    const frame = { protocol: "x402/1", scheme: "exact", network: "base" } as const;
    const offer = { frame, nonce: null, timeoutSeconds: 60, units: "1" };
    await ordersUnder(database.db, old).insert("agent", "txn", { request, offer }, NOW);
    const answer = {
      httpStatus: 200,
      headers: {},
      body: "goods",
      bodyEncoding: "utf8",
      isCut: false,
    } as const;
    await ordersUnder(database.db, old).keep("txn", answer);
    const known = async (by: MasterKey) => {
      const orders = ordersUnder(database.db, by);
      return [(await orders.of("txn"))?.order?.offer.units, (await orders.answerOf("txn"))?.body];
    };
    expect(await known(both)).to.deep.equal(["1", "goods"]);
    expect(await known(alone)).to.deep.equal([undefined, undefined]);
  });

  it("a key that was added behind the newest is not asked for by processes that lack it", async () => {
    await verifyMasterKey(database.db, old);
    await verifyMasterKey(database.db, keys(OLD, NEW));
    await verifyMasterKey(database.db, old);
  });

  it("a retired key verifies the log of its time, and seals nothing more", async () => {
    const { db } = database;
    await verifyMasterKey(db, old);
    await verifyMasterKey(db, both);
    const underOld = auditSeal(old.deriveKeys("audit-log"));
    const underNew = auditSeal(both.deriveKeys("audit-log"));
    const first = link(recordOf(1), NO_ENTRY, underOld);
    await retireKey(db, both, String(old.ids[0]), new Date(first.at + 500));
    const successor = keys(NEW);
    await verifyMasterKey(db, successor);
    const breakIn = (entries: readonly AuditEntry[]) => {
      const verifier = new ChainVerifier(auditSeal(successor.deriveKeys("audit-log")));
      for (const entry of entries) verifier.take({ position: entry.sequence, fields: stored(entry) });
      return verifier.end()?.problem ?? null;
    };
    const second = link(recordOf(2), first, underNew);
    expect(breakIn([first, second])).to.equal(null);
    expect(breakIn([first, link(recordOf(2), first, underOld)]), "too late").to.equal("changed");
    const backdated = link({ ...recordOf(3), at: first.at }, second, underOld);
    expect(breakIn([first, second, backdated]), "dated back").to.equal("inserted");
    expect(sandbox(successor).equals(sandbox(old)), "the sandbox's key").to.equal(true);
    expect(pocketOf(successor), "an agent's pocket").to.equal(pocketOf(old));
  });
});
