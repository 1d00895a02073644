import { accessProofsOf } from "../support/access-proofs.ts";
import { expect } from "chai";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { resetPassword } from "../../src/identity/password-change.ts";
import { Passwords } from "../../src/identity/passwords.ts";
import { transactionsOf } from "../../src/store/transactions.ts";
import { withoutEntry } from "../../server/admin/record-command.ts";
import { statusOf } from "../../src/domain/errors.ts";
import {
  atOnce,
  codeAt,
  countOutcomes,
  EMAIL,
  fixture,
  laterCode,
  MINUTE,
  outcomeOf,
  PASSWORD,
  refusalOf,
  STEP,
  valueOf,
  withTotp,
  wrongCode,
  type Fixture,
} from "./support.ts";

describe("Enrolment of TOTP", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  const signIn = (code?: string) => the.auth.signIn({ email: EMAIL, password: PASSWORD, code });
  const stepUp = (principal: SessionPrincipal, code: string) =>
    the.auth.stepUp(principal, { method: "totp", code });
  const code = (secret: string, offsetSteps = 0) =>
    codeAt(secret, new Date(the.clock.read().getTime() + offsetSteps * STEP));
  /** The session as the next request finds it. */
  const again = async (token: string) => valueOf(await the.auth.authenticateSession(token));

  /** What a step-up that was let through has put on the session's record. */
  const steppedUp = async ({ sessionId }: SessionPrincipal) => {
    const session = await the.collections.sessions.findOne({ _id: sessionId });
    return { stepUpExpiresAt: session?.stepUpExpiresAt ?? null };
  };

  it("gives a base32 secret of 160 bits and an otpauth URL of it", async () => {
    const principal = await the.session();
    const { secret, otpauthUrl } = valueOf(await the.auth.enrollTotp(principal));
    expect(secret).to.match(/^[A-Z2-7]{32}$/);
    const url = new URL(otpauthUrl);
    expect(`${url.protocol}//${url.host}`).to.equal("otpauth://totp");
    expect(decodeURIComponent(url.pathname)).to.equal(`/Agent Spending Control:${EMAIL}`);
    expect(url.searchParams.get("secret")).to.equal(secret);
  });

  it("changes nothing until it is confirmed", async () => {
    const principal = await the.session();
    valueOf(await the.auth.enrollTotp(principal));
    expect(valueOf(await the.auth.me(principal)).user.secondFactors).to.deep.equal([]);
    expect(outcomeOf(await signIn())).to.equal(null);
  });

  it("is confirmed by a code, 403 by a wrong one or with nothing enrolled", async () => {
    const principal = await the.session();
    const early = refusalOf(await the.auth.confirmTotp(principal, { code: "123456" }));
    expect([early.code, statusOf(early)]).to.deep.equal(["SECOND_FACTOR_INVALID", 403]);
    const { secret } = valueOf(await the.auth.enrollTotp(principal));
    const bad = { code: await wrongCode(secret, the.clock.read()) };
    const wrong = refusalOf(await the.auth.confirmTotp(principal, bad));
    expect([wrong.code, statusOf(wrong)]).to.deep.equal(["SECOND_FACTOR_INVALID", 403]);
    const { user } = valueOf(await the.auth.confirmTotp(principal, { code: await code(secret) }));
    expect(user.secondFactors).to.deep.equal(["totp"]);
  });

  it("a code of a clock that is minutes off is refused, and how wrong the clock is said", async () => {
    const principal = await the.session();
    const { secret } = valueOf(await the.auth.enrollTotp(principal));
    for (const [steps, said] of [
      [2, "60 seconds ahead"],
      [-20, "600 seconds behind"],
    ] as const) {
      const late = refusalOf(await the.auth.confirmTotp(principal, { code: await code(secret, steps) }));
      expect([late.code, late.message.includes(said)], late.message).to.deep.equal([
        "SECOND_FACTOR_INVALID",
        true,
      ]);
    }
    const tooLate = refusalOf(await the.auth.confirmTotp(principal, { code: await code(secret, 21) }));
    expect(tooLate.message).not.to.include("clock");
  });

  it("uses up the code that confirms it", async () => {
    const { secret, principal } = await withTotp(the);
    expect(outcomeOf(await stepUp(principal, await code(secret)))).to.equal("SECOND_FACTOR_INVALID");
    expect(outcomeOf(await the.auth.confirmTotp(principal, { code: await code(secret) }))).to.equal(
      "SECOND_FACTOR_INVALID",
    );
    expect(outcomeOf(await stepUp(principal, await code(secret, 1)))).to.equal(null);
  });

  it("elevates nothing, and other sessions live on", async () => {
    const other = await the.signIn();
    const { principal } = await withTotp(the);
    expect(principal.stepUpExpiresAt).to.equal(null);
    expect((await again(other.token)).stepUpExpiresAt).to.equal(null);
  });

  it("locks after five wrong codes at confirm too", async () => {
    const principal = await the.session();
    const { secret } = valueOf(await the.auth.enrollTotp(principal));
    const bad = await wrongCode(secret, the.clock.read());
    const results = await atOnce(8, () => the.auth.confirmTotp(principal, { code: bad }));
    expect(countOutcomes(results)).to.deep.equal({ SECOND_FACTOR_INVALID: 5, SECOND_FACTOR_LOCKED: 3 });
    expect(outcomeOf(await the.auth.confirmTotp(principal, { code: await code(secret) }))).to.equal(
      "SECOND_FACTOR_LOCKED",
    );
  });

  it("of a further one needs step-up, and replaces the first only when it is confirmed", async () => {
    const { secret, principal } = await withTotp(the);
    expect(outcomeOf(await the.auth.enrollTotp(principal))).to.equal("STEP_UP_REQUIRED");
    const { token } = await the.signIn(await code(secret, 1));
    valueOf(await stepUp(await again(token), await laterCode(the, secret)));
    const next = valueOf(await the.auth.enrollTotp(await again(token)));
    valueOf(await stepUp(await again(token), await laterCode(the, secret)));
    valueOf(await the.auth.confirmTotp(await again(token), { code: await code(next.secret) }));
    the.clock.advance(STEP);
    expect(outcomeOf(await signIn(await code(secret)))).to.equal("SECOND_FACTOR_INVALID");
    expect(outcomeOf(await signIn(await code(next.secret)))).to.equal(null);
  });

  it("is confirmed in the session that began it alone, whichever user has stepped up in it", async () => {
    const { secret, principal } = await withTotp(the);
    valueOf(await stepUp(principal, await code(secret, 1)));
    const elevated = { ...principal, ...(await steppedUp(principal)) };
    const next = valueOf(await the.auth.enrollTotp(elevated));
    const another = await the.session(await laterCode(the, secret));
    for (let tries = 0; tries < 6; tries += 1) {
      const tried = await the.auth.confirmTotp(another, { code: await code(next.secret) });
      expect(outcomeOf(tried)).to.equal("SECOND_FACTOR_INVALID");
    }
    // None of those was counted as a wrong code, so no other session locks it.
    valueOf(await the.auth.confirmTotp(elevated, { code: await code(next.secret) }));
  });

  it("is over after ten minutes, and begun anew counts again", async () => {
    const principal = await the.session();
    const late = valueOf(await the.auth.enrollTotp(principal));
    the.clock.advance(10 * MINUTE);
    expect(outcomeOf(await the.auth.confirmTotp(principal, { code: await code(late.secret) }))).to.equal(
      "SECOND_FACTOR_INVALID",
    );
    const fresh = await the.session();
    const next = valueOf(await the.auth.enrollTotp(fresh));
    the.clock.advance(10 * MINUTE - 1);
    valueOf(await the.auth.confirmTotp(fresh, { code: await code(next.secret) }));
  });

  it("is forgotten when the password changes or is reset, in whichever session it was begun", async () => {
    const begun = async () => {
      const factor = await the.collections.totpFactors.findOne({ userId: the.userId });
      return factor?.pending?.sessionId ?? null;
    };
    const principal = await the.session();
    const { secret } = valueOf(await the.auth.enrollTotp(principal));
    expect(await begun()).to.equal(principal.sessionId);
    const newPassword = "Zk-9-tuvbex-Lp";
    valueOf(await the.auth.changePassword(principal, { currentPassword: PASSWORD, newPassword }));
    expect(await begun()).to.equal(null);
    const tried = await the.auth.confirmTotp(principal, { code: await code(secret) });
    expect(outcomeOf(tried)).to.equal("SECOND_FACTOR_INVALID");
    valueOf(await the.auth.enrollTotp(principal));
    const { clock, collections, database, masterKey } = the;
    const passwords = await Passwords.on(database.db);
    const transaction = withoutEntry(transactionsOf(database.db.client));
    const person = { _id: the.userId, email: EMAIL };
    const accessProofs = accessProofsOf(masterKey);
    const context = { accessProofs, clock: clock.read, collections, passwords, transaction };
    valueOf(await resetPassword(context, person, PASSWORD));
    expect(await begun()).to.equal(null);
  });

  it("begun by another session before the confirmation is no way round the step-up", async () => {
    const thief = await the.session();
    const stolen = valueOf(await the.auth.enrollTotp(thief));
    await withTotp(the);
    const tried = await the.auth.confirmTotp(thief, { code: await code(stolen.secret) });
    expect(outcomeOf(tried)).to.equal("SECOND_FACTOR_INVALID");
    expect(outcomeOf(await the.auth.enrollTotp(thief))).to.equal("STEP_UP_REQUIRED");
  });

  it("that slipped in beside a confirmation, without step-up, can't be confirmed without it", async () => {
    const thief = await the.session();
    const stolen = valueOf(await the.auth.enrollTotp(thief));
    const slipped = await the.collections.totpFactors.findOne({ userId: the.userId });
    await withTotp(the);
    await the.collections.totpFactors.updateOne(
      { userId: the.userId },
      { $set: { pending: slipped?.pending ?? null } },
    );
    const tried = await the.auth.confirmTotp(thief, { code: await code(stolen.secret) });
    expect(outcomeOf(tried)).to.equal("STEP_UP_REQUIRED");
  });

  it("puts one factor in force when two sessions enrol and confirm at once", async () => {
    const principal = await the.session();
    const enrolments = await atOnce(5, () => the.auth.enrollTotp(principal));
    const codes = await Promise.all(enrolments.map((each) => code(valueOf(each).secret)));
    const results = await Promise.all(codes.map((each) => the.auth.confirmTotp(principal, { code: each })));
    expect(results.filter((each) => each.ok)).to.have.length(1);
    expect(await the.collections.factors.countDocuments()).to.equal(1);
  });

  it("keeps its secret sealed, and it does not open in another user's record", async () => {
    const { secret, principal } = await withTotp(the);
    const factor = await the.collections.factors.findOne({ userId: the.userId });
    if (factor === null) throw new Error("The factor is there.");
    expect(JSON.stringify(factor)).not.to.include(secret);
    await the.collections.factors.insertOne({ ...factor, _id: "totp:another", userId: "another" });
    const user = await the.collections.users.findOne({ _id: the.userId });
    if (user === null) throw new Error("The person is there.");
    await the.collections.users.insertOne({ ...user, _id: "another", emailNormalized: "another" });
    await the.prove("user", { _id: "another" });
    const another = { ...principal, userId: "another" };
    const error: unknown = await stepUp(another, await code(secret, 1)).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(Error).with.property("name", "SealError");
  });
});
