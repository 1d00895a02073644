import { expect } from "chai";
import { withoutEntry } from "../../server/admin/record-command.ts";
import { createAuthContext } from "../../src/identity/context.ts";
import { createAuthService } from "../../src/identity/service.ts";
import { beginSession } from "../../src/identity/sign-in.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import { resetPassword } from "../../src/identity/password-change.ts";
import { newAuthenticator, withPasskey } from "./passkey-support.ts";
import {
  BASE_URL,
  codeAt,
  countOutcomes,
  type Fixture,
  fixture,
  MINUTE,
  outcomeOf,
  PASSWORD,
  refusalOf,
  valueOf,
} from "./support.ts";

const NEWER = "Zk-9-tuvbex-Lp";

describe("what a session may do by its sign-in", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  it("the first factor needs a sign-in of the last 5 minutes, which no refresh makes anew", async () => {
    const signedIn = await the.signIn();
    const [early, late] = [await the.session(), await the.session()];
    the.clock.advance(5 * MINUTE - 1);
    const begun = newAuthenticator().create(valueOf(await the.auth.passkeyOptions(early)));
    the.clock.advance(1);
    const refreshed = valueOf(await the.auth.refresh({ refreshToken: signedIn.refreshToken }));
    const thief = valueOf(await the.auth.authenticateSession(refreshed.token));
    for (const principal of [late, thief]) {
      const refusal = refusalOf(await the.auth.enrollTotp(principal));
      expect(refusal.code).to.equal("STEP_UP_REQUIRED");
      expect(refusal.message).to.include("sign in again");
      expect(outcomeOf(await the.auth.passkeyOptions(principal))).to.equal("STEP_UP_REQUIRED");
    }
    // Begun in time, it may end just after.
    const named = { name: "Laptop", response: begun };
    expect(outcomeOf(await the.auth.enrollPasskey(early, named))).to.equal(null);
  });

  it("a code generator that was begun in time may be confirmed just after", async () => {
    const principal = await the.session();
    const { secret } = valueOf(await the.auth.enrollTotp(principal));
    the.clock.advance(5 * MINUTE);
    const code = await codeAt(secret, the.clock.read());
    expect(outcomeOf(await the.auth.confirmTotp(principal, { code }))).to.equal(null);
  });

  it("a further factor needs step-up, however fresh the sign-in", async () => {
    await withPasskey(the);
    const fresh = await the.session();
    expect(refusalOf(await the.auth.enrollTotp(fresh)).message).not.to.include("sign in again");
    expect(outcomeOf(await the.auth.passkeyOptions(fresh))).to.equal("STEP_UP_REQUIRED");
  });

  const contextOf = async () => {
    const { db } = the.database;
    const deps = { db, masterKey: the.masterKey, baseUrl: BASE_URL, clock: the.clock.read };
    const transaction = withoutEntry(transactionsOf(db.client));
    return { ...(await createAuthContext(deps)), transaction };
  };

  for (const how of ["changed", "reset"] as const) {
    it(`a sign-in that read the password before it was ${how} gets a session that is over`, async () => {
      const context = await contextOf();
      const read = await the.collections.users.findOne({ _id: the.userId });
      if (read === null) throw new Error("there is an owner");
      const own = await the.session();
      const change = { currentPassword: PASSWORD, newPassword: NEWER };
      if (how === "changed") valueOf(await the.auth.changePassword(own, change));
      else valueOf(await resetPassword(context, read, NEWER));
      const late = await beginSession(context, read, ["pwd"]);
      expect(outcomeOf(await the.auth.authenticateSession(late.token))).to.equal("UNAUTHORIZED");
      const { refreshToken } = late;
      expect(outcomeOf(await the.auth.refresh({ refreshToken }))).to.equal("UNAUTHORIZED");
    });
  }

  it("a session that ended after its change of the password was let in changes nothing", async () => {
    const [principal, other] = [await the.session(), await the.session()];
    valueOf(await the.auth.endSession(other, principal.sessionId));
    const change = { currentPassword: PASSWORD, newPassword: NEWER };
    expect(outcomeOf(await the.auth.changePassword(principal, change))).to.equal("UNAUTHORIZED");
    await the.signIn();
  });

  it("of two changes at once with one current password one comes through", async () => {
    const principal = await the.session();
    const results = await Promise.all(
      [NEWER, `${NEWER}x`].map((newPassword) =>
        the.auth.changePassword(principal, { currentPassword: PASSWORD, newPassword }),
      ),
    );
    expect(countOutcomes(results)).to.deep.equal({ ok: 1, PASSWORD_INVALID: 1 });
    // The session that changed it goes on.
    const { sessionId } = principal;
    const [session, user] = await Promise.all([
      the.collections.sessions.findOne({ _id: sessionId }),
      the.collections.users.findOne({ _id: the.userId }),
    ]);
    expect([session?.revokedAt, session?.epoch]).to.deep.equal([null, user?.sessionsEpoch]);
  });

  it("a session is said to be seen once a minute has gone since, and not sooner", async () => {
    const seen: string[] = [];
    const auth = await createAuthService({
      db: the.database.db,
      masterKey: the.masterKey,
      baseUrl: BASE_URL,
      clock: the.clock.read,
      onSessionUsed: (sessionId) => void seen.push(sessionId),
    });
    const { of, token } = await the.signIn();
    the.clock.advance(MINUTE - 1);
    valueOf(await auth.authenticateSession(token));
    expect(seen).to.deep.equal([]);
    the.clock.advance(1);
    valueOf(await auth.authenticateSession(token));
    expect(seen).to.deep.equal([of.sessionId]);
  });
});
