import { expect } from "chai";
import { authCollections } from "../../src/store/identity-documents.ts";
import { codeOf } from "../support/contract-api.ts";
import { join, type Person } from "../support/people.ts";
import { elevate, newWorld, tally, times, until, type World } from "../support/world.ts";
import { entriesOf } from "../audit/support.ts";

interface Key {
  readonly id: string;
  readonly value: string;
}

describe("organization keys of who can't mint any more", () => {
  let world: World;
  let admin: Person;
  before(async () => {
    world = await newWorld();
  });
  beforeEach(async () => {
    admin = await join(world, "admin");
  });

  const CHOICE = { name: "CI", scopes: ["agents:read"], binding: { type: "organization" } };

  async function minted(by: Pick<Person, "token"> = admin): Promise<Key> {
    const { key, organizationKey } = await world.api.ok("mintOrganizationKey", 201, {
      token: by.token,
      body: CHOICE,
    });
    return { id: organizationKey.id, value: key };
  }

  async function rotated(by: Pick<Person, "token">, { id }: Key): Promise<Key> {
    const { key, organizationKey } = await world.api.ok("rotateOrganizationKey", 201, {
      token: by.token,
      id,
    });
    return { id: organizationKey.id, value: key };
  }

  const outcome = async ({ value }: Key) => {
    const answer = await world.api.call("listAgents", { token: value });
    return codeOf(answer) ?? answer.status;
  };
  const owner = () => ({ token: world.token });
  const demote = (role: "member" | "admin", query = {}) =>
    world.api.ok("updateMember", 200, { ...owner(), id: admin.id, query, body: { role } });
  const remove = (query = {}) => world.api.ok("removeMember", 204, { ...owner(), id: admin.id, query });
  const entry = async (action: string) => {
    const entries = await entriesOf(world.service.db, world.organization.organizationId);
    return entries.findLast((each) => each.action === action && each.resource.id === admin.id);
  };

  it("removal revokes the keys whose values they were shown, at once, and no others", async () => {
    const [theirs, handedOn, owners] = [await minted(), await minted(), await minted(owner())];
    const [successor, taken] = [await rotated(owner(), handedOn), await rotated(admin, owners)];
    expect(await Promise.all([theirs, successor, taken].map(outcome))).to.deep.equal([200, 200, 200]);
    await remove();
    expect(await outcome(theirs)).to.equal("UNAUTHORIZED");
    expect(await outcome(taken), "minted by the owner, rotated by who left").to.equal("UNAUTHORIZED");
    expect(await outcome(successor), "rotated by the owner since").to.equal(200);
    const removed = await entry("removeMember");
    expect(removed).to.deep.include({ before: { role: "admin", email: admin.email } });
    expect(tally(idsIn(removed?.after, "revokedOrganizationKeys"))).to.deep.equal(
      tally([theirs.id, taken.id]),
    );
    const { organizationKeys } = await world.api.ok("listOrganizationKeys", 200, owner());
    expect(organizationKeys.find(({ id }) => id === theirs.id)?.revokedAt).not.to.equal(null);
  });

  it("demotion to a member revokes them and answers with them; to an admin it leaves them", async () => {
    const key = await minted();
    await demote("admin");
    expect(await outcome(key)).to.equal(200);
    const { revokedOrganizationKeys } = await demote("member");
    expect(revokedOrganizationKeys).to.deep.equal([{ id: key.id, name: "CI", last4: key.value.slice(-4) }]);
    expect(await outcome(key)).to.equal("UNAUTHORIZED");
    expect(await entry("updateMember")).to.deep.include({
      before: { role: "admin" },
      after: { role: "member", revokedOrganizationKeys: [key.id] },
    });
  });

  it("an owner who becomes an admin, who may mint, keeps them", async () => {
    const second = await join(world, "owner");
    const key = await minted(second);
    const { revokedOrganizationKeys } = await world.api.ok("updateMember", 200, {
      ...owner(),
      id: second.id,
      body: { role: "admin" },
    });
    expect([revokedOrganizationKeys, await outcome(key)]).to.deep.equal([[], 200]);
  });

  it("they stay good where that is asked for, and the audit log says which", async () => {
    const key = await minted();
    const { revokedOrganizationKeys } = await demote("member", { keepKeys: "true" });
    expect([revokedOrganizationKeys, await outcome(key)]).to.deep.equal([[], 200]);
    expect(await entry("updateMember")).to.deep.include({
      after: { role: "member", keptOrganizationKeys: [key.id] },
    });
    await remove({ keepKeys: "true" });
    expect(await outcome(key)).to.equal(200);
    expect(idsIn((await entry("removeMember"))?.after, "keptOrganizationKeys")).to.deep.equal([key.id]);
  });

  it("what is neither true nor false is refused, and no member is removed", async () => {
    const request = { ...owner(), id: admin.id, query: { keepKeys: "yes" } };
    await world.api.refused("removeMember", 400, "VALIDATION_FAILED", request);
    await world.api.ok("getMe", 200, { token: admin.token });
  });

  it("a mint waits for a demotion that is under way, and is refused once that is there", async () => {
    const { db } = world.service;
    const users = authCollections(db).users;
    const conflicts = async () => {
      const { transactions } = await db.admin().serverStatus();
      return Number(transactions.totalAborted);
    };
    const session = db.client.startSession();
    session.startTransaction();
    try {
      await users.updateOne({ _id: admin.id }, { $set: { role: "member" } }, { session });
      const before = await conflicts();
      let isAnswered = false;
      const minting = world.api
        .call("mintOrganizationKey", { token: admin.token, body: CHOICE })
        .finally(() => (isAnswered = true));
      await until("the mint meets the demotion", async () =>
        isAnswered || (await conflicts()) > before ? true : null,
      );
      await session.commitTransaction();
      expect(codeOf(await minting)).to.equal("ROLE_REQUIRED");
    } finally {
      await session.endSession();
    }
    const made = { "createdBy.id": admin.id };
    expect(await db.collection("organization_keys").countDocuments(made)).to.equal(0);
  });

  it("mints and rotations that race the removal leave no live key behind", async () => {
    for (const _round of times(3, () => 0)) {
      admin = await join(world, "admin");
      await elevate(world);
      const first = await minted();
      const [, ...raced] = await Promise.all([
        remove(),
        ...times(6, () => world.api.call("mintOrganizationKey", { token: admin.token, body: CHOICE })),
        world.api.call("rotateOrganizationKey", { token: admin.token, id: first.id }),
      ]);
      for (const answer of raced)
        expect(codeOf(answer) ?? 201).to.be.oneOf([201, "UNAUTHORIZED", "ROLE_REQUIRED", "NOT_FOUND"]);
      const alive = { "createdBy.id": admin.id, rotatedAt: null, revokedAt: null };
      expect(await world.service.db.collection("organization_keys").countDocuments(alive)).to.equal(0);
    }
  });
});

/** The ids under that name in what an entry says. */
function idsIn(after: unknown, name: string): string[] {
  if (typeof after !== "object" || after === null) return [];
  const named = Object.entries(after).find(([each]) => each === name)?.[1];
  return Array.isArray(named) ? named.map(String) : [];
}
