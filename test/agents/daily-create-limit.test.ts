import { prove } from "../support/access-proofs.ts";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { DailyCreates } from "../../src/agents/creates/daily-creates.ts";
import type { OrganizationKeyPrincipal } from "../../src/identity/principals.ts";
import type { DailyCreatesDocument } from "../../src/store/organization-key-documents.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { type Answer, onceReachable } from "../support/api.ts";
import { atOnce, expectOnce } from "../support/at-once.ts";
import { codeOf } from "../support/contract-api.ts";
import { type TestDatabase, testDatabase } from "../support/mongo.ts";
import {
  type Fields,
  newWorld,
  tally,
  type TestOrganizationKey,
  times,
  type World,
} from "../support/world.ts";

const DAY_MS = 86_400_000;

const project = (fields: Fields = {}) => ({ name: "P", idempotencyKey: randomUUID(), ...fields });
/** Of creates under a key each, so many; 200: of one that was told to come again. */
function expectMade(answers: readonly Answer[], count: number): void {
  const outcomes = answers.map((answer) => codeOf(answer) ?? (answer.status === 200 ? 201 : answer.status));
  const rest = answers.length - count;
  expect(tally(outcomes)).to.deep.equal({ "201": count, DAILY_CREATE_LIMIT_REACHED: rest });
}

const named = () => ({ name: "x", idempotencyKey: randomUUID() });

describe("the daily create limit of organization keys", () => {
  /** A clock that begins an hour after midnight, so that no test meets the real one. */
  let aheadMs = 0;
  let service: TestService;
  let world: World;
  before(async () => {
    const started = Date.now();
    aheadMs = Math.ceil(started / DAY_MS) * DAY_MS + 3_600_000 - started;
    service = await startTestService({ clock: () => new Date(now()) });
    world = await newWorld(service);
  });
  after(() => service.stop());

  const now = () => Date.now() + aheadMs;

  async function withLimit(dailyCreateLimit: number): Promise<TestOrganizationKey> {
    await stepUp();
    const scopes = ["agents:write", "projects:write", "teams:write"];
    const body = { name: "Key", scopes, binding: { type: "organization" }, dailyCreateLimit };
    const minted = await world.api.ok("mintOrganizationKey", 201, { token: world.token, body });
    const { id, lineageId } = minted.organizationKey;
    return { id, lineageId, token: minted.key };
  }

  /** By the service's clock, which is ahead of the real one. */
  async function stepUp(): Promise<void> {
    const stepUpExpiresAt = new Date(now() + 300_000);
    const { organizationId } = world.organization;
    await prove(service.db, "session", { organizationId }, { stepUpExpiresAt });
  }

  const createProject = ({ token }: TestOrganizationKey, body: Fields = project()) =>
    onceReachable(() => world.api.call("createProject", { token, body }));
  const outcome = async (key: TestOrganizationKey, body?: Fields) => {
    const answer = await createProject(key, body);
    return codeOf(answer) ?? answer.status;
  };

  async function createdToday({ id }: TestOrganizationKey): Promise<number | undefined> {
    const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
    return organizationKeys.find((key) => key.id === id)?.createdToday;
  }

  const days = () => service.db.collection<DailyCreatesDocument>("daily_creates");
  const day = ({ lineageId }: TestOrganizationKey) =>
    days().findOne({ _id: `${lineageId}/${new Date(now()).toISOString().slice(0, 10)}` });

  it("is one for agents, projects and teams, at once too; then 429 with the seconds to midnight", async () => {
    const key = await withLimit(5);
    const { teamId } = world.organization;
    const { token } = key;
    const kinds = [
      ["createProject", named],
      ["createTeam", named],
      ["createAgent", () => ({ ...named(), teamId, budgetCents: 1 })],
    ] as const;
    for (const [operation, body] of kinds) await world.api.ok(operation, 201, { token, body: body() });
    const requests = times(6, (index) => {
      const [operation, body] = kinds[index % 3] ?? kinds[0];
      return { operation, body: body() };
    });
    const answers = await atOnce(6, (index) => {
      const { operation, body } = requests[index] ?? { operation: "createProject", body: named() };
      return world.api.call(operation, { token, body });
    });
    expectMade(answers, 2);
    for (const [operation, body] of kinds) {
      const secondsToMidnight = () => Math.ceil((DAY_MS - (now() % DAY_MS)) / 1_000);
      const before = secondsToMidnight();
      const request = { token, body: body() };
      const refused = await world.api.refused(operation, 429, "DAILY_CREATE_LIMIT_REACHED", request);
      expect(refused.retry_after_seconds).to.be.within(secondsToMidnight(), before);
    }
    expect(await createdToday(key)).to.equal(5);
    await world.api.ok("createProject", 201, { token: world.token, body: named() });
  });

  it("a replay is free, also when nothing is left; replays at once use one place", async () => {
    const key = await withLimit(1);
    const body = project();
    const statuses = await Promise.all(times(6, () => outcome(key, body)));
    const { 201: made = 0, ...rest } = tally(statuses);
    expect(rest).to.deep.equal({ "200": 6 - made });
    expectOnce(made);
    expect(await outcome(key, body)).to.equal(200);
    expect(await outcome(key)).to.equal("DAILY_CREATE_LIMIT_REACHED");
    expect(await createdToday(key)).to.equal(1);
  });

  it("what is refused takes nothing: shape, unknown and archived containers, reused keys", async () => {
    const key = await withLimit(2);
    const { token } = key;
    const made = project();
    expect(await outcome(key, made)).to.equal(201);
    await stepUp();
    const { project: archived } = await world.api.ok("createProject", 201, {
      token: world.token,
      body: project(),
    });
    await world.api.ok("archiveProject", 200, { token: world.token, id: archived.id });
    const { team } = await world.api.ok("createTeam", 201, { token: world.token, body: named() });
    await world.api.ok("archiveTeam", 200, { token: world.token, id: team.id });
    const agent = { ...named(), teamId: team.id, budgetCents: 1 };
    const below = () => ({ ...named(), projectId: archived.id });
    await world.api.refused("createAgent", 409, "CONTAINER_ARCHIVED", { token, body: agent });
    await world.api.refused("createTeam", 409, "CONTAINER_ARCHIVED", { token, body: below() });
    const unknown = { ...agent, teamId: randomUUID() };
    await world.api.refused("createAgent", 404, "NOT_FOUND", { token, body: unknown });
    await world.api.refused("createProject", 400, "VALIDATION_FAILED", {
      token,
      body: project({ name: "" }),
    });
    const reused = { ...made, name: "Q" };
    await world.api.refused("createProject", 422, "IDEMPOTENCY_KEY_REUSED", { token, body: reused });
    expect(await createdToday(key)).to.equal(1);
    expect((await day(key))?.slots).to.have.lengthOf(1);
    expect(await outcome(key)).to.equal(201);
    // It is told before the limit, too.
    await world.api.refused("createTeam", 409, "CONTAINER_ARCHIVED", { token, body: below() });
  });

  it("rotation keeps the used ones, another lineage has its own, and archiving gives none back", async () => {
    const key = await withLimit(2);
    const { project: made } = await world.api.ok("createProject", 201, { token: key.token, body: project() });
    await stepUp();
    await world.api.ok("archiveProject", 200, { token: world.token, id: made.id });
    const minted = await world.api.ok("rotateOrganizationKey", 201, { token: world.token, id: key.id });
    expect(minted.organizationKey.createdToday).to.equal(1);
    const next = { id: minted.organizationKey.id, lineageId: key.lineageId, token: minted.key };
    expect(await outcome(next)).to.equal(201);
    expect(await outcome(next)).to.equal("DAILY_CREATE_LIMIT_REACHED");
    expect(await outcome(await withLimit(1))).to.equal(201);
    expect(await createdToday(next)).to.equal(2);
  });

  it("a create that fails gives its place back, and its replay takes one again", async () => {
    const key = await withLimit(1);
    const body = project();
    // MongoDB refuses to write projects, as it would a record that it cannot take.
    await service.db.command({ collMod: "projects", validator: { never: { $exists: true } } });
    try {
      await world.api.refused("createProject", 503, "CREATE_RETRYABLE", { token: key.token, body });
    } finally {
      await service.db.command({ collMod: "projects", validator: {} });
    }
    expect((await day(key))?.slots).to.deep.equal([]);
    expect(await createdToday(key)).to.equal(0);
    expect(await outcome(key, body)).to.equal(201);
    expect(await outcome(key)).to.equal("DAILY_CREATE_LIMIT_REACHED");
    expect(await outcome(key, body)).to.equal(200);
  });

  it("a create that died after it took its place is finished with that one, though none is left", async () => {
    const key = await withLimit(1);
    const body = project();
    const { project: made } = await world.api.ok("createProject", 201, { token: key.token, body });
    await service.db.collection<{ _id: string }>("projects").deleteOne({ _id: made.id });
    await days().updateOne({ "slots.id": made.id }, { $set: { "slots.$.committed": false } });
    // The call that died held it for some seconds; they are over.
    await service.db
      .collection("creates")
      .updateOne({ createdId: made.id }, { $set: { leaseUntil: new Date(0) } });
    expect(await createdToday(key)).to.equal(0);
    const { project: finished } = await world.api.ok("createProject", 201, { token: key.token, body });
    expect(finished.id).to.equal(made.id);
    expect(await createdToday(key)).to.equal(1);
  });

  it("a create that loses its place takes another or fails: never beyond the limit", async () => {
    const key = await withLimit(1);
    const bodies = times(6, () => project({ name: "Robbed" }));
    const robbing = (async () => {
      for (let round = 0; round < 40; round += 1) {
        await days().updateMany({}, { $pull: { slots: { committed: false } } });
      }
    })();
    const outcomes = await Promise.all(bodies.map((body) => outcome(key, body)));
    await robbing;
    expect(tally(outcomes)["201"] ?? 0).to.be.at.most(1);
    const left = await Promise.all(bodies.map((body) => outcome(key, body)));
    expect(left.filter((status) => status === 200 || status === 201)).to.have.lengthOf(1);
    expect(await service.db.collection("projects").countDocuments({ name: "Robbed" })).to.equal(1);
    expect(await createdToday(key)).to.equal(1);
  });
});

describe("places of a day's creates", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  const collection = () => database.db.collection<DailyCreatesDocument>("daily_creates");
  const NOON = Date.UTC(2026, 4, 13, 12);

  /** Places of a lineage of its own; of each call another server's. */
  function lineage(dailyCreateLimit: number) {
    const lineageId = randomUUID();
    const key = { lineageId, dailyCreateLimit } as OrganizationKeyPrincipal;
    return {
      take: async (id: string, at = NOON) => {
        const taken = await new DailyCreates(collection()).take(key, id, new Date(at));
        return taken.ok ? "taken" : taken.refusal;
      },
      isTaken: async (at: number) =>
        (await new DailyCreates(collection()).take(key, randomUUID(), new Date(at))).ok,
      commit: (id: string) =>
        collection().updateOne({ "slots.id": id }, { $set: { "slots.$.committed": true } }),
      created: async (at = NOON) =>
        (await new DailyCreates(collection()).createdToday([lineageId], new Date(at))).get(lineageId),
    };
  }

  it("are as many as the limit, however many servers take them at once; one has its own again", async () => {
    const { take } = lineage(5);
    const ids = times(12, () => randomUUID());
    const outcomes = await Promise.all(ids.map((id) => take(id)));
    expect(outcomes.filter((outcome) => outcome === "taken")).to.have.lengthOf(5);
    for (const [index, id] of ids.entries()) {
      if (outcomes[index] === "taken") expect(await take(id)).to.equal("taken");
      else expect(await take(id)).to.include({ code: "DAILY_CREATE_LIMIT_REACHED" });
    }
  });

  const DEAD: readonly (readonly [title: string, ageMs: number])[] = [
    ["after a minute, not before; committed ones never", 60_001],
    ["also where a clock ran ahead that took them", -3_600_000],
  ];
  for (const [title, ageMs] of DEAD)
    it(`of creates that died are reclaimed ${title}`, async () => {
      const { commit, created, isTaken, take } = lineage(3);
      const committed = randomUUID();
      await take(committed, NOON - 3_600_000);
      await commit(committed);
      await take(randomUUID(), NOON - ageMs);
      await take(randomUUID(), NOON - 30_000);
      expect(await created()).to.equal(1);
      expect([await isTaken(NOON), await isTaken(NOON)]).to.deep.equal([true, false]);
      // By then the other one has died, too.
      const later = NOON + 30_001;
      expect([await isTaken(later), await isTaken(later)]).to.deep.equal([true, false]);
      expect(await created()).to.equal(1);
    });

  it("begin anew at midnight UTC, to the instant", async () => {
    const { commit, created, take } = lineage(1);
    const midnight = Date.UTC(2026, 4, 14);
    const id = randomUUID();
    expect(await take(id, midnight - 3_600_000)).to.equal("taken");
    await commit(id);
    const refused = await take(randomUUID(), midnight - 1);
    expect(refused).to.include({ code: "DAILY_CREATE_LIMIT_REACHED", retryAfterSeconds: 1 });
    expect(await take(randomUUID(), midnight)).to.equal("taken");
    expect([await created(midnight - 1), await created(midnight)]).to.deep.equal([1, 0]);
  });
});
