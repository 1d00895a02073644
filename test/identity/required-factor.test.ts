import { expect } from "chai";
import { codeOf } from "../support/contract-api.ts";
import { authenticatorFor, enrolPasskey } from "../support/passkeys.ts";
import { invite, join } from "../support/people.ts";
import { PASSWORD } from "../support/service.ts";
import { elevate, newWorld, organizationKey, times, type World } from "../support/world.ts";
import { entriesOf } from "../audit/support.ts";

const CODE = "SECOND_FACTOR_ENROLMENT_REQUIRED";

describe("an organization that requires a second factor", () => {
  let world: World;
  beforeEach(async () => {
    world = await newWorld();
    await elevate(world);
  });

  const set = (requireSecondFactor: boolean) =>
    world.api.call("updateOrganization", { token: world.token, body: { requireSecondFactor } });
  const require = async () => {
    await enrolPasskey(world, authenticatorFor(world));
    await elevate(world);
    expect((await set(true)).status).to.equal(200);
  };
  const accept = (token: string) =>
    world.api.ok("acceptInvite", 201, { body: { token, name: "P", password: PASSWORD } });
  const asked = async (token: string) => (await world.api.ok("getMe", 200, { token })).secondFactorEnrolment;

  it("is asked for by an owner who has one, and by no other user", async () => {
    expect(codeOf(await set(true)), "without one of their own").to.equal(CODE);
    await require();
    const { organization } = await world.api.ok("getOrganization", 200, { token: world.token });
    expect(organization).to.include({ requireSecondFactor: true, walletOwner: null });
    const admin = await join(world, "admin");
    await enrolPasskey(world, authenticatorFor(world), { token: admin.token });
    const body = { requireSecondFactor: false };
    await world.api.refused("updateOrganization", 403, "ROLE_REQUIRED", { token: admin.token, body });
    const entries = await entriesOf(world.service.db, world.organization.organizationId);
    expect(
      entries.findLast(({ action, result }) => action === "updateOrganization" && result.code === null),
    ).to.deep.include({ before: { requireSecondFactor: false }, after: { requireSecondFactor: true } });
  });

  it("lets who has none do nothing but enrol one, from the next request on, and then everything", async () => {
    const member = await join(world, "member");
    expect(await asked(member.token)).to.equal(null);
    await require();
    const { token } = member;
    for (const id of ["listMembers", "listAgents", "getOrganization"] as const)
      await world.api.refused(id, 403, CODE, { token });
    expect(await asked(token)).to.equal("required");
    await world.api.ok("listSessions", 200, { token });
    await enrolPasskey(world, authenticatorFor(world), { token });
    expect(await asked(token)).to.equal(null);
    await world.api.ok("listMembers", 200, { token });
    await world.api.ok("listMembers", 200, { token: world.token });
  });

  it("leaves keys alone, and lets everybody go on once it is lifted", async () => {
    const [member, key] = [await join(world, "member"), await organizationKey(world)];
    await require();
    await world.api.ok("listAgents", 200, { token: key.token });
    await world.api.refused("listAgents", 403, CODE, { token: member.token });
    await elevate(world);
    expect((await set(false)).status).to.equal(200);
    await world.api.ok("listAgents", 200, { token: member.token });
  });

  it("keeps everybody's last factor, a member's too", async () => {
    const member = await join(world, "member");
    const { id } = await enrolPasskey(world, authenticatorFor(world), { token: member.token });
    await require();
    await world.api.refused("removePasskey", 409, "LAST_FACTOR", { token: member.token, id });
    expect((await set(false)).status).to.equal(200);
    await world.api.ok("removePasskey", 204, { token: member.token, id });
  });

  it("holds for who joins later, and for those who join at the very moment", async () => {
    const invited = [];
    for (const _each of times(4, () => 0)) invited.push(await invite(world, "member"));
    const [, ...sessions] = await Promise.all([
      require(),
      ...invited.slice(1).map(({ token }) => accept(token)),
    ]);
    const late = await accept(invited[0]?.token ?? "");
    expect(late.secondFactorEnrolment).to.equal("required");
    for (const { token } of [...sessions, late])
      await world.api.refused("listMembers", 403, CODE, token === undefined ? {} : { token });
  });

  it("owners and admins without a factor are told to enrol one, members are not", async () => {
    const { email, password } = world.organization;
    const session = await world.api.ok("signIn", 200, { body: { email, password } });
    expect(session.secondFactorEnrolment).to.equal("recommended");
    for (const [role, said] of [
      ["admin", "recommended"],
      ["member", null],
    ] as const) {
      const { token } = await invite(world, role);
      expect((await accept(token)).secondFactorEnrolment, role).to.equal(said);
    }
  });
});
