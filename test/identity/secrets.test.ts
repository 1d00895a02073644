import { randomBytes, randomUUID } from "node:crypto";
import {
  chmod,
  link,
  mkdtemp,
  open as openFile,
  readdir,
  readFile,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect } from "chai";
import { DeliveryKeyFiles } from "../../src/agents/key-deliveries/delivery-keys.ts";
import { loadMasterKey } from "../../src/secrets/load-master-key.ts";
import { MasterKey, MasterKeyError } from "../../src/secrets/master-key.ts";
import { Sealer, SealError } from "../../src/secrets/sealer.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { atOnce, masterKeyOf } from "./support.ts";

const RAW = "a-raw-master-key-that-nobody-may-see-0123456789";

async function errorOf(run: Promise<unknown>): Promise<MasterKeyError> {
  const error: unknown = await run.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof MasterKeyError)) throw new Error("There was no MasterKeyError.");
  expect(error.message).not.to.include("\n");
  expect(inspect(error)).not.to.include(RAW);
  return error;
}

/** Whether two keys derive the same. */
const derived = (key: MasterKey): string => key.deriveKey("sealing").export().toString("hex");

describe("The master key", () => {
  let directory = "";
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "master-key-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it("comes from MASTER_KEY before anything else, and then leaves no file", async () => {
    const key = await loadMasterKey({
      setting: { name: "MASTER_KEY", value: RAW },
      embeddedDataDir: directory,
    });
    expect(key.source).to.equal("MASTER_KEY");
    expect(await readdir(directory)).to.deep.equal([]);
  });

  it("is made on the first embedded start, readable by its owner alone, and the same on the next", async () => {
    const source = { setting: null, embeddedDataDir: join(directory, "new") };
    const first = await loadMasterKey(source);
    const path = join(directory, "new", "master.key");
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
    expect(await readdir(join(directory, "new"))).to.deep.equal(["master.key"]);
    expect(derived(await loadMasterKey(source))).to.equal(derived(first));
    const text = await readFile(path, "utf8");
    expect(
      derived(await loadMasterKey({ setting: { name: "MASTER_KEY", value: text }, embeddedDataDir: null })),
    ).to.equal(derived(first));
  });

  it("is one key when ten starts make it at once", async () => {
    const keys = await atOnce(10, () => loadMasterKey({ setting: null, embeddedDataDir: directory }));
    expect(new Set(keys.map(derived)).size).to.equal(1);
    expect(await readdir(directory)).to.deep.equal(["master.key"]);
  });

  it("drafts of keys that a kill left are destroyed at the next start, others' fresh ones stay", async () => {
    const left = [".master.key.0123456789ab.tmp", ".agent.ba9876543210.tmp"];
    const fresh = ".master.key.00ff00ff00ff.tmp";
    const kept = ["master.key.bak", ".master.key.tmp", fresh];
    for (const name of [...left, ...kept]) await writeFile(join(directory, name), RAW);
    const past = new Date(Date.now() - 61_000);
    for (const name of [...left, "master.key.bak"]) await utimes(join(directory, name), past, past);
    await loadMasterKey({ setting: null, embeddedDataDir: directory });
    const [, other = ""] = left;
    expect(await readdir(directory)).to.have.members([...kept, other, "master.key"]);
    await DeliveryKeyFiles.in(directory);
    expect(await readdir(directory)).to.have.members([...kept, "master.key"]);
  });

  it("a draft that a kill left is overwritten before it is removed: its bytes outlive its name", async () => {
    const draft = join(directory, ".agent.0123456789ab.tmp");
    await writeFile(draft, RAW);
    const past = new Date(Date.now() - 61_000);
    await utimes(draft, past, past);
    // As a disk keeps what no name leads to any more.
    const left = await openFile(draft, "r");
    try {
      await DeliveryKeyFiles.in(directory);
      expect(await readdir(directory)).to.deep.equal([]);
      expect([...new Set(await left.readFile())]).to.deep.equal([0]);
    } finally {
      await left.close();
    }
  });

  it("a key whose draft was linked into place before a kill outlives the draft, byte for byte", async () => {
    const made = await loadMasterKey({ setting: null, embeddedDataDir: directory });
    const [key, draft] = [join(directory, "master.key"), join(directory, ".master.key.0123456789ab.tmp")];
    await link(key, draft);
    const past = new Date(Date.now() - 61_000);
    await utimes(draft, past, past);
    const again = await loadMasterKey({ setting: null, embeddedDataDir: directory });
    expect(derived(again)).to.equal(derived(made));
    expect(await readdir(directory)).to.deep.equal(["master.key"]);
  });

  it("a draft too young at the start after its kill goes with the next key that is destroyed", async () => {
    const keys = await DeliveryKeyFiles.in(directory);
    const draft = join(directory, `.${randomUUID()}.0123456789ab.tmp`);
    await writeFile(draft, RAW);
    await DeliveryKeyFiles.in(directory);
    expect(await readdir(directory)).to.have.lengthOf(1);
    const past = new Date(Date.now() - 61_000);
    await utimes(draft, past, past);
    await keys.destroy(randomUUID());
    expect(await readdir(directory)).to.deep.equal([]);
  });

  it("is closed to others again when a restored file is open to them", async () => {
    const path = join(directory, "master.key");
    await writeFile(path, RAW);
    await chmod(path, 0o644);
    await loadMasterKey({ setting: null, embeddedDataDir: directory });
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
  });

  it("is required, in one line, where nothing is embedded", async () => {
    const error = await errorOf(loadMasterKey({ setting: null, embeddedDataDir: null }));
    expect(error.code).to.equal("MASTER_KEY_MISSING");
    expect(error.message).to.include("MASTER_KEY is not set");
  });

  it("is refused, without being repeated, when it is too short, too long or not plain text", async () => {
    for (const bad of ["short-secret", `${RAW} ${RAW}`, `${RAW}é`, RAW.repeat(30)]) {
      const error = await errorOf(
        loadMasterKey({ setting: { name: "MASTER_KEY", value: bad }, embeddedDataDir: null }),
      );
      expect(error.code).to.equal("MASTER_KEY_MALFORMED");
      expect(error.message).not.to.include(bad);
    }
    await writeFile(join(directory, "master.key"), "");
    const error = await errorOf(loadMasterKey({ setting: null, embeddedDataDir: directory }));
    expect(error.code).to.equal("MASTER_KEY_MALFORMED");
  });

  it("is refused, in words, when it has too few different characters to be a random one", async () => {
    for (const bad of ["a".repeat(32), "abc123".repeat(20), "password-".repeat(9)]) {
      const error = await errorOf(
        loadMasterKey({ setting: { name: "MASTER_KEY", value: bad }, embeddedDataDir: null }),
      );
      expect([error.code, error.message.includes(bad)]).to.deep.equal(["MASTER_KEY_MALFORMED", false]);
      expect(error.message).to.include("fewer than 10 different characters");
    }
    MasterKey.parse("0123456789".repeat(4), "MASTER_KEY");
  });

  it("says in one line that its file can't be read", async () => {
    await writeFile(join(directory, "file"), "");
    const error = await errorOf(loadMasterKey({ setting: null, embeddedDataDir: join(directory, "file") }));
    expect(error.code).to.equal("MASTER_KEY_UNREADABLE");
  });

  it("shows nothing of itself when it, its sub-keys or a sealer are printed or serialized", () => {
    const key = MasterKey.parse(RAW, "MASTER_KEY");
    const holder = { key, sub: key.deriveKey("sealing"), sealer: new Sealer(key) };
    const shown = [
      `${key.toString()} ${JSON.stringify(holder)}`,
      inspect(holder, { depth: 9, showHidden: true }),
    ].join("\n");
    expect(shown).not.to.include(RAW);
    expect(shown).not.to.include(holder.sub.export().toString("hex").slice(0, 8));
    expect(JSON.stringify({ key })).to.equal('{"key":"[master key]"}');
  });

  it("derives another key for each purpose", () => {
    const key = masterKeyOf("k");
    const purposes = ["api-key-pepper", "sealing", "cursor-sealing", "refresh-token", "check-value"] as const;
    const keys = purposes.map((purpose) => key.deriveKey(purpose).export().toString("hex"));
    expect(new Set(keys).size).to.equal(purposes.length);
    for (const each of keys) expect(each).to.have.length(64);
  });
});

describe("The master key's check value", () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase();
  });
  afterEach(() => database.close());

  it("lets the first key in, the same again, and refuses another with one clear line", async () => {
    await verifyMasterKey(database.db, masterKeyOf("a"));
    await verifyMasterKey(database.db, masterKeyOf("a"));
    const error = await errorOf(verifyMasterKey(database.db, masterKeyOf("b")));
    expect(error.code).to.equal("MASTER_KEY_MISMATCH");
    expect(error.message).to.match(/^The master key from MASTER_KEY is not the one/);
    await verifyMasterKey(database.db, masterKeyOf("a"));
  });

  it("lets one of two different keys win when both start first at once", async () => {
    const results = await Promise.allSettled(
      ["a", "b"].map((letter) => verifyMasterKey(database.db, masterKeyOf(letter))),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).to.have.length(1);
  });
});

describe("A sealed value", () => {
  const sealer = new Sealer(masterKeyOf("a"));
  const sealed = sealer.seal("totp-secret", "record-1", "the secret ünïcode");

  it("opens for its own purpose and record", () => {
    expect(sealed).to.match(/^[0-9a-f]{8}\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]+$/);
    expect(sealer.open("totp-secret", "record-1", sealed)).to.equal("the secret ünïcode");
    expect(sealer.open("cursor", "r", sealer.seal("cursor", "r", ""))).to.equal("");
  });

  it("never looks the same twice", () => {
    expect(sealer.seal("totp-secret", "record-1", "x")).not.to.equal(
      sealer.seal("totp-secret", "record-1", "x"),
    );
  });

  const altered = sealed.slice(0, 30) + (sealed.charAt(30) === "A" ? "B" : "A") + sealed.slice(31);
  const attempts: readonly (readonly [why: string, open: () => string])[] = [
    ["for another record", () => sealer.open("totp-secret", "record-2", sealed)],
    ["for another purpose", () => sealer.open("session-signing-key", "record-1", sealed)],
    ["with another master key", () => new Sealer(masterKeyOf("b")).open("totp-secret", "record-1", sealed)],
    ["with one character altered", () => sealer.open("totp-secret", "record-1", altered)],
    ["cut short", () => sealer.open("totp-secret", "record-1", sealed.slice(0, -4))],
    [
      "of a key that is not there",
      () => sealer.open("totp-secret", "record-1", `00000000${sealed.slice(8)}`),
    ],
    ["that is no sealed value", () => sealer.open("totp-secret", "record-1", "the secret")],
    [
      "of random bytes",
      () =>
        sealer.open(
          "cursor",
          "r",
          `${sealed.slice(0, 8)}.${randomBytes(12).toString("base64url")}.${"A".repeat(40)}`,
        ),
    ],
  ];
  for (const [why, open] of attempts) {
    it(`does not open ${why}, and the error says nothing of it`, () => {
      expect(open).to.throw(SealError);
      expect(open).not.to.throw(/the secret|record-1|[A-Za-z0-9_-]{16}\./);
    });
  }
});
