import { expect } from "chai";
import type { SessionPrincipal } from "../../src/identity/session-principal.ts";
import { statusOf } from "../../src/domain/errors.ts";
import type {
  AuthenticationResponse,
  RegistrationResponse,
  RequestOptions,
} from "../../src/contract/webauthn.ts";
import type { Ceremony } from "../support/authenticator.ts";
import type { Cbor } from "../support/cbor.ts";
import {
  enrolment,
  type Holder,
  join,
  newAuthenticator,
  type Rite,
  signIn,
  stepUp,
  stepUpBy,
  withPasskey,
} from "./passkey-support.ts";
import {
  atOnce,
  countOutcomes,
  fixture,
  MINUTE,
  outcomeOf,
  refusalOf,
  valueOf,
  type Fixture,
} from "./support.ts";

type Response = RegistrationResponse | AuthenticationResponse;

const CHALLENGE_MS = 5 * MINUTE;

/** What an authenticator or its browser must not have done, in any of the three ceremonies. */
const WRONG: readonly (readonly [why: string, told: Partial<Ceremony>])[] = [
  ["of a foreign origin", { origin: "https://control.example.test.evil.test" }],
  ["of the right host by http", { origin: "http://control.example.test" }],
  ["of the right host at another port", { origin: "https://control.example.test:8443" }],
  ["of a host below ours, which is not named", { origin: "https://www.control.example.test" }],
  ["for a foreign relying party", { rpId: "evil.test" }],
  ["for a relying party above ours", { rpId: "example.test" }],
  ["whose user was not verified", { userVerified: false }],
  ["whose user was not present", { userPresent: false }],
  ["out of another site's iframe", { crossOrigin: true }],
  ["to a challenge that was never given out", { challenge: Buffer.alloc(32).toString("base64url") }],
  ["to no challenge", { challenge: "" }],
  ["of the other kind of ceremony", { type: "payment.get" }],
  ["of a passkey that is backed up and can't be", { backupEligible: false, backedUp: true }],
];

const P256 = { kty: 2, alg: -7, crv: 1 };
const coordinate = (length: number, fill: number): Buffer => Buffer.alloc(length, fill);

/** COSE keys that a signature can't be checked by, though each is CBOR and names an algorithm that was offered. */
const UNUSABLE_KEYS: readonly ReadonlyMap<number, Cbor>[] = [
  // Not on the curve; too short; none at all; another curve; another kind than the algorithm's.
  coseKey(P256, [-2, coordinate(32, 1)], [-3, coordinate(32, 1)]),
  coseKey(P256, [-2, coordinate(26, 1)], [-3, coordinate(26, 1)]),
  coseKey(P256),
  coseKey({ ...P256, crv: 2 }, [-2, coordinate(48, 1)], [-3, coordinate(48, 1)]),
  coseKey({ kty: 1, alg: -7, crv: 6 }, [-2, coordinate(32, 1)]),
  coseKey({ kty: 1, alg: -8, crv: 6 }, [-2, coordinate(31, 1)]),
  // RSA of 1,024 bits.
  new Map<number, Cbor>([
    [1, 3],
    [3, -257],
    [-1, coordinate(128, 0xff)],
    [-2, Buffer.from([1, 0, 1])],
  ]),
];

function coseKey(
  { alg, crv, kty }: { readonly kty: number; readonly alg: number; readonly crv: number },
  ...coordinates: readonly (readonly [number, Cbor])[]
): ReadonlyMap<number, Cbor> {
  return new Map<number, Cbor>([[1, kty], [3, alg], [-1, crv], ...coordinates]);
}

/** One with the client data replaced, as nonsense that still is base64url. */
const withClientData = <R extends Response>(response: R, clientDataJSON: string): R => ({
  ...response,
  response: { ...response.response, clientDataJSON },
});

const bytesOf = (text: string): Buffer => Buffer.from(text, "base64url");

const flipped = ({ response }: AuthenticationResponse): string => {
  const bytes = bytesOf(response.signature);
  bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20);
  return bytes.toString("base64url");
};

const raised = ({ response }: AuthenticationResponse): string => {
  const bytes = bytesOf(response.authenticatorData);
  bytes.writeUInt32BE(bytes.readUInt32BE(33) + 1_000, 33);
  return bytes.toString("base64url");
};

/** What an attacker between authenticator and service may do to a response. */
const ALTERED: readonly (readonly [string, (response: AuthenticationResponse) => object])[] = [
  ["a signature with one bit changed", (given) => ({ signature: flipped(given) })],
  ["no signature to speak of", () => ({ signature: "AA" })],
  // Only the signature speaks against it.
  ["authenticator data with the counter raised", (given) => ({ authenticatorData: raised(given) })],
  [
    "authenticator data cut short",
    ({ response }) => ({ authenticatorData: response.authenticatorData.slice(0, 40) }),
  ],
  [
    "authenticator data with more behind it",
    ({ response }) => ({ authenticatorData: `${response.authenticatorData}AAAA` }),
  ],
];

describe("Passkeys, refused", () => {
  let the: Fixture;
  /** A colleague without a factor, for enrolments; the owner, with a passkey, for what needs one. */
  let bare: Holder;
  let owner: Holder;
  before(async () => {
    the = await fixture();
    owner = await withPasskey(the);
    bare = { principal: await join(the, owner.principal, "admin"), authenticator: newAuthenticator() };
  });
  after(() => the.database.close());

  const fixtureOf = () => the;
  // Scenes let challenges expire, and a first enrolment needs a sign-in of just now.
  beforeEach(() => {
    bare = { ...bare, principal: { ...bare.principal, signedInAt: the.clock.read() } };
  });

  const who = (name: string): Holder => (name === "enrolment" ? bare : owner);

  /** Everything that an accepted response changes. */
  async function state(): Promise<unknown> {
    const { passkeys, sessions } = the.collections;
    const elevated = { stepUpExpiresAt: { $ne: null } };
    return {
      passkeys: await passkeys.find({}, { projection: { suspectedCloneAt: 0 } }).toArray(),
      sessions: await sessions.countDocuments(),
      elevated: await sessions.countDocuments(elevated),
    };
  }

  async function expectRefused<O, R>(rite: Rite<O, R>, by: SessionPrincipal, response: R): Promise<void> {
    const before = await state();
    const refusal = refusalOf(await rite.finish(by, response));
    expect([refusal.code, statusOf(refusal)]).to.deep.equal(["SECOND_FACTOR_INVALID", rite.status]);
    expect(refusal.message).to.include("ask for new options");
    expect(await state()).to.deep.equal(before);
  }

  function refusesWhatIsWrong<O, R extends Response>(rite: Rite<O, R>): void {
    const begin = async () => {
      const { authenticator, principal } = who(rite.name);
      return { authenticator, principal, options: await rite.begin(principal) };
    };

    describe(`at ${rite.name}`, () => {
      for (const [why, told] of WRONG) {
        it(`a response ${why}, and its challenge is used up by it`, async () => {
          const { authenticator, options, principal } = await begin();
          await expectRefused(rite, principal, rite.respond(authenticator, options, told));
          if (told.challenge !== undefined) return;
          await expectRefused(rite, principal, rite.respond(authenticator, options));
        });
      }

      it("client data that is nothing to read", async () => {
        const { authenticator, options, principal } = await begin();
        const good = rite.respond(authenticator, options);
        const texts = ["x", "null", "[]", '"x"', "{", "{}", '{"challenge":7}', '{"challenge":{"$gt":""}}'];
        for (const text of texts) {
          const odd = withClientData(good, Buffer.from(text).toString("base64url"));
          await expectRefused(rite, principal, odd);
        }
      });

      it("client data of another response, which its signature is not over", async () => {
        const { authenticator, options, principal } = await begin();
        // An enrolment is signed where the attestation is the passkey's own.
        const told = { attestation: "self" } as const;
        const first = rite.respond(authenticator, options, told);
        const second = rite.respond(authenticator, await rite.begin(principal), told);
        await expectRefused(rite, principal, withClientData(first, second.response.clientDataJSON));
      });

      it("a challenge that is five minutes old, to the millisecond", async () => {
        const { authenticator, options, principal } = await begin();
        const response = rite.respond(authenticator, options);
        the.clock.advance(CHALLENGE_MS);
        await expectRefused(rite, principal, response);
      });

      for (const other of [enrolment(fixtureOf), signIn(fixtureOf), stepUp(fixtureOf)]) {
        if (other.name === rite.name) continue;
        it(`a challenge that was given out for ${other.name}, which is used up by it`, async () => {
          const { authenticator, options, principal } = await begin();
          const { challenge } = await beginOther(other.name, principal);
          const given = await the.collections.passkeyChallenges.countDocuments();
          await expectRefused(rite, principal, rite.respond(authenticator, options, { challenge }));
          expect(await the.collections.passkeyChallenges.countDocuments()).to.equal(given - 1);
        });
      }

      it("of sixteen at once with one challenge, all but one", async () => {
        const fresh = await holderFor(rite.name);
        const options = await rite.begin(fresh.principal);
        const response = rite.respond(fresh.authenticator, options);
        const results = await atOnce(16, () => rite.finish(fresh.principal, response));
        expect(countOutcomes(results)).to.deep.equal({ ok: 1, SECOND_FACTOR_INVALID: 15 });
      });

      it("of sixteen different ones at once to one challenge, all but one", async () => {
        const fresh = await holderFor(rite.name);
        const options = await rite.begin(fresh.principal);
        const responses = Array.from({ length: 16 }, () => rite.respond(fresh.authenticator, options));
        const results = await Promise.all(responses.map((each) => rite.finish(fresh.principal, each)));
        expect(countOutcomes(results)).to.deep.equal({ ok: 1, SECOND_FACTOR_INVALID: 15 });
      });

      it("a response that was accepted before, to its own challenge and under a new one", async () => {
        const fresh = await holderFor(rite.name);
        const response = rite.respond(fresh.authenticator, await rite.begin(fresh.principal));
        valueOf(await rite.finish(fresh.principal, response));
        await expectRefused(rite, fresh.principal, response);
      });

      it("and a good one just before the five minutes are over is accepted", async () => {
        const fresh = await holderFor(rite.name);
        const options = await rite.begin(fresh.principal);
        the.clock.advance(CHALLENGE_MS - 1);
        const response = rite.respond(fresh.authenticator, options);
        expect(outcomeOf(await rite.finish(fresh.principal, response))).to.equal(null);
      });
    });
  }

  /** The options of another ceremony, by the same person in the same session, as far as it has one. */
  async function beginOther(name: string, principal: SessionPrincipal): Promise<{ challenge: string }> {
    if (name === "sign-in") return await the.auth.passkeySignInOptions();
    if (name === "step-up") {
      // Who has no passkey gets no options; the challenge is what counts.
      const options = await the.auth.stepUpOptions(principal);
      return options.ok ? options.value : valueOf(await the.auth.stepUpOptions(owner.principal));
    }
    const options = await the.auth.passkeyOptions(principal);
    return options.ok ? options.value : valueOf(await the.auth.passkeyOptions(await stepUpBy(the, owner)));
  }

  /** A user who can still end the ceremony well. */
  async function holderFor(name: string): Promise<Holder> {
    if (name !== "enrolment") return owner;
    return { principal: await join(the, owner.principal, "member"), authenticator: newAuthenticator() };
  }

  refusesWhatIsWrong(enrolment(fixtureOf));
  refusesWhatIsWrong(signIn(fixtureOf));
  refusesWhatIsWrong(stepUp(fixtureOf));

  describe("bound to the user it was given to", () => {
    const enrol = enrolment(fixtureOf);
    const step = stepUp(fixtureOf);

    it("another session's challenge, of the same person, at enrolment and at step-up", async () => {
      const ofBare = { ...bare.principal, sessionId: "another" };
      await expectRefused(enrol, bare.principal, bare.authenticator.create(await enrol.begin(ofBare)));
      const other = await the.auth.signInWithPasskey(
        owner.authenticator.get(await the.auth.passkeySignInOptions()),
      );
      const session = valueOf(await the.auth.authenticateSession(valueOf(other).token));
      await expectRefused(step, session, owner.authenticator.get(await step.begin(owner.principal)));
    });

    it("another person's challenge, and another person's passkey to one's own challenge", async () => {
      const colleague = await withPasskey(the, await join(the, owner.principal, "owner"));
      const theirs = await step.begin(colleague.principal);
      const allowCredentials: [] = [];
      const toTheirs = owner.authenticator.get({ ...theirs, allowCredentials });
      await expectRefused(step, owner.principal, toTheirs);
      const mine = await step.begin(owner.principal);
      const byTheirs = colleague.authenticator.get({ ...mine, allowCredentials });
      await expectRefused(step, owner.principal, byTheirs);
      // By the person, too, and not by the session alone.
      const fresh = await join(the, owner.principal, "member");
      const inTheirSession = { ...fresh, sessionId: bare.principal.sessionId };
      for (const somebody of [fresh, inTheirSession]) {
        const given = await enrol.begin(bare.principal);
        await expectRefused(enrol, somebody, newAuthenticator().create(given));
      }
    });

    it("a passkey with another person's handle, at sign-in also without one", async () => {
      const handle = Buffer.alloc(16, 7).toString("base64url");
      const signs = signIn(fixtureOf);
      for (const userHandle of [handle, null]) {
        const options = await signs.begin(owner.principal);
        await expectRefused(signs, owner.principal, owner.authenticator.get(options, { userHandle }));
      }
      const options = await step.begin(owner.principal);
      await expectRefused(step, owner.principal, owner.authenticator.get(options, { userHandle: handle }));
    });
  });

  const respond = async (
    rite: Rite<RequestOptions, AuthenticationResponse>,
  ): Promise<AuthenticationResponse> => rite.respond(owner.authenticator, await rite.begin(owner.principal));

  for (const rite of [signIn(fixtureOf), stepUp(fixtureOf)]) {
    describe(`signed wrong, at ${rite.name}`, () => {
      for (const [what, alter] of ALTERED) {
        it(`${what} leaves no trace or suspicion on the passkey`, async () => {
          const good = await respond(rite);
          const bad = { ...good, response: { ...good.response, ...alter(good) } };
          await expectRefused(rite, owner.principal, bad);
          const suspected = { userId: the.userId, suspectedCloneAt: { $ne: null } };
          expect(await the.collections.passkeys.countDocuments(suspected)).to.equal(0);
        });
      }

      it("by a passkey that is not enrolled, and by another key under an enrolled one's id", async () => {
        const stranger = newAuthenticator();
        const fresh = await join(the, owner.principal, "member");
        const made = stranger.create(valueOf(await the.auth.passkeyOptions(fresh)));
        const options = { ...(await rite.begin(owner.principal)), allowCredentials: [] };
        const { userHandle = null } = (await respond(rite)).response;
        await expectRefused(rite, owner.principal, stranger.get(options, { userHandle: userHandle ?? null }));
        const again = { ...(await rite.begin(owner.principal)), allowCredentials: [] };
        const { id } = await respond(rite);
        const forged = { ...stranger.get(again, { userHandle: userHandle ?? null }), id, rawId: id };
        await expectRefused(rite, owner.principal, forged);
        expect(made.id).not.to.equal(id);
      });

      it("with a rawId that is not the id", async () => {
        const good = await respond(rite);
        await expectRefused(rite, owner.principal, { ...good, rawId: `${good.rawId}AA` });
      });
    });
  }

  describe("made wrong, at enrolment", () => {
    const enrol = enrolment(fixtureOf);
    const create = async (told: Partial<Ceremony>) =>
      bare.authenticator.create(await enrol.begin(bare.principal), told);

    it("with a certificate's attestation, which was not asked for", async () => {
      await expectRefused(enrol, bare.principal, await create({ attestation: "certificate" }));
    });

    it("with an algorithm that was not offered", async () => {
      await expectRefused(enrol, bare.principal, await create({ algorithm: -36 }));
    });

    it("under a credential id that is enrolled already, one's own or another person's", async () => {
      const taken = await the.collections.passkeys.findOne({ userId: the.userId });
      const credentialId = taken?.credentialId ?? "";
      await expectRefused(enrol, bare.principal, await create({ credentialId }));
      const stepped = await stepUpBy(the, owner);
      const options = valueOf(await the.auth.passkeyOptions(stepped));
      await expectRefused(enrol, stepped, newAuthenticator().create(options, { credentialId }));
    });

    it("under another id than the authenticator's data name", async () => {
      const good = await create({});
      const id = Buffer.alloc(32, 1).toString("base64url");
      await expectRefused(enrol, bare.principal, { ...good, id, rawId: id });
    });

    it("with a key that could never verify a signature: it would count as a factor and be none", async () => {
      for (const publicKey of UNUSABLE_KEYS) {
        await expectRefused(enrol, bare.principal, await create({ publicKey }));
      }
    });

    it("with an attestation that is no CBOR, is nested without end, or is cut short", async () => {
      const nested = Buffer.alloc(12_000, 0x81).toString("base64url");
      for (const attestationObject of ["AA", nested, "_____w"]) {
        const good = await create({});
        const bad = { ...good, response: { ...good.response, attestationObject } };
        await expectRefused(enrol, bare.principal, bad);
      }
      const { response, ...rest } = await create({});
      const attestationObject = response.attestationObject.slice(0, -8);
      const cut = { ...rest, response: { ...response, attestationObject } };
      await expectRefused(enrol, bare.principal, cut);
    });
  });

  it("no challenge is kept as it was given out, and what is left of any is removed by its end", async () => {
    const { challenge } = await the.auth.passkeySignInOptions();
    const kept = await the.collections.passkeyChallenges.find({}).toArray();
    expect(kept).not.to.have.length(0);
    expect(JSON.stringify(kept)).not.to.include(challenge);
    const indexes = await the.collections.passkeyChallenges.indexes();
    expect(indexes.find(({ name }) => name === "expiry")).to.deep.include({
      key: { expiresAt: 1 },
      expireAfterSeconds: 600,
    });
  });
});
