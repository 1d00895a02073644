import { createSecretKey, hkdfSync, randomUUID } from "node:crypto";
import { link, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { loadMasterKey } from "../../src/secrets/load-master-key.ts";
import type { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer, SealError } from "../../src/secrets/sealer.ts";
import { agentWorkflowId } from "../../src/messages/agent.ts";
import { until } from "../support/process.ts";
import { agentIn, type Creator, LifeStage } from "./support/life-stage.ts";
import { deliveryOf } from "./support/one-agent.ts";
import { formsOf, type Kind, tracesOf } from "./support/traces.ts";

const WINDOW_SECONDS = 20;
const CLOSED_MS = 150_000;
const PREFIX_CHARACTERS = "sk_svc_live_".length;
const MACHINES_AGENTS = 3;

/** Everything about an agent that a test knows, also what is to be forgotten. */
interface Known {
  readonly id: string;
  readonly name: string;
  readonly apiKey: string;
  /** The stored HMAC of the key. */
  readonly hash: string;
}

interface Delivered extends Known {
  readonly idempotencyKey: string;
  readonly sealed: string;
  readonly deliveryKey: Buffer;
}

/** What the service seals a first key under: written out, so that the test does not believe the code under test. */
function sealingKeys(masterKey: MasterKey, deliveryKey: Buffer, idempotencyKey: string) {
  const salt = masterKey.deriveKey("key-delivery").export();
  const key = createSecretKey(Buffer.from(hkdfSync("sha256", deliveryKey, salt, idempotencyKey, 32)));
  return [{ id: masterKey.newestId, key, retiredAt: null }];
}

const open = (masterKey: MasterKey, deliveryKey: Buffer, { id, idempotencyKey, sealed }: Delivered): string =>
  new Sealer(sealingKeys(masterKey, deliveryKey, idempotencyKey)).open("first-agent-key", id, sealed);

/** The random part alone: a database's compression may have put the prefix, which repeats, somewhere else. */
const randomPart = ({ apiKey }: Known): Buffer => Buffer.from(apiKey.slice(PREFIX_CHARACTERS));

/** All bytes in a message, whatever they are the field of, and its texts. */
function* contentsOf(message: unknown): Generator<string> {
  if (typeof message === "string") yield message;
  else if (message instanceof Uint8Array) yield Buffer.from(message).toString("latin1");
  else if (typeof message === "object" && message !== null)
    for (const part of Object.values(message)) yield* contentsOf(part);
}

const named = (creator: Creator) => ({ ...agentIn(creator), name: `marker-${randomUUID()}` });

function nowhere(where: (value: string) => readonly Kind[], values: readonly string[]): void {
  expect([...new Set(values.flatMap(where))]).to.deep.equal([]);
}

describe("Agents' keys, on the disk of a service that runs, and after", () => {
  let stage: LifeStage;
  let masterKey: MasterKey;
  let delivered: readonly Delivered[];
  let others: readonly Known[];
  let links: string;

  const keys = (): readonly Known[] => [...delivered, ...others];

  async function known(id: string, apiKey: string | null): Promise<Known> {
    const agent = await stage.db.collection<AgentDocument>(COLLECTIONS.agents).findOne({ _id: id });
    if (apiKey === null || agent?.key === null || agent === null) throw new Error("the agent has no key");
    return { id, name: agent.name, apiKey, hash: agent.key.hash };
  }

  async function byMachine(): Promise<Delivered> {
    const creator = await stage.machine();
    const idempotencyKey = `retry-${randomUUID()}`;
    const create = { token: creator.token, body: { ...named(creator), idempotencyKey } };
    const { agent, apiKey } = await stage.api.ok("createAgent", 201, create);
    // Delivered once more, and used.
    expect((await stage.api.ok("createAgent", 200, create)).apiKey).to.equal(apiKey);
    await stage.api.ok("listPayments", 200, { token: apiKey ?? "" });
    const sealed = (await deliveryOf(stage, agent.id))?.sealed ?? "";
    const file = join(stage.service.dataDir, "key-delivery", agent.id);
    const deliveryKey = await readFile(file);
    // Another name for the same bytes on the disk: it shows what becomes of them when the first one is gone.
    await link(file, join(links, agent.id));
    return { ...(await known(agent.id, apiKey)), idempotencyKey, sealed, deliveryKey };
  }

  before(async () => {
    stage = await LifeStage.set({
      env: { KEY_DELIVERY_WINDOW_SECONDS: String(WINDOW_SECONDS), LOG_LEVEL: "trace" },
    });
    const { dataDir } = stage.service;
    masterKey = await loadMasterKey({ setting: null, embeddedDataDir: dataDir });
    links = join(dataDir, "links");
    await mkdir(links);
    const owner = await stage.person();
    await stage.elevate();
    const create = () => stage.api.ok("createAgent", 201, { token: owner.token, body: named(owner) });
    const [first, second] = [await create(), await create()];
    const by = { token: owner.token, id: second.agent.id };
    await stage.api.ok("revokeAgentKey", 200, by);
    const { apiKey } = await stage.api.ok("mintAgentKey", 201, by);
    others = [await known(first.agent.id, first.apiKey), await known(second.agent.id, apiKey)];
    delivered = await Promise.all(Array.from({ length: MACHINES_AGENTS }, byMachine));
    // Everything that MongoDB has in its memory goes into its tables' files.
    await stage.db.admin().command({ fsync: 1 });
  });
  after(() => stage.dispose());

  /** Where each of them lies; a proof of absence is worth what the same search finds of what must be there. */
  async function traces(values: readonly string[]): Promise<(value: string) => readonly Kind[]> {
    const found = await tracesOf(stage.service.dataDir, values);
    return (value) => [...(found.get(value) ?? [])];
  }

  it("in the window: no key in any form, though the search finds what was stored with it", async () => {
    const forms = keys().flatMap((key) => formsOf(randomPart(key)));
    const idempotencyKeys = delivered.map(({ idempotencyKey }) => idempotencyKey);
    const hashes = keys().map(({ hash }) => hash);
    const sealed = delivered.map((one) => one.sealed);
    const names = keys().map(({ name }) => name);
    const ids = keys().map(({ id }) => id);
    const deliveryKeys = delivered.map(({ deliveryKey }) => deliveryKey.toString("latin1"));
    const where = await traces(
      [
        forms,
        idempotencyKeys,
        hashes,
        sealed,
        names,
        ids,
        deliveryKeys,
        ["baseUrl", stage.service.dataDir],
      ].flat(),
    );
    expect(await stage.deliveryKeys(), "the window is open").to.have.lengthOf(MACHINES_AGENTS);

    nowhere(where, [...forms, ...idempotencyKeys]);
    // The sight of the search: each kind of file shows something.
    const seen = (values: readonly string[]): readonly Kind[] => [...new Set(values.flatMap(where))];
    // A checkpoint may lack a moment, and pages are compressed: any of MongoDB's files will do for these.
    for (const stored of [hashes, sealed]) {
      expect(seen(stored)).not.to.deep.equal([]);
      expect(["journal", "tables"]).to.include.members(seen(stored));
    }
    expect(seen(names)).to.include.members(["journal", "tables", "temporal"]);
    expect(seen(ids)).to.include.members(["journal", "tables", "temporal"]);
    expect(where(stage.service.dataDir)).to.include("logs");
    // And the keys to what is sealed lie where they should, under both of their names, and nowhere else.
    expect(seen(deliveryKeys)).to.have.members(["delivery keys", "others"]);
    expect(where("baseUrl")).to.include("others");
  });

  it("in the window: what is sealed opens with master, delivery and idempotency key together", () => {
    for (const one of delivered) {
      expect(open(masterKey, one.deliveryKey, one)).to.equal(one.apiKey);
      expect(() => open(masterKey, one.deliveryKey, { ...one, idempotencyKey: randomUUID() })).to.throw(
        SealError,
      );
    }
  });

  it("the actors' histories hold neither key nor hash nor sealed form", async () => {
    for (const { apiKey, hash, id, name } of keys()) {
      const history = await stage.temporal.workflow.getHandle(agentWorkflowId(id)).fetchHistory();
      const text = [...contentsOf(history.events)].join("\n");
      expect(text).to.include(id).and.to.include(name);
      const sealed = delivered.filter((one) => one.id === id).map((one) => one.sealed);
      for (const secret of [apiKey.slice(PREFIX_CHARACTERS), hash, ...sealed])
        expect(text).not.to.include(secret);
    }
  });

  it("after the window: the delivery keys are gone and overwritten, nothing sealed is on record", async () => {
    for (const { deliveryKey, id } of delivered) {
      const delivery = await until("the window is closed", CLOSED_MS, async () => {
        const found = await deliveryOf(stage, id);
        return found?.state === "closed" ? found : null;
      });
      expect(delivery.sealed).to.equal(null);
      expect(await readFile(join(links, id))).to.deep.equal(Buffer.alloc(deliveryKey.length));
    }
    expect(await stage.deliveryKeys()).to.deep.equal([]);
  });

  it("after the window: the sealed forms in MongoDB's files open with nothing that is left", async () => {
    await stage.db.admin().command({ fsync: 1 });
    const sealed = delivered.map((one) => one.sealed);
    const deliveryKeys = delivered.flatMap(({ deliveryKey }) => formsOf(deliveryKey));
    const forms = keys().flatMap((key) => formsOf(randomPart(key)));
    const where = await traces([...sealed, ...deliveryKeys, ...forms]);
    // The log of operations remembers them. That is why their key lies elsewhere.
    expect(sealed.flatMap(where)).not.to.deep.equal([]);
    nowhere(where, [...deliveryKeys, ...forms]);

    const { dataDir } = stage.service;
    const left = await Promise.all([
      readFile(join(dataDir, "master.key")),
      ...delivered.map(({ id }) => readFile(join(links, id))),
    ]);
    const derived = (["key-delivery", "sealing", "api-key-pepper"] as const).map((purpose) =>
      masterKey.deriveKey(purpose).export(),
    );
    const ofRecord = keys().flatMap(({ hash, id }) => [
      Buffer.from(hash),
      Buffer.from(hash, "base64url"),
      Buffer.from(id),
    ]);
    for (const one of delivered) {
      for (const candidate of [...left, ...derived, ...ofRecord, Buffer.alloc(0)]) {
        expect(() => open(masterKey, candidate, one)).to.throw(SealError);
      }
    }
  });
});
