import { expect } from "chai";
import { AuditAppender } from "../../src/audit/chain/appender.ts";
import { AUDIT_INDEXES } from "../../src/store/audit-documents.ts";
import { createIndexes } from "../../src/store/indexes.ts";
import { Refusals } from "../../src/audit/refusals.ts";
import type { AuditRecord } from "../../src/domain/audit/entry.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { secondService } from "../support/own-service.ts";
import { sharedService } from "../support/service.ts";
import { newWorld, worldOf } from "../support/world.ts";
import { breakIn, entriesOf, ownSeal, testSeal } from "./support.ts";
import { recordOf, times } from "./tampering.ts";

const MINUTE_MS = 60_000;
const NOBODY = "018f0000-0000-7000-8000-000000000000";
const seal = ownSeal();

/** How many refusals entries tell of, each first one included. */
const toldOf = (entries: readonly { readonly after: unknown }[]): number =>
  entries.reduce((sum, { after }) => sum + countIn(after), 0);
const countIn = (after: unknown): number =>
  typeof after === "object" && after !== null && "refusals" in after ? Number(after.refusals) : 1;

const agentKey = (index: number) =>
  ({ type: "agent", id: `agent-${index}`, keyId: `key-${index}`, name: "Ada's" }) as const;
const madeUp = (index: number) => ({ type: "agent", id: `made-up-${index}` });

/** A hundred at once. */
async function keepAll(kept: Refusals, records: readonly AuditRecord[]): Promise<void> {
  for (let from = 0; from < records.length; from += 100)
    await Promise.all(records.slice(from, from + 100).map((record) => kept.record(record)));
}

describe("refusals in the audit log", () => {
  let database: TestDatabase;
  let organizationId: string;
  let organizations = 0;
  let now = 0;
  before(async () => {
    database = await testDatabase();
    await createIndexes(database.db, AUDIT_INDEXES);
  });
  after(() => database.close());
  beforeEach(() => {
    organizations += 1;
    organizationId = `organization-${organizations}-refused`;
    now = 1_000 * MINUTE_MS + 10_000;
  });

  const troubles: unknown[] = [];
  const refusals = (more: { readonly windowsMax?: number } = {}) =>
    new Refusals({
      log: new AuditAppender(database.db, seal),
      clock: () => new Date(now),
      onWarning: (error) => troubles.push(error),
      ...more,
    });
  const entries = () => entriesOf(database.db, organizationId);
  const refused = (fields: Partial<AuditRecord> = {}): AuditRecord => ({
    ...recordOf(1),
    organizationId,
    at: now,
    before: null,
    after: null,
    decision: null,
    result: { status: 403, code: "STEP_UP_REQUIRED" },
    ...fields,
  });
  const fromAddress = (index: number) =>
    refused({
      from: { address: `10.0.${index >> 8}.${index & 255}`, surface: "rest", via: "POST /v1/teams" },
    });

  it("of those alike the first is there at once, how many followed when the minute is over", async () => {
    const kept = refusals();
    await kept.record(refused());
    expect(await entries()).to.have.lengthOf(1);
    await Promise.all(times(500, () => kept.record(refused())));
    await kept.tick();
    expect(await entries()).to.have.lengthOf(1);
    now += MINUTE_MS;
    await kept.tick();
    const [first, count, ...more] = await entries();
    expect(more).to.deep.equal([]);
    expect([first?.after, count?.after]).to.deep.equal([null, { refusals: 500 }]);
    expect(count).to.deep.include({ actor: first?.actor, resource: first?.resource, result: first?.result });
    expect(breakIn(await entries(), seal)).to.equal(null);
    expect(kept.size).to.equal(0);
  });

  it("what differs in who, from where, what, on what or why is told apart", async () => {
    const kept = refusals();
    const { resource } = refused();
    const each = [
      refused(),
      refused({ actor: { type: "user", id: "somebody-else" } }),
      fromAddress(1),
      refused({ action: "archiveAgent" }),
      refused({ resource: { ...resource, id: "another" } }),
      refused({ result: { status: 404, code: "NOT_FOUND" } }),
    ];
    for (const record of [...each, ...each]) await kept.record(record);
    expect(await entries()).to.have.lengthOf(each.length);
    await kept.end();
    expect(await entries()).to.have.lengthOf(2 * each.length);
  });

  const further = async () => (await entries()).filter(({ action }) => action === "furtherRefusals");
  const guess = (index: number) =>
    refused({
      action: "signIn",
      actor: { type: "user", id: "admin", name: "An admin" },
      resource: { type: "user", id: "admin" },
      from: { address: `10.0.${index >> 8}.${index & 255}`, surface: "rest", via: "POST /v1/auth/sign-in" },
      result: { status: 401, code: "UNAUTHORIZED" },
    });
  const byPerson = (id: string, action: string, index = 0) =>
    refused({
      action,
      actor: { type: "user", id, sessionId: `session-${id}`, name: id },
      resource: madeUp(index),
    });
  /** Who is known to have done what, of entries that tell of one refusal. */
  const toldAtOnce = async () =>
    (await entries())
      .filter(({ after }) => after === null)
      .map(({ action, actor }) => `${action} ${actor.id}`);

  it("from 5,000 addresses in a minute: 25 entries and 11 counts, none forgotten", async () => {
    const kept = refusals();
    await keepAll(kept, times(5_000, guess));
    expect(kept.size).to.equal(36);
    await kept.end();
    const found = await entries();
    expect([found.length, toldOf(found)]).to.deep.equal([36, 5_000]);
    const counts = await further();
    expect(counts.map(({ after }) => countIn(after))).to.have.members([...times(10, () => 1), 4_965]);
    expect(new Set(counts.map(({ from }) => from?.address)).size).to.equal(11);
    expect(breakIn(found, seal)).to.equal(null);
  });

  it("one actor's flood with made-up ids hides no other actor's, and is counted as its own", async () => {
    const kept = refusals();
    const flood = (id: number) =>
      times(100, (index) =>
        refused({ actor: agentKey(id), resource: madeUp(index), action: "archiveAgent" }),
      );
    await keepAll(kept, flood(1));
    await keepAll(kept, [refused({ actor: agentKey(2) }), guess(1)]);
    await keepAll(kept, [byPerson("mallory", "updateMember"), byPerson("mallory", "pauseAgent")]);
    expect((await toldAtOnce()).slice(10)).to.deep.equal([
      "updateAgentBudgetPolicy agent-2",
      "signIn admin",
      "updateMember mallory",
      "pauseAgent mallory",
    ]);
    await kept.end();
    const [count, ...more] = await further();
    expect(more).to.deep.equal([]);
    expect(count?.actor).to.deep.equal({ type: "agent", id: "agent-1", name: "Ada's" });
    expect(count?.after).to.deep.equal({ refusals: 90 });
  });

  it("no number of keys, addresses and members takes the places of roles, step-up and sign-in", async () => {
    const kept = refusals();
    const floods = times(40, (who) =>
      times(12, (index) => [
        refused({ actor: agentKey(who), resource: madeUp(index), action: "updateMember" }),
        byPerson(`member-${who}`, "pauseAgent", index),
      ]),
    );
    await keepAll(kept, floods.flat(2));
    await keepAll(kept, [guess(1), byPerson("mallory", "updateMember"), byPerson("mallory", "stepUp")]);
    expect((await toldAtOnce()).slice(-3)).to.deep.equal([
      "signIn admin",
      "updateMember mallory",
      "stepUp mallory",
    ]);
    expect(kept.size).to.be.at.most(4 * 35 + 1);
    await kept.end();
    expect(toldOf(await entries())).to.equal(40 * 12 * 2 + 3);
  });

  it("what was not found is alike for one actor, whatever ids it makes up", async () => {
    const kept = refusals();
    const NOT_FOUND = { status: 404, code: "NOT_FOUND" };
    const missing = (index: number) => refused({ resource: madeUp(index), result: NOT_FOUND });
    await keepAll(kept, times(300, missing));
    await kept.end();
    const [first, count, ...more] = await entries();
    expect(more).to.deep.equal([]);
    expect(first?.resource).to.deep.equal(madeUp(0));
    expect(count).to.deep.include({ resource: { type: "agent", id: null }, after: { refusals: 299 } });
  });

  it("memory is bounded over all organizations; what gives way is written, not forgotten", async () => {
    const kept = refusals({ windowsMax: 4 });
    for (const record of times(12, fromAddress)) {
      await kept.record(record);
      await kept.record(record);
    }
    expect(kept.size).to.equal(4);
    await kept.end();
    expect(toldOf(await entries())).to.equal(24);
  });

  it("processes and restarts within a minute have one first entry, and counts of their own", async () => {
    const [one, two] = [refusals(), refusals()];
    for (const kept of [one, two, refusals()]) await kept.record(refused());
    for (const kept of [one, two, two]) await kept.record(refused());
    await one.end();
    await two.end();
    expect((await entries()).map(({ after }) => after)).to.deep.equal([
      null,
      { refusals: 1 },
      { refusals: 2 },
    ]);
  });

  it("what can't be written is refused itself; the next one is a first one again", async () => {
    const log = new AuditAppender(database.db, seal);
    let isBroken = true;
    const kept = new Refusals({
      log: { append: (record) => (isBroken ? Promise.reject(new Error("away")) : log.append(record)) },
      clock: () => new Date(now),
      onWarning: (error) => troubles.push(error),
    });
    const [outcome] = await Promise.allSettled([kept.record(refused())]);
    expect(outcome?.status).to.equal("rejected");
    isBroken = false;
    await kept.record(refused());
    await kept.record(refused());
    isBroken = true;
    now += MINUTE_MS;
    await kept.tick();
    isBroken = false;
    await kept.tick();
    expect(toldOf(await entries())).to.equal(2);
  });

  it("over the API: thirty alike are two entries a minute, and a server's end tells its counts", async () => {
    const first = await sharedService();
    const world = await newWorld(first);
    const server = await secondService(first);
    const began = Math.floor(Date.now() / MINUTE_MS);
    try {
      const { api } = worldOf(server, world.organization);
      const { email, password } = world.organization;
      const { token } = await api.ok("signIn", 200, { body: { email, password } });
      const headers = { "x-forwarded-for": "198.51.100.9" };
      for (const _turn of times(30, () => 0)) {
        await api.refused("pauseAgent", 404, "NOT_FOUND", { token, id: NOBODY, headers });
      }
    } finally {
      await server.stop();
    }
    const minutes = Math.floor(Date.now() / MINUTE_MS) - began + 1;
    const all = await entriesOf(first.db, world.organization.organizationId);
    const told = all.filter(({ result }) => result.code === "NOT_FOUND");
    expect(toldOf(told)).to.equal(30);
    expect(told.length).to.be.at.most(2 * minutes);
    expect(breakIn(all, testSeal(first.env["MASTER_KEY"] ?? ""))).to.equal(null);
  });
});
