import { expect } from "chai";
import type { SessionPrincipal } from "../../server/auth/principal.ts";
import type { Role } from "../../server/auth/documents.ts";
import { atOnce, countOutcomes, fixture, outcomeOf, PASSWORD, valueOf, type Fixture } from "./support.ts";

describe("Owners, among requests that were let in before either was carried out", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  let joined = 0;
  async function join(by: SessionPrincipal, role: Role): Promise<SessionPrincipal> {
    joined += 1;
    const { token } = valueOf(await the.auth.createInvite(by, { email: `p${joined}@example.test`, role }));
    const session = valueOf(await the.auth.acceptInvite({ token, name: "P", password: PASSWORD }));
    return valueOf(await the.auth.authenticateSession(session.token));
  }
  const owners = () => the.collections.users.countDocuments({ role: "owner" });

  it("two demote each other: exactly one comes through, the other is LAST_OWNER, twenty times over", async () => {
    const one = await the.session();
    const other = await join(one, "owner");
    for (let round = 0; round < 20; round += 1) {
      const results = await Promise.all([
        the.auth.changeRole(one, other.userId, "member"),
        the.auth.changeRole(other, one.userId, "admin"),
      ]);
      expect(countOutcomes(results)).to.deep.equal({ ok: 1, LAST_OWNER: 1 });
      expect(await owners()).to.equal(1);
      await the.collections.users.updateMany({}, { $set: { role: "owner" } });
    }
  });

  it("eight remove themselves at once, beside one who is demoted: one owner is left", async () => {
    const first = await the.session();
    const others = [];
    for (let index = 0; index < 8; index += 1) others.push(await join(first, "owner"));
    const results = await Promise.all([
      ...others.map((principal) => the.auth.removeMember(principal, principal.userId)),
      the.auth.changeRole(first, first.userId, "member"),
    ]);
    expect(countOutcomes(results)).to.deep.equal({ ok: 8, LAST_OWNER: 1 });
    expect(await owners()).to.equal(1);
  });

  it("who was demoted or removed since they were let in changes nobody any more", async () => {
    const first = await the.session();
    const [second, third] = [await join(first, "owner"), await join(first, "owner")];
    valueOf(await the.auth.changeRole(first, second.userId, "admin"));
    expect(outcomeOf(await the.auth.changeRole(second, third.userId, "member"))).to.equal("ROLE_REQUIRED");
    valueOf(await the.auth.removeMember(first, second.userId));
    expect(outcomeOf(await the.auth.removeMember(second, third.userId))).to.equal("ROLE_REQUIRED");
    expect(await owners()).to.equal(2);
  });

  it("a removal repeated at once happens once", async () => {
    const first = await the.session();
    const second = await join(first, "member");
    const results = await atOnce(6, () => the.auth.removeMember(first, second.userId));
    expect(countOutcomes(results)).to.deep.equal({ ok: 1, NOT_FOUND: 5 });
  });
});
