import { expect } from "chai";
import { shortOrSoak } from "../support/soak.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import type { Role } from "../../src/contract/types.ts";
import type { AuditedTransaction } from "../../src/audit/notes.ts";
import { createAuthContext } from "../../src/identity/context.ts";
import { changeRole, removeMember } from "../../src/identity/members.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import {
  atOnce,
  BASE_URL,
  countOutcomes,
  fixture,
  outcomeOf,
  PASSWORD,
  valueOf,
  type Fixture,
} from "./support.ts";

describe("Owners, among requests that were admitted before either was executed", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  let joined = 0;
  async function join(by: SessionPrincipal, role: Role): Promise<SessionPrincipal> {
    joined += 1;
    const { token } = valueOf(await the.auth.createInvite(by, { email: `p${joined}@example.test`, role }));
    const session = valueOf(
      await the.auth.acceptInvite({ token: token ?? "", name: "P", password: PASSWORD }),
    );
    return valueOf(await the.auth.authenticateSession(session.token));
  }
  const owners = () => the.collections.users.countDocuments({ role: "owner" });

  it("two demote each other, again and again: one succeeds each time, the other is LAST_OWNER", async () => {
    const one = await the.session();
    const other = await join(one, "owner");
    for (let round = 0; round < shortOrSoak(6, 20); round += 1) {
      const results = await Promise.all([
        the.auth.changeRole(one, other.userId, { role: "member" }),
        the.auth.changeRole(other, one.userId, { role: "admin" }),
      ]);
      expect(countOutcomes(results)).to.deep.equal({ ok: 1, LAST_OWNER: 1 });
      expect(await owners()).to.equal(1);
      await the.prove("user", {}, { role: "owner" });
    }
  });

  for (const how of ["remove", "both"] as const) {
    it(`two owners who ${how === "remove" ? "remove" : "remove and demote"} each other at once: one is left`, async () => {
      const one = await the.session();
      const other = await join(one, "owner");
      const results = await Promise.all([
        how === "remove"
          ? the.auth.removeMember(one, other.userId)
          : the.auth.changeRole(one, other.userId, { role: "member" }),
        the.auth.removeMember(other, one.userId),
      ]);
      expect(countOutcomes(results)["ok"], JSON.stringify(results)).to.equal(1);
      expect(await owners()).to.equal(1);
    });
  }

  it("eight remove themselves at once, beside one who is demoted: one owner is left", async () => {
    const first = await the.session();
    const others = [];
    for (let index = 0; index < 8; index += 1) others.push(await join(first, "owner"));
    const results = await Promise.all([
      ...others.map((principal) => the.auth.removeMember(principal, principal.userId)),
      the.auth.changeRole(first, first.userId, { role: "member" }),
    ]);
    expect(countOutcomes(results)).to.deep.equal({ ok: 8, LAST_OWNER: 1 });
    expect(await owners()).to.equal(1);
  });

  it("who was demoted or removed since they were let in changes no member any more", async () => {
    const first = await the.session();
    const [second, third] = [await join(first, "owner"), await join(first, "owner")];
    valueOf(await the.auth.changeRole(first, second.userId, { role: "admin" }));
    expect(outcomeOf(await the.auth.changeRole(second, third.userId, { role: "member" }))).to.equal(
      "ROLE_REQUIRED",
    );
    valueOf(await the.auth.removeMember(first, second.userId));
    expect(outcomeOf(await the.auth.removeMember(second, third.userId))).to.equal("ROLE_REQUIRED");
    expect(await owners()).to.equal(2);
  });

  it("what a transaction was about to do is told to the audit log only once it is done", async () => {
    const first = await the.session();
    const [second, third] = [await join(first, "owner"), await join(first, "admin")];
    const { collections, database, masterKey } = the;
    const plain = transactionsOf(database.db.client);
    const told: unknown[] = [];
    const transaction: AuditedTransaction = async (work) => {
      const { entry, value } = await plain(work);
      if (entry !== null) told.push([entry.before, entry.after]);
      return value;
    };
    const deps = { db: database.db, masterKey, baseUrl: BASE_URL };
    const context = { ...(await createAuthContext(deps)), transaction };
    /** Runs it for nothing at first, as against a conflict; a member is demoted before it is run again. */
    const twice: AuditedTransaction = async (work) => {
      const session = database.db.client.startSession();
      session.startTransaction();
      await work(session);
      await session.abortTransaction();
      await session.endSession();
      await collections.users.updateOne({ _id: second.userId }, { $set: { role: "member" } });
      return await transaction(work);
    };
    const conflicting = { ...context, transaction: twice };
    for (const act of [
      () => changeRole(conflicting, second, third.userId, { role: "member" }),
      () => removeMember(conflicting, second, third.userId),
    ]) {
      await collections.users.updateOne({ _id: second.userId }, { $set: { role: "owner" } });
      expect(outcomeOf(await act())).to.equal("ROLE_REQUIRED");
      expect(told).to.deep.equal([]);
    }
    valueOf(await changeRole(context, first, third.userId, { role: "member" }));
    expect(told).to.deep.equal([[{ role: "admin" }, { role: "member" }]]);
  });

  it("a removal repeated at once happens once", async () => {
    const first = await the.session();
    const second = await join(first, "member");
    const results = await atOnce(6, () => the.auth.removeMember(first, second.userId));
    expect(countOutcomes(results)).to.deep.equal({ ok: 1, NOT_FOUND: 5 });
  });
});
