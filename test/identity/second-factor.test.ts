import { expect } from "chai";
import { isSteppedUp } from "../../src/identity/session-principal.ts";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
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

describe("TOTP", () => {
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

  describe("at sign-in", () => {
    it("is asked for only after the right password, and is 401 when missing or wrong", async () => {
      const { secret } = await withTotp(the);
      const wrongPassword = { email: EMAIL, password: "wrong horse battery", code: await code(secret, 1) };
      expect(outcomeOf(await the.auth.signIn(wrongPassword))).to.equal("UNAUTHORIZED");
      const missing = refusalOf(await signIn());
      expect([missing.code, statusOf(missing)]).to.deep.equal(["SECOND_FACTOR_REQUIRED", 401]);
      const wrong = refusalOf(await signIn(await wrongCode(secret, the.clock.read())));
      expect([wrong.code, statusOf(wrong)]).to.deep.equal(["SECOND_FACTOR_INVALID", 401]);
      // The wrong password did not use the code up.
      expect(valueOf(await signIn(await code(secret, 1))).user.secondFactors).to.deep.equal(["totp"]);
    });

    it("shows in amr, and does not elevate", async () => {
      const { secret } = await withTotp(the);
      const principal = await the.session(await code(secret, 1));
      expect(principal.amr).to.deep.equal(["pwd", "otp"]);
      expect(principal.stepUpExpiresAt).to.equal(null);
    });

    for (const [offset, accepted] of [
      [-2, false],
      [-1, true],
      [0, true],
      [1, true],
      [2, false],
    ] as const) {
      // prettier-ignore
      it(`${accepted ? "takes" : "refuses"} the code of ${offset} steps away`, async () => {
        const { secret } = await withTotp(the);
        the.clock.advance(10 * MINUTE);
        expect(outcomeOf(await signIn(await code(secret, offset)))).to.equal(
          accepted ? null : "SECOND_FACTOR_INVALID",
        );
      });
    }

    it("takes a code once, and none older than one that was taken", async () => {
      const { secret } = await withTotp(the);
      the.clock.advance(10 * MINUTE);
      const [older, newer] = [await code(secret, 0), await code(secret, 1)];
      valueOf(await signIn(newer));
      expect(outcomeOf(await signIn(newer))).to.equal("SECOND_FACTOR_INVALID");
      expect(outcomeOf(await signIn(older))).to.equal("SECOND_FACTOR_INVALID");
    });

    it("takes a code once when it is sent twenty times at once, at sign-in and step-up together", async () => {
      const { secret, principal } = await withTotp(the);
      const good = await code(secret, 1);
      const results = await atOnce(20, (index): Promise<{ ok: boolean }> =>
        index % 2 === 0 ? signIn(good) : stepUp(principal, good),
      );
      expect(results.filter(({ ok }) => ok)).to.have.length(1);
    });
  });

  describe("lock", () => {
    it("comes after five wrong codes, of which the fifth still answers that it was wrong", async () => {
      const { secret, principal } = await withTotp(the);
      const bad = await wrongCode(secret, the.clock.read());
      for (let tries = 1; tries <= 5; tries += 1) {
        const wrong = refusalOf(await stepUp(principal, bad));
        expect([wrong.code, statusOf(wrong)]).to.deep.equal(["SECOND_FACTOR_INVALID", 403]);
      }
      the.clock.advance(1);
      const locked = refusalOf(await stepUp(principal, bad));
      expect([locked.code, statusOf(locked)]).to.deep.equal(["SECOND_FACTOR_LOCKED", 403]);
      expect(locked.retryAfterSeconds).to.equal(900);
    });

    it("holds for sign-in and step-up alike, also against the right code, for 15 minutes sharp", async () => {
      const { secret, principal } = await withTotp(the);
      const bad = await wrongCode(secret, the.clock.read());
      for (const _ of [1, 2, 3]) await stepUp(principal, bad);
      for (const _ of [4, 5]) await signIn(bad);
      expect(refusalOf(await signIn(await code(secret, 1)))).to.deep.include({
        code: "SECOND_FACTOR_LOCKED",
        retryAfterSeconds: 900,
      });
      the.clock.advance(15 * MINUTE - 1);
      expect(refusalOf(await stepUp(principal, await code(secret)))).to.deep.include({
        code: "SECOND_FACTOR_LOCKED",
        retryAfterSeconds: 1,
      });
      the.clock.advance(1);
      expect(outcomeOf(await stepUp(principal, await code(secret)))).to.equal(null);
    });

    it("counts every one of twenty wrong guesses at once", async () => {
      const { secret, principal } = await withTotp(the);
      const bad = await wrongCode(secret, the.clock.read());
      const results = await atOnce(20, () => stepUp(principal, bad));
      expect(countOutcomes(results)).to.deep.equal({ SECOND_FACTOR_INVALID: 5, SECOND_FACTOR_LOCKED: 15 });
      expect(outcomeOf(await stepUp(principal, await code(secret, 1)))).to.equal("SECOND_FACTOR_LOCKED");
    });

    it("is lifted with a new count: five more wrong codes lock again", async () => {
      const { secret, principal } = await withTotp(the);
      const bad = async () => stepUp(principal, await wrongCode(secret, the.clock.read()));
      await atOnce(5, bad);
      the.clock.advance(15 * MINUTE);
      const results = await atOnce(7, bad);
      expect(countOutcomes(results)).to.deep.equal({ SECOND_FACTOR_INVALID: 5, SECOND_FACTOR_LOCKED: 2 });
    });

    it("begins to count anew after a right code, and does not count a used one as a guess", async () => {
      const { secret, principal } = await withTotp(the);
      const bad = await wrongCode(secret, the.clock.read());
      for (const _ of [1, 2, 3, 4]) await stepUp(principal, bad);
      const good = await code(secret, 1);
      valueOf(await stepUp(principal, good));
      for (const _ of [1, 2, 3, 4]) await stepUp(principal, bad);
      for (const _ of [1, 2, 3])
        expect(outcomeOf(await stepUp(principal, good))).to.equal("SECOND_FACTOR_INVALID");
      the.clock.advance(2 * STEP);
      expect(outcomeOf(await stepUp(principal, await code(secret)))).to.equal(null);
    });

    it("counts what does not look like a code", async () => {
      const { principal } = await withTotp(the);
      for (const odd of ["", "12345", "1234567", "abcdef", "１２３４５６"]) {
        expect(outcomeOf(await stepUp(principal, odd))).to.equal("SECOND_FACTOR_INVALID");
      }
      expect(outcomeOf(await stepUp(principal, "123456"))).to.equal("SECOND_FACTOR_LOCKED");
    });
  });

  describe("step-up", () => {
    it("elevates this session alone, until exactly five minutes later", async () => {
      const { secret } = await withTotp(the);
      const { token } = await the.signIn(await code(secret, 1));
      const other = await the.signIn(await laterCode(the, secret));
      const good = await laterCode(the, secret);
      const { stepUpExpiresAt } = valueOf(await stepUp(await again(token), good));
      const start = the.clock.read().getTime();
      expect(stepUpExpiresAt).to.equal(new Date(start + 5 * MINUTE).toISOString());
      const elevated = await again(token);
      expect(isSteppedUp(elevated, new Date(start + 5 * MINUTE - 1))).to.equal(true);
      expect(isSteppedUp(elevated, new Date(start + 5 * MINUTE))).to.equal(false);
      expect(isSteppedUp(await again(other.token), the.clock.read())).to.equal(false);
    });

    it("is on the session and not in the token: it survives a refresh", async () => {
      const { secret } = await withTotp(the);
      const first = await the.signIn(await code(secret, 1));
      valueOf(await stepUp(await again(first.token), await laterCode(the, secret)));
      const second = valueOf(await the.auth.refresh({ refreshToken: first.refreshToken }));
      expect(isSteppedUp(await again(second.token), the.clock.read())).to.equal(true);
      expect(isSteppedUp(await again(first.token), the.clock.read())).to.equal(true);
    });

    it("is refused to a person without a second factor, and to a session that has ended", async () => {
      const principal = await the.session();
      expect(outcomeOf(await stepUp(principal, "123456"))).to.equal("SECOND_FACTOR_INVALID");
      const { secret } = await withTotp(the);
      valueOf(await the.auth.signOut(principal));
      expect(outcomeOf(await stepUp(principal, await code(secret, 1)))).to.equal("UNAUTHORIZED");
    });
  });
});
