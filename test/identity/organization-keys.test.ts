import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { formatApiKey } from "../../src/domain/api-key.ts";
import { ORGANIZATION_SCOPES } from "../../src/contract/types.ts";
import { mintKey } from "../authorization/scene.ts";
import { elevate, newWorld, tally, times, until, type World } from "../support/world.ts";
import { codeOf } from "../support/contract-api.ts";

const organization = { type: "organization" } as const;

const request = (fields: object = {}) => ({
  name: "Orchestrator",
  scopes: ["agents:read"],
  binding: organization,
  ...fields,
});

describe("organization keys", () => {
  let world: World;
  before(async () => {
    world = await newWorld();
  });
  beforeEach(() => elevate(world));

  const mint = (fields: object = {}) =>
    world.api.ok("mintOrganizationKey", 201, { token: world.token, body: request(fields) });
  const rotate = (id: string) => world.api.ok("rotateOrganizationKey", 201, { token: world.token, id });
  const revoke = (id: string) => world.api.ok("revokeOrganizationKey", 200, { token: world.token, id });
  const works = async (token: string) => (await world.api.call("listAgents", { token })).status === 200;

  it("a minted key has its value once, a checksum, the default limit, and works at once", async () => {
    const { key, organizationKey } = await mint();
    expect(key).to.match(/^svc_org_live_[0-9A-Za-z]{46,}$/);
    expect(organizationKey).to.deep.include({
      name: "Orchestrator",
      last4: key.slice(-4),
      scopes: ["agents:read"],
      binding: organization,
      dailyCreateLimit: 100,
      createdToday: 0,
      createdBy: { type: "user", id: world.organization.userId },
      lastUsedAt: null,
      rotatedAt: null,
      revokedAt: null,
    });
    expect(await works(key)).to.equal(true);
    const listed = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
    expect(JSON.stringify(listed)).not.to.include(key.slice(0, -4));
    expect(listed.organizationKeys[0]?.id).to.equal(organizationKey.id);
  });

  it("the database holds no value of a key, only a peppered hash", async () => {
    const { key } = await mint();
    const stored = await world.service.db.collection("organization_keys").find().toArray();
    expect(JSON.stringify(stored)).not.to.include(key.slice("svc_org_live_".length, -6));
  });

  const refusedBodies: readonly (readonly [string, object])[] = [
    ["no scope", { scopes: [] }],
    ["a scope twice", { scopes: ["agents:read", "agents:read"] }],
    ["a scope that is none", { scopes: ["agents:admin"] }],
    ["a limit of 0", { dailyCreateLimit: 0 }],
    ["a limit above 1,000", { dailyCreateLimit: 1_001 }],
    ["a limit that is no integer", { dailyCreateLimit: 1.5 }],
    ["a binding without its id", { binding: { type: "team" } }],
    ["an id where the organization is meant", { binding: { type: "organization", id: "x" } }],
    ["an unknown field", { admin: true }],
    ["a blank name", { name: " " }],
  ];
  for (const [what, fields] of refusedBodies) {
    it(`minting with ${what} is 400, and makes no key`, async () => {
      const count = () => world.service.db.collection("organization_keys").countDocuments();
      const before = await count();
      const body = request(fields);
      await world.api.refused("mintOrganizationKey", 400, "VALIDATION_FAILED", { token: world.token, body });
      expect(await count()).to.equal(before);
    });
  }

  it("rotating keeps lineage, scopes, binding and limit; the old value is dead at once", async () => {
    const binding = { type: "team", id: world.organization.teamId };
    const first = await mint({ binding, dailyCreateLimit: 7, scopes: ["agents:read", "agents:write"] });
    const second = await rotate(first.organizationKey.id);
    const { binding: kept, dailyCreateLimit, lineageId, name, scopes } = first.organizationKey;
    expect(second.organizationKey).to.deep.include({
      binding: kept,
      dailyCreateLimit,
      lineageId,
      name,
      scopes,
    });
    expect(second.organizationKey.id).not.to.equal(first.organizationKey.id);
    expect([await works(first.key), await works(second.key)]).to.deep.equal([false, true]);
    const third = await rotate(second.organizationKey.id);
    expect(third.organizationKey.lineageId).to.equal(first.organizationKey.id);
    const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
    const old = organizationKeys.find(({ id }) => id === first.organizationKey.id);
    expect(old?.rotatedAt).to.be.a("string");
    expect(old?.revokedAt).to.equal(null);
  });

  it("of 10 rotations of one key at once one succeeds, and one key of the lineage is alive", async () => {
    const { organizationKey } = await mint();
    const answers = await Promise.all(
      times(10, () =>
        world.api.call("rotateOrganizationKey", { token: world.token, id: organizationKey.id }),
      ),
    );
    expect(tally(answers.map((answer) => codeOf(answer) ?? answer.status))).to.deep.equal({
      "201": 1,
      NOT_FOUND: 9,
    });
    const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
    const alive = organizationKeys.filter(
      ({ lineageId, rotatedAt, revokedAt }) =>
        lineageId === organizationKey.lineageId && rotatedAt === null && revokedAt === null,
    );
    expect(alive).to.have.lengthOf(1);
  });

  it("a revoked key is dead on its next request; revoking again is a no-op, rotating is 404", async () => {
    const { key, organizationKey } = await mint();
    expect(await works(key)).to.equal(true);
    const revoked = await revoke(organizationKey.id);
    await world.api.refused("listAgents", 401, "UNAUTHORIZED", { token: key });
    expect(await revoke(organizationKey.id)).to.deep.equal(revoked);
    await world.api.refused("rotateOrganizationKey", 404, "NOT_FOUND", {
      token: world.token,
      id: organizationKey.id,
    });
  });

  it("revoking a rotated key is 404 and stops nothing: only the lineage's live key is revoked", async () => {
    const first = await mint();
    const second = await rotate(first.organizationKey.id);
    const { id } = first.organizationKey;
    await world.api.refused("revokeOrganizationKey", 404, "NOT_FOUND", { token: world.token, id });
    expect(await works(second.key)).to.equal(true);
    await revoke(second.organizationKey.id);
    expect(await works(second.key)).to.equal(false);
  });

  it("a key lives on when the person who minted it is demoted, and dies with no session", async () => {
    const { key } = await mint();
    const { userId } = world.organization;
    await world.service.db.collection("sessions").deleteMany({ userId });
    expect(await works(key)).to.equal(true);
    world = await newWorld();
  });

  it("a well-formed value that was never minted, and one with a letter changed, are both 401", async () => {
    await world.api.refused("listAgents", 401, "UNAUTHORIZED", {
      token: formatApiKey("organization", randomBytes),
    });
    const { key } = await mint();
    const changed = `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`;
    await world.api.refused("listAgents", 401, "UNAUTHORIZED", { token: changed });
  });

  it("lastUsedAt follows its use shortly", async () => {
    const { key, organizationKey } = await mint();
    await works(key);
    await until("the last use is on the record", async () => {
      const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, { token: world.token });
      return organizationKeys.find(({ id }) => id === organizationKey.id)?.lastUsedAt ?? null;
    });
  });

  it("a key acts for its own organization only, and none is minted for a container that is gone", async () => {
    const other = await newWorld();
    const key = await mintKey(other, ORGANIZATION_SCOPES);
    const { id } = await world.agent();
    await world.api.refused("getAgent", 404, "NOT_FOUND", { token: key, id });
    const archived = { archivedAt: new Date() };
    const { teamId } = other.organization;
    await other.service.db
      .collection<{ _id: string }>("teams")
      .updateOne({ _id: teamId }, { $set: archived });
    await elevate(other);
    await other.api.refused("mintOrganizationKey", 409, "CONTAINER_ARCHIVED", {
      token: other.token,
      body: request({ binding: { type: "team", id: teamId } }),
    });
  });
});
