import { createSecretKey, randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { Containers } from "../../src/containers/containers.ts";
import { Logos } from "../../src/containers/logos.ts";
import { Creates } from "../../src/agents/creates/creates.ts";
import { DailyCreates } from "../../src/agents/creates/daily-creates.ts";
import { Deadline } from "../../src/lib/deadline.ts";
import { withoutEntry } from "../../server/admin/record-command.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import { KeyedMutex } from "../../src/lib/keyed-mutex.ts";
import { newWorld, type World } from "../support/world.ts";

const ANSWER_MS = 3_500;
const clock = () => new Date();

interface Note {
  readonly _id: string;
}

async function owner({ organization: { organizationId }, service }: World): Promise<SessionPrincipal> {
  const organization = await collectionsOf(service.db).organizations.findOne({ _id: organizationId });
  if (organization === null) throw new Error("it was made");
  return {
    type: "session",
    sessionId: randomUUID(),
    userId: randomUUID(),
    organizationId,
    organization,
    email: "a@example.com",
    name: "A",
    role: "owner",
    binding: { type: "organization" },
    signedInAt: new Date(),
    amr: ["pwd"],
    stepUpExpiresAt: null,
    mustEnrol: false,
  };
}

describe("a create without an idempotency key", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });

  /** One whose commit comes so long after its request; what it came to, when it is answered, and whether it was made. */
  async function committedAfter(elapsedMs: number) {
    const { db } = world.service;
    const collections = collectionsOf(db);
    const notes = db.collection<Note>("test_notes");
    await db.createCollection("test_notes").catch(() => undefined);
    const key = createSecretKey(randomBytes(32));
    const logos = new Logos({ collection: collections.logos, key, baseUrl: world.service.baseUrl, clock });
    const parts = { mutex: new KeyedMutex(10_000), clock };
    const creates = new Creates({
      ...parts,
      creates: collections.creates,
      dailyCreates: new DailyCreates(collections.dailyCreates),
      containers: new Containers({ ...parts, collections, logos }),
    });
    const deadline = new Deadline(ANSWER_MS, { elapsedMs });
    const record = { _id: randomUUID() };
    const created = await creates.once<Note, { readonly record: Note }>({
      kind: "project",
      principal: await owner(world),
      audit: { transaction: withoutEntry(transactionsOf(db.client)) },
      deadline,
      idempotencyKey: undefined,
      payload: {},
      parent: null,
      find: (id) => notes.findOne({ _id: id }),
      prepare: () => Promise.resolve({ record }),
      async insert(made, session) {
        await notes.insertOne(made.record, { session });
        return {};
      },
    });
    return { created, leftMs: deadline.leftMs, isMade: (await notes.findOne(record)) !== null };
  }

  it("that may commit is waited for almost 5 s: nothing else tells its caller what was made", async () => {
    const { created, isMade, leftMs } = await committedAfter(2_700);
    expect([created.ok, isMade]).to.deep.equal([true, true]);
    expect(2_700 + leftMs).to.be.within(4_800, 5_000);
  });

  it("that has no time left for its commit makes nothing, and says so", async () => {
    const { created, isMade } = await committedAfter(2_900);
    expect(isMade).to.equal(false);
    expect(created.ok ? null : created.refusal.code).to.equal("SERVICE_UNAVAILABLE");
  });
});
