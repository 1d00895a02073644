import { expect } from "chai";
import { statusOf } from "../../src/domain/errors.ts";
import { isSteppedUp } from "../../src/identity/session-principal.ts";
import { PASSKEYS_MAX } from "../../src/identity/passkeys.ts";
import { verifyEnrolment } from "../../src/identity/passkey-ceremonies.ts";
import { relyingPartyOf } from "../../src/identity/relying-party.ts";
import { shortOrSoak } from "../support/soak.ts";
import type { Ceremony } from "../support/authenticator.ts";
import {
  again,
  enrol,
  join,
  newAuthenticator,
  stepUpBy,
  withPasskey,
  type Holder,
} from "./passkey-support.ts";
import {
  atOnce,
  BASE_URL,
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
  type Fixture,
} from "./support.ts";

describe("Passkeys", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  const signInBy = async ({ authenticator }: Pick<Holder, "authenticator">) =>
    the.auth.signInWithPasskey(authenticator.get(await the.auth.passkeySignInOptions()));
  const factorsShown = async ({ principal }: Pick<Holder, "principal">) =>
    valueOf(await the.auth.me(principal)).user.secondFactors;
  const passkeyOf = (_id: string) => the.collections.passkeys.findOne({ _id });

  /** Signs in with a counter. */
  const signingAt =
    ({ authenticator }: Holder, told: Partial<Ceremony> = {}) =>
    async (counter: number) => {
      const options = await the.auth.passkeySignInOptions();
      return await the.auth.signInWithPasskey(authenticator.get(options, { ...told, counter }));
    };

  describe("enrolment", () => {
    it("asks for a verified user and a discoverable passkey of this service, without attestation", async () => {
      const principal = await the.session();
      const options = valueOf(await the.auth.passkeyOptions(principal));
      expect(options.rp).to.deep.equal({ id: "control.example.test", name: "Agent Spending Control" });
      expect(options.user.name).to.equal(EMAIL);
      expect(Buffer.from(options.user.id, "base64url")).to.have.length(16);
      expect(Buffer.from(options.challenge, "base64url")).to.have.length(32);
      expect(options.pubKeyCredParams.map(({ alg }) => alg)).to.deep.equal([-8, -7, -257]);
      expect(options).to.deep.include({
        attestation: "none",
        timeout: 5 * MINUTE,
        excludeCredentials: [],
        authenticatorSelection: {
          residentKey: "required",
          requireResidentKey: true,
          userVerification: "required",
        },
      });
    });

    it("puts the passkey in force, named, and elevates nothing; other sessions live on", async () => {
      const other = await the.signIn();
      const holder = await withPasskey(the);
      expect(holder.passkey).to.deep.include({ name: "Laptop", kind: "passkey", userId: the.userId });
      expect(holder.passkey._id).to.match(/^pky_/);
      expect(await factorsShown(holder)).to.deep.equal(["passkey"]);
      expect((await again(the, holder.principal)).stepUpExpiresAt).to.equal(null);
      const elsewhere = valueOf(await the.auth.authenticateSession(other.token));
      expect(elsewhere.stepUpExpiresAt).to.equal(null);
      expect(await factorsShown({ principal: elsewhere })).to.deep.equal(["passkey"]);
    });

    it("of a further passkey needs step-up with an existing one; names may be the same", async () => {
      const holder = await withPasskey(the);
      expect(outcomeOf(await the.auth.passkeyOptions(holder.principal))).to.equal("STEP_UP_REQUIRED");
      const principal = await stepUpBy(the, holder);
      await enrol(the, { principal, authenticator: newAuthenticator() }, "Phone");
      await enrol(the, { principal, authenticator: newAuthenticator() }, "Phone");
      const passkeys = await the.collections.passkeys.find({ userId: the.userId }).toArray();
      expect(passkeys.map(({ name }) => name).toSorted()).to.deep.equal(["Laptop", "Phone", "Phone"]);
      expect(await factorsShown(holder)).to.deep.equal(["passkey"]);
      const excluded = valueOf(await the.auth.passkeyOptions(principal)).excludeCredentials;
      expect(excluded.map(({ id }) => id).toSorted()).to.deep.equal(
        passkeys.map(({ credentialId }) => credentialId).toSorted(),
      );
      expect(excluded[0]?.transports).to.deep.equal(["internal", "hybrid"]);
    });

    it("beside TOTP needs step-up by a code, and TOTP beside a passkey step-up by it; both show", async () => {
      const { secret, principal } = await withTotp(the);
      expect(outcomeOf(await the.auth.passkeyOptions(principal))).to.equal("STEP_UP_REQUIRED");
      const code = await laterCode(the, secret);
      valueOf(await the.auth.stepUp(principal, { method: "totp", code }));
      const holder = { principal: await again(the, principal), authenticator: newAuthenticator() };
      await enrol(the, holder);
      expect(await factorsShown(holder)).to.deep.equal(["totp", "passkey"]);
      the.clock.advance(5 * MINUTE);
      expect(outcomeOf(await the.auth.enrollTotp(holder.principal))).to.equal("STEP_UP_REQUIRED");
      valueOf(await the.auth.enrollTotp(await stepUpBy(the, holder)));
    });

    it("may end just after the step-up it began with; begun without, it can't bypass a new factor", async () => {
      const slow = await the.session();
      const early = valueOf(await the.auth.passkeyOptions(slow));
      const holder = await withPasskey(the);
      const tried = newAuthenticator().create(early);
      const result = await the.auth.enrollPasskey(slow, { name: "Thief", response: tried });
      expect(outcomeOf(result)).to.equal("STEP_UP_REQUIRED");
      const principal = await stepUpBy(the, holder);
      the.clock.advance(4 * MINUTE);
      const options = valueOf(await the.auth.passkeyOptions(principal));
      the.clock.advance(2 * MINUTE);
      const response = newAuthenticator().create(options);
      valueOf(await the.auth.enrollPasskey(await again(the, principal), { name: "Phone", response }));
    });

    it("of eight first ones at once by as many sessions, one comes in; the others must step up", async () => {
      const sessions = await atOnce(8, () => the.session());
      const responses = await Promise.all(
        sessions.map(async (principal) =>
          newAuthenticator().create(valueOf(await the.auth.passkeyOptions(principal))),
        ),
      );
      const results = await Promise.all(
        sessions.map((principal, index) => {
          const response = responses[index];
          if (response === undefined) throw new Error("A response for each session.");
          return the.auth.enrollPasskey(principal, { name: "First", response });
        }),
      );
      expect(countOutcomes(results)).to.deep.equal({ ok: 1, STEP_UP_REQUIRED: 7 });
    });

    it("of a first passkey and a first TOTP at once, each time: exactly one succeeds", async () => {
      for (let round = 0; round < shortOrSoak(4, 20); round += 1) {
        const [one, other] = [await the.session(), await the.session()];
        const { secret } = valueOf(await the.auth.enrollTotp(one));
        const code = await codeAt(secret, the.clock.read());
        const response = newAuthenticator().create(valueOf(await the.auth.passkeyOptions(other)));
        const results = await Promise.all([
          the.auth.confirmTotp(one, { code }),
          the.auth.enrollPasskey(other, { name: "First", response }),
        ]);
        expect(countOutcomes(results)).to.deep.equal({ ok: 1, STEP_UP_REQUIRED: 1 });
        await the.collections.factors.deleteMany({});
        await the.prove("user", { _id: the.userId }, { secondFactors: [] });
        the.clock.advance(STEP);
      }
    });

    it("stops at twenty a person, also for many at once", async () => {
      const holder = await withPasskey(the);
      const principal = await stepUpBy(the, holder);
      const more = PASSKEYS_MAX - 1 + 4;
      const options = await Promise.all(
        Array.from({ length: more }, async () => valueOf(await the.auth.passkeyOptions(principal))),
      );
      const results = await Promise.all(
        options.map((each) =>
          the.auth.enrollPasskey(principal, { name: "x", response: newAuthenticator().create(each) }),
        ),
      );
      expect(countOutcomes(results)).to.deep.equal({ ok: PASSKEYS_MAX - 1, TOO_MANY_PASSKEYS: 4 });
      expect(outcomeOf(await the.auth.passkeyOptions(principal))).to.equal("TOO_MANY_PASSKEYS");
    });

    it("takes the passkey's own signature as attestation, and refuses a maker's certificate", async () => {
      const principal = await the.session();
      const options = valueOf(await the.auth.passkeyOptions(principal));
      const party = relyingPartyOf(BASE_URL);
      const verified = async (attestation: "none" | "self" | "certificate") =>
        verifyEnrolment(party, newAuthenticator().create(options, { attestation }), options.challenge);
      expect(await verified("none")).to.include({ counter: 1, backupEligible: false, backedUp: false });
      expect(await verified("self")).to.include({ counter: 1 });
      expect(await verified("certificate")).to.equal(null);
    });
  });

  describe("sign-in", () => {
    it("needs nothing but the passkey, is two factors by its amr, and does not elevate", async () => {
      const holder = await withPasskey(the);
      const { token, user } = valueOf(await signInBy(holder));
      expect(user).to.deep.include({ id: the.userId, secondFactors: ["passkey"] });
      const principal = valueOf(await the.auth.authenticateSession(token));
      expect(principal.amr).to.deep.equal(["pop", "mfa"]);
      expect(principal.stepUpExpiresAt).to.equal(null);
      expect(principal.sessionId).not.to.equal(holder.principal.sessionId);
    });

    for (const keys of ["ES256", "EdDSA", "RS256"] as const) {
      it(`is by a key of any kind that was offered: ${keys}`, async () => {
        const holder = { principal: await the.session(), authenticator: newAuthenticator({ keys }) };
        await enrol(the, holder, keys, { attestation: "self" });
        valueOf(await signInBy(holder));
      });
    }

    it("asks for no code, whether there is TOTP too or not", async () => {
      const { secret, principal } = await withTotp(the);
      valueOf(await the.auth.stepUp(principal, { method: "totp", code: await laterCode(the, secret) }));
      const holder = { principal: await again(the, principal), authenticator: newAuthenticator() };
      await enrol(the, holder);
      expect(valueOf(await signInBy(holder)).user.secondFactors).to.deep.equal(["totp", "passkey"]);
    });

    it("by password alone still works with passkeys and no TOTP, but not for what needs step-up", async () => {
      await withPasskey(the);
      const principal = await the.session();
      expect(principal.amr).to.deep.equal(["pwd"]);
      expect(isSteppedUp(principal, the.clock.read())).to.equal(false);
      expect(outcomeOf(await the.auth.passkeyOptions(principal))).to.equal("STEP_UP_REQUIRED");
    });

    it("names no credentials in its options, so it does not disclose whose passkeys there are", async () => {
      const before = await the.auth.passkeySignInOptions();
      await withPasskey(the);
      const after = await the.auth.passkeySignInOptions();
      expect(after).to.deep.equal({ ...before, challenge: after.challenge });
      expect(before).to.deep.include({
        rpId: "control.example.test",
        allowCredentials: [],
        userVerification: "required",
      });
    });

    it("ends with the passkey: one that was removed, and a removed member's, sign no user in", async () => {
      const owner = await withPasskey(the);
      const member = await withPasskey(the, await join(the, owner.principal, "member"));
      const gone = await withPasskey(the, await join(the, owner.principal, "member"));
      valueOf(await the.auth.removePasskey(member.principal, member.passkey._id));
      expect(outcomeOf(await signInBy(member))).to.equal("SECOND_FACTOR_INVALID");
      valueOf(await the.auth.removeMember(owner.principal, gone.principal.userId));
      expect(outcomeOf(await signInBy(gone))).to.equal("SECOND_FACTOR_INVALID");
      expect(await the.collections.passkeys.countDocuments({})).to.equal(1);
      const { email, password } = { email: EMAIL, password: PASSWORD };
      valueOf(await the.auth.signIn({ email, password }));
    });
  });

  describe("step-up", () => {
    it("elevates this session alone, for exactly five minutes, and offers one's own passkeys only", async () => {
      const holder = await withPasskey(the);
      const stranger = await withPasskey(the, await join(the, holder.principal, "owner"));
      const options = valueOf(await the.auth.stepUpOptions(holder.principal));
      expect(options.allowCredentials.map(({ id }) => id)).to.deep.equal([holder.passkey.credentialId]);
      const other = await the.session();
      const elevated = await stepUpBy(the, holder);
      const start = the.clock.read().getTime();
      expect(isSteppedUp(elevated, new Date(start + 5 * MINUTE - 1))).to.equal(true);
      expect(isSteppedUp(elevated, new Date(start + 5 * MINUTE))).to.equal(false);
      for (const { sessionId } of [other, stranger.principal]) {
        const session = await the.collections.sessions.findOne({ _id: sessionId });
        expect(session?.stepUpExpiresAt).to.equal(null);
      }
    });

    it("without a passkey gives advice and no options; a session that has ended is not elevated", async () => {
      const principal = await the.session();
      const none = await the.auth.stepUpOptions(principal);
      expect(outcomeOf(none)).to.equal("SECOND_FACTOR_INVALID");
      expect(none.ok ? "" : none.refusal.message).to.include("POST /v1/auth/passkeys/options");
      const holder = await withPasskey(the, principal);
      const response = holder.authenticator.get(valueOf(await the.auth.stepUpOptions(principal)));
      valueOf(await the.auth.signOut(principal));
      const late = await the.auth.stepUp(principal, { method: "passkey", response });
      expect(outcomeOf(late)).to.equal("UNAUTHORIZED");
    });

    for (const userHandle of [null, ""]) {
      it(`takes a response without a user handle (${JSON.stringify(userHandle)}), which some keep none of`, async () => {
        const { authenticator, principal } = await withPasskey(the);
        const options = valueOf(await the.auth.stepUpOptions(principal));
        const response = authenticator.get(options, { userHandle });
        valueOf(await the.auth.stepUp(principal, { method: "passkey", response }));
      });
    }
  });

  describe("what a signature says is kept", () => {
    it("the counter, the backup state and the time of each use", async () => {
      const holder = await withPasskey(the);
      const { _id } = holder.passkey;
      expect(await passkeyOf(_id)).to.deep.include({ counter: 1, lastUsedAt: null, backedUp: false });
      the.clock.advance(MINUTE);
      valueOf(await signInBy(holder));
      const used = { counter: 2, lastUsedAt: the.clock.read(), suspectedCloneAt: null };
      expect(await passkeyOf(_id)).to.deep.include(used);
    });

    it("that it is synced once it is, and whether it may be synced, also when that changes", async () => {
      const holder = { principal: await the.session(), authenticator: newAuthenticator() };
      const { _id } = await enrol(the, holder, "Synced", { backupEligible: true });
      expect(await passkeyOf(_id)).to.deep.include({ backupEligible: true, backedUp: false });
      const signIn = async (told: { backupEligible: boolean; backedUp: boolean }) => {
        const options = await the.auth.passkeySignInOptions();
        return await the.auth.signInWithPasskey(holder.authenticator.get(options, told));
      };
      valueOf(await signIn({ backupEligible: true, backedUp: true }));
      expect(await passkeyOf(_id)).to.deep.include({ backupEligible: true, backedUp: true });
      valueOf(await signIn({ backupEligible: false, backedUp: false }));
      const moved = { backupEligible: false, backedUp: false, suspectedCloneAt: null };
      expect(await passkeyOf(_id)).to.deep.include(moved);
      valueOf(await signIn({ backupEligible: true, backedUp: true }));
      const copied = { backupEligible: true, backedUp: true, suspectedCloneAt: the.clock.read() };
      expect(await passkeyOf(_id), "bound to a device, and then not").to.deep.include(copied);
    });

    it("one that counts nothing is used again and again at 0", async () => {
      const holder = await withPasskey(the, null, { counts: false });
      for (const _ of [1, 2, 3]) valueOf(await signInBy(holder));
      const { counter, suspectedCloneAt } = (await passkeyOf(holder.passkey._id)) ?? {};
      expect({ counter, suspectedCloneAt }).to.deep.equal({ counter: 0, suspectedCloneAt: null });
    });

    for (const [what, counter] of [
      ["behind", 4],
      ["the same", 5],
      ["back at 0", 0],
    ] as const) {
      it(`a counter that is ${what} is refused with the reason; the passkey goes on as it was`, async () => {
        const holder = await withPasskey(the);
        const by = signingAt(holder);
        valueOf(await by(5));
        the.clock.advance(MINUTE);
        const refusal = refusalOf(await by(counter));
        expect([refusal.code, statusOf(refusal)]).to.deep.equal(["PASSKEY_POSSIBLY_COPIED", 401]);
        expect(refusal.message).to.include("enrol it again");
        const { _id } = holder.passkey;
        const marked = { counter: 5, suspectedCloneAt: the.clock.read() };
        expect(await passkeyOf(_id)).to.deep.include(marked);
        valueOf(await by(6));
        expect(await passkeyOf(_id)).to.deep.include({ ...marked, counter: 6 });
      });

      it(`a counter that is ${what} is no fault of a passkey that may be synced`, async () => {
        const authenticator = newAuthenticator();
        const principal = await the.session();
        const { _id } = await enrol(the, { authenticator, principal }, "Synced", { backupEligible: true });
        const by = signingAt({ authenticator, principal }, { backupEligible: true });
        valueOf(await by(5));
        valueOf(await by(counter));
        expect(await passkeyOf(_id)).to.deep.include({ counter, suspectedCloneAt: null });
      });
    }
  });

  describe("removal", () => {
    it("keeps the last factor of an owner and of an admin; a member's last passkey goes", async () => {
      const owner = await withPasskey(the);
      const admin = await withPasskey(the, await join(the, owner.principal, "admin"));
      const member = await withPasskey(the, await join(the, owner.principal, "member"));
      const remove = ({ passkey, principal }: typeof owner) => the.auth.removePasskey(principal, passkey._id);
      expect(outcomeOf(await remove(owner))).to.equal("LAST_FACTOR");
      expect(outcomeOf(await remove(admin))).to.equal("LAST_FACTOR");
      expect(outcomeOf(await remove(member))).to.equal(null);
      expect(outcomeOf(await remove(member))).to.equal("NOT_FOUND");
      // By the role of this moment, whatever it was when the request came in.
      await the.prove("user", { _id: admin.principal.userId }, { role: "member" });
      expect(outcomeOf(await remove(admin))).to.equal(null);
    });

    it("goes once another factor is in force: a passkey, or TOTP that was confirmed", async () => {
      const holder = await withPasskey(the);
      const principal = await stepUpBy(the, holder);
      const { secret } = valueOf(await the.auth.enrollTotp(principal));
      const remove = (id: string) => the.auth.removePasskey(principal, id);
      expect(outcomeOf(await remove(holder.passkey._id))).to.equal("LAST_FACTOR");
      const phone = await enrol(the, { principal, authenticator: newAuthenticator() }, "Phone");
      valueOf(await remove(holder.passkey._id));
      expect(outcomeOf(await remove(phone._id))).to.equal("LAST_FACTOR");
      valueOf(await the.auth.confirmTotp(principal, { code: await codeAt(secret, the.clock.read()) }));
      valueOf(await remove(phone._id));
      expect(await factorsShown(holder)).to.deep.equal(["totp"]);
    });

    it("of all of an owner's five at once leaves exactly one", async () => {
      const holder = await withPasskey(the);
      const principal = await stepUpBy(the, holder);
      const more = [];
      for (let index = 0; index < 4; index += 1) {
        more.push(await enrol(the, { principal, authenticator: newAuthenticator() }, `${index}`));
      }
      const ids = [holder.passkey, ...more].map(({ _id }) => _id);
      const results = await Promise.all(ids.map((id) => the.auth.removePasskey(principal, id)));
      expect(countOutcomes(results)).to.deep.equal({ ok: 4, LAST_FACTOR: 1 });
      expect(await the.collections.passkeys.countDocuments({ kind: "passkey" })).to.equal(1);
    });

    it("and renaming are of one's own only: a colleague's, and one's own TOTP, are not found", async () => {
      const { principal } = await withPasskey(the);
      const { passkey } = await withPasskey(the, await join(the, principal, "member"));
      await the.collections.totpFactors.insertOne({
        _id: "totp:x",
        userId: principal.userId,
        kind: "totp",
        confirmed: null,
        pending: null,
      });
      for (const id of [passkey._id, "totp:x", "pky_00000000000000000000000000"]) {
        expect(outcomeOf(await the.auth.removePasskey(principal, id))).to.equal("NOT_FOUND");
        expect(outcomeOf(await the.auth.renamePasskey(principal, id, "Mine"))).to.equal("NOT_FOUND");
      }
      expect(await passkeyOf(passkey._id)).to.deep.include({ name: "Laptop" });
    });
  });
});
