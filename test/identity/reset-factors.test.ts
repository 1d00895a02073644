import { expect } from "chai";
import { AUDIT_LOG } from "../../src/store/audit-documents.ts";
import { resetSecondFactors } from "../../server/admin/reset-second-factors.ts";
import { accessProofsOf } from "../support/access-proofs.ts";
import { createOrganizationWithOwner } from "../../src/identity/create-organization.ts";
import { verifyMasterKey } from "../../src/secrets/verify-master-key.ts";
import { entriesOf } from "../audit/support.ts";
import { join, newAuthenticator, withPasskey } from "./passkey-support.ts";
import {
  codeAt,
  EMAIL,
  fixture,
  type Fixture,
  laterCode,
  masterKeyTextOf,
  refusalOf,
  valueOf,
  withTotp,
} from "./support.ts";

const MASTER_KEY = masterKeyTextOf("k");

describe("npm run admin -- reset-second-factors", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  const envWith = (changes: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
    const uri = new URL(String(process.env["TEST_MONGODB_URI"]));
    uri.pathname = `/${the.database.db.databaseName}`;
    return { MONGODB_URI: uri.href, MASTER_KEY, ...changes };
  };
  const reset = (email = EMAIL, changes: NodeJS.ProcessEnv = {}) =>
    resetSecondFactors(envWith(changes), email);
  const factors = (userId: string) => the.collections.factors.countDocuments({ userId });

  it("removes all factors and sessions; the password signs in, and a first factor is enrolled", async () => {
    const other = await join(the, await the.session(), "member");
    const { passkey: like } = await withPasskey(the, other);
    const before = await withTotp(the);
    await the.collections.passkeys.insertOne({
      ...like,
      _id: "pky_lost",
      userId: the.userId,
      credentialId: "lost",
      name: "Lost phone",
    });
    const { token } = await the.signIn(await laterCode(the, before.secret));

    const done = await reset(" ada@EXAMPLE.test ");

    expect(done.removed).to.deep.equal({ passkeys: ["Lost phone"], totp: true });
    expect(done.sessionsEnded).to.be.greaterThanOrEqual(2);
    expect(await factors(the.userId)).to.equal(0);
    expect(refusalOf(await the.auth.authenticateSession(token)).code).to.equal("UNAUTHORIZED");
    const { passkey } = await withPasskey(the);
    expect(passkey.userId).to.equal(the.userId);
  });

  it("leaves everybody else's factors and sessions alone", async () => {
    const owner = await the.session();
    const other = await join(the, owner, "admin");
    await withPasskey(the, other);
    await withPasskey(the);
    const { organizationId, userId } = await reset();
    expect({ organizationId, userId }).to.deep.equal({
      organizationId: the.organizationId,
      userId: the.userId,
    });
    expect(await factors(other.userId)).to.equal(1);
    const session = await the.collections.sessions.findOne({ _id: other.sessionId });
    expect(session?.revokedAt).to.equal(null);
  });

  it("leaves an entry with whom it was about and what was removed", async () => {
    await withPasskey(the);
    await reset();
    const [entry, ...more] = await entriesOf(the.database.db, the.organizationId);
    expect(more).to.deep.equal([]);
    expect(entry).to.deep.include({
      action: "resetSecondFactors",
      actor: { type: "system", id: "command" },
      resource: { type: "user", id: the.userId },
      from: { address: null, surface: "admin", via: "reset-second-factors" },
      before: { passkeys: ["Laptop"], totp: false },
      after: { passkeys: [], totp: false },
    });
  });

  it("an enrolment that was let in before and ends after it leaves no factor behind", async () => {
    const principal = await the.session();
    const authenticator = newAuthenticator();
    const response = authenticator.create(valueOf(await the.auth.passkeyOptions(principal)));
    await reset();
    const passkey = await the.auth.enrollPasskey(principal, { name: "Thief's", response });
    expect(refusalOf(passkey).code).to.equal("UNAUTHORIZED");
    const { secret } = valueOf(await the.auth.enrollTotp(principal));
    const code = await codeAt(secret, the.clock.read());
    const totp = await the.auth.confirmTotp(principal, { code });
    expect(refusalOf(totp).code).to.equal("UNAUTHORIZED");
    expect(valueOf(await the.auth.authenticateSession((await the.signIn()).token)).userId).to.equal(
      the.userId,
    );
  });

  it("does nothing where its entry can't be written", async () => {
    await withPasskey(the);
    await the.database.db.createCollection(AUDIT_LOG, { validator: { action: "nothing" } });
    expect(await messageOf(reset())).not.to.equal("it was done");
    expect(await factors(the.userId)).to.equal(1);
  });

  it("asks which organization is meant where the e-mail has accounts in several", async () => {
    await withPasskey(the);
    const { organizationId: elsewhere } = valueOf(
      await createOrganizationWithOwner(the.database.db, accessProofsOf(the.masterKey), {
        name: "Difference Engines",
        ownerEmail: EMAIL.toLowerCase(),
        ownerPassword: "another long password",
        plan: "free",
      }),
    );
    const message = await messageOf(reset());
    expect(message).to.include(the.organizationId).and.to.include(elsewhere);
    expect(await factors(the.userId)).to.equal(1);
    const { userId } = await resetSecondFactors(envWith({}), EMAIL, the.organizationId);
    expect(userId).to.equal(the.userId);
    expect(await factors(the.userId)).to.equal(0);
  });

  it("does nothing for an unknown e-mail", async () => {
    await withPasskey(the);
    expect(await messageOf(reset("nobody@example.test"))).to.equal(
      "Nobody has the e-mail nobody@example.test.",
    );
    expect(await factors(the.userId)).to.equal(1);
  });

  it("does nothing without the service's master key, by which its entry is sealed", async () => {
    await verifyMasterKey(the.database.db, the.masterKey);
    await withPasskey(the);
    expect(await messageOf(reset(EMAIL, { MASTER_KEY: masterKeyTextOf("x") }))).to.include("not the one");
    const elsewhere = { MASTER_KEY: "", DATA_DIR: "/nonexistent" };
    expect(await messageOf(reset(EMAIL, elsewhere))).to.include("set MASTER_KEY");
    expect(await factors(the.userId)).to.equal(1);
    expect(await entriesOf(the.database.db, the.organizationId)).to.deep.equal([]);
  });
});

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it was done",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
