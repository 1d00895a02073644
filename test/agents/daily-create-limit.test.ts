import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { DailyCreatesDocument } from "../../src/store/organization-key-documents.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { type Answer, onceReachable } from "../support/api.ts";
import { atOnce, expectOnce } from "../support/at-once.ts";
import { codeOf } from "../support/contract-api.ts";
import { secondService } from "../support/own-service.ts";
import {
  type Fields,
  newWorld,
  organizationKey,
  tally,
  type TestOrganizationKey,
  times,
  worldOf,
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
  /** A clock that begins an hour after midnight, so that no test meets the real one; tests push it on, or hold it. */
  let aheadMs = 0;
  let heldAt: number | null = null;
  let service: TestService;
  let world: World;
  before(async () => {
    const started = Date.now();
    aheadMs = Math.ceil(started / DAY_MS) * DAY_MS + 3_600_000 - started;
    service = await startTestService({ clock: () => new Date(now()) });
  });
  after(() => service.stop());
  beforeEach(async () => {
    world = await newWorld(service);
  });

  const now = () => heldAt ?? Date.now() + aheadMs;

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
    await service.db.collection("sessions").updateMany({ organizationId }, { $set: { stepUpExpiresAt } });
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

  it("counts agents, projects and teams together; then 429 with the seconds to midnight UTC", async () => {
    const key = await withLimit(3);
    const { teamId } = world.organization;
    const { token } = key;
    await world.api.ok("createProject", 201, { token, body: named() });
    await world.api.ok("createTeam", 201, { token, body: named() });
    await world.api.ok("createAgent", 201, { token, body: { ...named(), teamId, budgetCents: 1 } });
    for (const [operation, body] of [
      ["createProject", named()],
      ["createTeam", named()],
      ["createAgent", { ...named(), teamId, budgetCents: 1 }],
    ] as const) {
      const secondsToMidnight = () => Math.ceil((DAY_MS - (now() % DAY_MS)) / 1_000);
      const before = secondsToMidnight();
      const refused = await world.api.refused(operation, 429, "DAILY_CREATE_LIMIT_REACHED", { token, body });
      expect(refused.retry_after_seconds).to.be.within(secondsToMidnight(), before);
    }
    expect(await createdToday(key)).to.equal(3);
  });

  it("of 12 at once with 5 left exactly 5 succeed, of whatever kind", async () => {
    const key = await withLimit(8);
    for (const status of await Promise.all(times(3, () => outcome(key)))) expect(status).to.equal(201);
    const { teamId } = world.organization;
    const bodies = times(12, () => ({ name: "x", idempotencyKey: randomUUID() }));
    const answers = await atOnce(12, (index) => {
      const body = bodies[index];
      if (index % 3 === 0) return world.api.call("createProject", { token: key.token, body });
      if (index % 3 === 1) return world.api.call("createTeam", { token: key.token, body });
      return world.api.call("createAgent", { token: key.token, body: { ...body, teamId, budgetCents: 1 } });
    });
    expectMade(answers, 5);
    expect(await createdToday(key)).to.equal(8);
  });

  it("of 12 creates at once on a day with a limit of 5, by two servers, exactly 5 succeed", async () => {
    // The second server's clock is the real one, so both of these are on the real day.
    const shared = await newWorld();
    const second = await secondService(shared.service);
    try {
      const there = worldOf(second, shared.organization);
      const { token } = await organizationKey(shared, { dailyCreateLimit: 5 });
      const bodies = times(12, () => project());
      const answers = await atOnce(12, (index) =>
        (index % 2 === 0 ? shared : there).api.call("createProject", { token, body: bodies[index] }),
      );
      expectMade(answers, 5);
    } finally {
      await second.stop();
    }
  });

  it("a replay is free, also when nothing is left; 20 replays at once use one place", async () => {
    const key = await withLimit(1);
    const body = project();
    const statuses = await Promise.all(times(20, () => outcome(key, body)));
    const { 201: made = 0, ...rest } = tally(statuses);
    expect(rest).to.deep.equal({ "200": 20 - made });
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
    const { projectId, teamId } = world.organization;
    const projects = service.db.collection<{ _id: string }>("projects");
    const teams = service.db.collection<{ _id: string }>("teams");
    await teams.updateOne({ _id: teamId }, { $set: { archivedAt: new Date() } });
    await projects.updateOne({ _id: projectId }, { $set: { archivedAt: new Date() } });
    const agent = { ...named(), teamId, budgetCents: 1 };
    await world.api.refused("createAgent", 409, "CONTAINER_ARCHIVED", { token, body: agent });
    await world.api.refused("createTeam", 409, "CONTAINER_ARCHIVED", { token, body: named() });
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
  });

  it("an archived container is told before the limit", async () => {
    const key = await withLimit(1);
    expect(await outcome(key)).to.equal(201);
    const { teamId } = world.organization;
    const teams = service.db.collection<{ _id: string }>("teams");
    await teams.updateOne({ _id: teamId }, { $set: { archivedAt: new Date() } });
    const body = { name: "x", idempotencyKey: randomUUID(), teamId, budgetCents: 1 };
    await world.api.refused("createAgent", 409, "CONTAINER_ARCHIVED", { token: key.token, body });
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

  it("people have no daily limit", async () => {
    const request = () => ({ token: world.token, body: project() });
    for (let index = 0; index < 3; index += 1) await world.api.ok("createProject", 201, request());
    expect(await days().countDocuments({ "slots.id": world.organization.userId })).to.equal(0);
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

  const DEAD: readonly (readonly [title: string, ageMs: number])[] = [
    ["after a minute, not before; committed ones never", 70_000],
    ["also where a clock ran ahead that took them", -3_600_000],
  ];
  for (const [title, ageMs] of DEAD)
    it(`places of creates that died are reclaimed ${title}`, async () => {
      const key = await withLimit(3);
      expect(await outcome(key)).to.equal(201);
      const abandon = (ms: number) => ({
        id: randomUUID(),
        reservedAt: new Date(now() - ms),
        committed: false,
      });
      const { lineageId } = key;
      const _id = `${lineageId}/${new Date(now()).toISOString().slice(0, 10)}`;
      const slots = [abandon(ageMs), abandon(30_000)];
      await days().updateOne({ _id }, { $push: { slots: { $each: slots } } });
      await days().updateOne(
        { _id, "slots.committed": true },
        { $set: { "slots.0.reservedAt": new Date(0) } },
      );
      expect(await createdToday(key)).to.equal(1);
      expect(await outcome(key)).to.equal(201);
      expect(await outcome(key)).to.equal("DAILY_CREATE_LIMIT_REACHED");
      expect(await createdToday(key)).to.equal(2);
      await days().updateOne(
        { _id, "slots.id": slots[1]?.id ?? "" },
        { $set: { "slots.$.reservedAt": new Date(now() - 61_000) } },
      );
      expect(await outcome(key)).to.equal(201);
      expect(await outcome(key)).to.equal("DAILY_CREATE_LIMIT_REACHED");
      expect(await createdToday(key)).to.equal(3);
    });

  it("a create that loses its place takes another or fails: never beyond the limit", async () => {
    const key = await withLimit(1);
    const bodies = times(6, () => project());
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
    expect(
      await service.db
        .collection("projects")
        .countDocuments({ organizationId: world.organization.organizationId, name: "P" }),
    ).to.equal(1);
    expect(await createdToday(key)).to.equal(1);
  });

  it("begins anew at midnight UTC, to the instant; replays of the day before stay free", async () => {
    const key = await withLimit(1);
    const body = project();
    expect(await outcome(key, body)).to.equal(201);
    try {
      const midnight = Math.ceil(now() / DAY_MS) * DAY_MS;
      heldAt = midnight - 1;
      const before = await world.api.refused("createProject", 429, "DAILY_CREATE_LIMIT_REACHED", {
        token: key.token,
        body: project(),
      });
      expect(before.retry_after_seconds).to.equal(1);
      heldAt = midnight;
      expect(await outcome(key, body)).to.equal(200);
      expect(await outcome(key)).to.equal(201);
      expect(await outcome(key)).to.equal("DAILY_CREATE_LIMIT_REACHED");
    } finally {
      heldAt = null;
    }
  });
});
