import { prove } from "../support/access-proofs.ts";
import { expect } from "chai";
import { onceReachable } from "../support/api.ts";
import { PASSWORD } from "../support/service.ts";
import { join, newEmail, type Person, invite, type Role } from "../support/people.ts";
import { codeOf } from "../support/contract-api.ts";
import { elevate, newWorld, tally, times, type World } from "../support/world.ts";

describe("members", () => {
  let world: World;
  let owner: Person;
  beforeEach(async () => {
    world = await newWorld();
    const { email, userId } = world.organization;
    owner = { id: userId, email, token: world.token };
    await elevate(world);
  });

  const change = (by: Person, of: Person, role: Role) =>
    world.api.call("updateMember", { token: by.token, id: of.id, body: { role } });
  const remove = (by: Person, of: Person) => world.api.call("removeMember", { token: by.token, id: of.id });
  const roles = async (): Promise<Record<string, number>> => {
    const { organizationId } = world.organization;
    const users = await world.service.db.collection("users").find({ organizationId }).toArray();
    return tally(users.map(({ role }) => String(role)));
  };

  it("are listed to all of them, newest first, in pages, with roles and second factors", async () => {
    const [member, admin] = [await join(world, "member"), await join(world, "admin")];
    const { secret } = await world.api.ok("enrollTotp", 201, { token: admin.token });
    expect(secret).to.match(/^[A-Z2-7]+$/);
    const { members, nextCursor } = await world.api.ok("listMembers", 200, { token: member.token });
    expect(nextCursor).to.equal(null);
    expect(members.map(({ id, role }) => [id, role])).to.deep.equal([
      [admin.id, "admin"],
      [member.id, "member"],
      [owner.id, "owner"],
    ]);
    // Begun and not confirmed, it is no factor yet.
    expect(members.map(({ secondFactors }) => secondFactors)).to.deep.equal([[], [], []]);
    const first = await world.api.ok("listMembers", 200, { token: owner.token, query: { limit: "2" } });
    const query = { limit: "2", cursor: first.nextCursor ?? "" };
    const second = await world.api.ok("listMembers", 200, { token: owner.token, query });
    expect([...first.members, ...second.members]).to.deep.equal(members);
    const other = await newWorld();
    await other.api.refused("listMembers", 400, "BAD_CURSOR", { token: other.token, query });
  });

  it("a changed role binds open sessions at once, and a role that stays is no change", async () => {
    const person = await join(world, "member");
    const keys = () => world.api.call("listOrganizationKeys", { token: person.token });
    expect(codeOf(await keys())).to.equal("ROLE_REQUIRED");
    const { member } = await world.api.ok("updateMember", 200, {
      token: owner.token,
      id: person.id,
      body: { role: "admin" },
    });
    expect(member).to.deep.include({ id: person.id, role: "admin" });
    expect((await keys()).status).to.equal(200);
    expect((await change(owner, person, "admin")).status).to.equal(200);
    expect((await change(owner, person, "member")).status).to.equal(200);
    expect(codeOf(await keys())).to.equal("ROLE_REQUIRED");
    expect((await change(owner, owner, "owner")).status).to.equal(200);
  });

  it("only an owner makes, demotes or removes owners; an admin does all else, a member nothing", async () => {
    const [second, admin, other, member] = [
      await join(world, "owner"),
      await join(world, "admin"),
      await join(world, "admin"),
      await join(world, "member"),
    ];
    const TABLE: readonly (readonly [
      by: Person,
      of: Person,
      to: Role | "removed",
      outcome: string | number,
    ])[] = [
      [member, other, "member", "ROLE_REQUIRED"],
      [member, other, "removed", "ROLE_REQUIRED"],
      [member, member, "removed", "ROLE_REQUIRED"],
      [admin, member, "owner", "ROLE_REQUIRED"],
      [admin, second, "member", "ROLE_REQUIRED"],
      [admin, second, "admin", "ROLE_REQUIRED"],
      [admin, second, "removed", "ROLE_REQUIRED"],
      [admin, admin, "owner", "ROLE_REQUIRED"],
      [admin, member, "admin", 200],
      [admin, member, "member", 200],
      [admin, other, "removed", 204],
      [owner, admin, "owner", 200],
      [owner, second, "removed", 204],
      [admin, owner, "member", 200],
      [owner, admin, "member", "ROLE_REQUIRED"],
      [admin, admin, "member", "LAST_OWNER"],
      [admin, admin, "removed", "LAST_OWNER"],
      [admin, member, "removed", 204],
    ];
    for (const [index, [by, of, to, outcome]] of TABLE.entries()) {
      const answer = await (to === "removed" ? remove(by, of) : change(by, of, to));
      expect(codeOf(answer) ?? answer.status, `row ${index}`).to.equal(outcome);
    }
    expect(await roles()).to.deep.equal({ owner: 1, member: 1 });
  });

  it("a change needs step-up, and existence comes before the role of whom it is about", async () => {
    const admin = await join(world, "admin");
    const foreign = await newWorld();
    const ids = [foreign.organization.userId, "01a1fe1f-266a-71a6-aba2-6fc9c6ac782f", "me", "%00"];
    for (const id of ids) {
      for (const { token } of [owner, admin]) {
        await world.api.refused("updateMember", 404, "NOT_FOUND", { token, id, body: { role: "member" } });
        await world.api.refused("removeMember", 404, "NOT_FOUND", { token, id });
      }
    }
    const { organizationId } = world.organization;
    await prove(world.service.db, "session", { organizationId }, { stepUpExpiresAt: null });
    expect(codeOf(await change(owner, admin, "member"))).to.equal("STEP_UP_REQUIRED");
    expect(codeOf(await remove(owner, admin))).to.equal("STEP_UP_REQUIRED");
    expect(await roles()).to.deep.equal({ owner: 1, admin: 1 });
  });

  it("many changes at once are all answered, one after the other", async () => {
    const others = [await join(world, "admin"), await join(world, "admin"), await join(world, "admin")];
    const answers = await Promise.all(
      times(24, (index) => {
        const of = others[index % others.length] ?? owner;
        return onceReachable(() => change(owner, of, index % 2 === 0 ? "member" : "admin"));
      }),
    );
    expect(tally(answers.map(({ status }) => status))).to.deep.equal({ 200: 24 });
  });

  it("a removed member is out at once, with all sessions and factors, and can be invited again", async () => {
    const person = await join(world, "admin");
    const body = { email: person.email, password: PASSWORD };
    const { refreshToken } = await world.api.ok("signIn", 200, { body });
    await world.api.ok("enrollTotp", 201, { token: person.token });
    expect((await remove(owner, person)).status).to.equal(204);
    expect(codeOf(await remove(owner, person))).to.equal("NOT_FOUND");
    await world.api.refused("getMe", 401, "UNAUTHORIZED", { token: person.token });
    await world.api.refused("refreshSession", 401, "UNAUTHORIZED", { body: { refreshToken } });
    await world.api.refused("signIn", 401, "UNAUTHORIZED", { body });
    const { db } = world.service;
    expect(await db.collection("factors").countDocuments({ userId: person.id })).to.equal(0);
    expect(await db.collection("sessions").countDocuments({ userId: person.id, revokedAt: null })).to.equal(
      0,
    );
    const again = await invite(world, "member", person.email);
    const accept = { token: again.token, name: "Back", password: PASSWORD };
    const { user } = await world.api.ok("acceptInvite", 201, { body: accept });
    expect(user.id).not.to.equal(person.id);
    expect(user).to.deep.include({ email: person.email, role: "member", secondFactors: [] });
  });

  it("a binding goes from invite to member, applies at once, and names own containers only", async () => {
    await elevate(world);
    const { teamId, projectId } = world.organization;
    const binding = { type: "team", ids: [teamId] } as const;
    const email = newEmail();
    const body = { email, role: "member", binding } as const;
    const invited = await world.api.ok("createInvite", 201, { token: world.token, body });
    expect(invited.invite.binding).to.deep.equal(binding);
    const accept = { token: invited.token ?? "", name: "Ada", password: PASSWORD };
    const { token = "", user } = await world.api.ok("acceptInvite", 201, { body: accept });
    expect(user.binding).to.deep.equal(binding);
    await world.api.refused("getProject", 403, "OUTSIDE_BINDING", { token, id: projectId });
    const rightsOf = (rights: object) => ({ token: world.token, id: user.id, body: rights });
    const project = { type: "project", ids: [projectId] };
    await world.api.ok("updateMember", 200, rightsOf({ role: "member", binding: project }));
    await world.api.ok("getProject", 200, { token, id: projectId });
    // Left out, it stays.
    const { member } = await world.api.ok("updateMember", 200, rightsOf({ role: "member" }));
    expect(member.binding).to.deep.equal(project);
    await world.api.refused("listMembers", 403, "OUTSIDE_BINDING", { token });
    await world.api.refused("updateMember", 400, "VALIDATION_FAILED", rightsOf({ role: "admin", binding }));
    const foreign = { type: "team", ids: [(await newWorld()).organization.teamId] };
    await world.api.refused("updateMember", 404, "NOT_FOUND", rightsOf({ role: "member", binding: foreign }));
    await world.api.ok("updateMember", 200, rightsOf({ role: "auditor" }));
    await world.api.ok("listAuditLog", 200, { token });
    await world.api.refused("stopOrganization", 403, "ROLE_REQUIRED", { token, body: {} });
  });
});
