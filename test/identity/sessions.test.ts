import { createHmac, generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { decodeJwt, decodeProtectedHeader, SignJWT } from "jose";
import { SessionTokens } from "../../src/identity/session-token.ts";
import { loadSigningKey, type SigningKey } from "../../src/identity/signing-key.ts";
import { Sealer, SealError } from "../../src/secrets/sealer.ts";
import { testDatabase } from "../support/mongo.ts";
import {
  authOn,
  atOnce,
  EMAIL,
  fixture,
  MINUTE,
  outcomeOf,
  PASSWORD,
  valueOf,
  BASE_URL,
  masterKeyOf,
  type Fixture,
} from "./support.ts";

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("A session token", () => {
  let the: Fixture;
  let key: SigningKey;
  before(async () => {
    the = await fixture();
    key = await loadSigningKey(the.database.db, new Sealer(the.masterKey), the.clock.read);
  });
  after(() => the.database.close());

  const outcome = async (token: string) =>
    outcomeOf(await the.auth.authenticateSession(token, the.clock.read()));

  /** A token that is right but for what is given. */
  async function forge(
    changes: Record<string, unknown>,
    signWith: SignInKey = key.privateKey,
    alg = "EdDSA",
  ): Promise<string> {
    const claims = { ...decodeJwt((await the.signIn()).token), ...changes };
    return await new SignJWT(claims).setProtectedHeader({ alg, typ: "JWT" }).sign(signWith);
  }

  it("is an EdDSA JWT with exactly the claims of the contract, for 15 minutes", async () => {
    const { token, expiresAt, user, organization } = await the.signIn();
    expect(decodeProtectedHeader(token)).to.deep.equal({ alg: "EdDSA", typ: "JWT" });
    const claims = decodeJwt(token);
    const now = the.clock.read().getTime() / 1000;
    expect(Object.keys(claims).toSorted((a, b) => (a < b ? -1 : 1))).to.deep.equal(
      ["amr", "aud", "auth_time", "exp", "iat", "iss", "org_id", "org_role", "sid", "sub"], // prettier-ignore
    );
    expect(claims).to.deep.include({
      iss: BASE_URL,
      aud: BASE_URL,
      iat: now,
      exp: now + 900,
      auth_time: now,
    });
    expect(claims).to.deep.include({
      sub: user.id,
      org_id: organization.id,
      org_role: "owner",
      amr: ["pwd"],
    });
    expect(expiresAt).to.equal(new Date((now + 900) * 1000).toISOString());
    expect(user).to.deep.equal({
      id: the.userId,
      name: "Ada",
      email: EMAIL,
      emailVerified: false,
      binding: { type: "organization" },
      role: "owner",
      createdAt: user.createdAt,
      secondFactors: [],
    });
    const expected = {
      id: the.organizationId,
      name: "Analytical Engines",
      plan: "pro",
      status: "provisioning",
    };
    expect(organization).to.deep.equal(expected);
  });

  it("names the person, their role and their organization", async () => {
    const principal = await the.session();
    expect(principal).to.include({ userId: the.userId, role: "owner", organizationId: the.organizationId });
    expect(principal.organization.plan).to.equal("pro");
    expect(JSON.stringify(principal)).not.to.include("argon2");
    const me = valueOf(await the.auth.me(principal));
    expect(me.user.id).to.equal(the.userId);
    expect(me.organization.id).to.equal(the.organizationId);
  });

  it("is good until its last millisecond and expired from then on", async () => {
    const { token } = await the.signIn();
    const at = (milliseconds: number) =>
      the.auth.authenticateSession(token, new Date(the.clock.read().getTime() + milliseconds));
    expect(outcomeOf(await at(15 * MINUTE - 1))).to.equal(null);
    const late = await at(15 * MINUTE);
    expect(outcomeOf(late)).to.equal("UNAUTHORIZED");
    expect(late.ok ? "" : late.refusal.message, "says how to go on").to.match(/expired.*15 minutes.*refresh/);
  });

  it("is told to be expired when it is well signed and nothing else is wrong with it", async () => {
    const { token } = await the.signIn();
    const later = new Date(the.clock.read().getTime() + 60 * MINUTE);
    const told = async (text: string) => {
      const result = await the.auth.authenticateSession(text, later);
      return result.ok ? "" : result.refusal.message;
    };
    expect(await told(token)).to.include("expired:");
    for (const wrong of [`${token.slice(0, -3)}AAA`, await forge({ iss: "https://evil.example.test" })]) {
      expect(await told(wrong)).not.to.include("expired:");
    }
  });

  it("is accepted when forged unchanged with the real key: every refusal below has its cause", async () => {
    expect(await outcome(await forge({}))).to.equal(null);
  });

  const CHANGES: readonly (readonly [why: string, changes: Record<string, unknown>])[] = [
    ["a foreign issuer", { iss: "https://evil.example.test" }],
    ["no issuer", { iss: undefined }],
    ["a foreign audience", { aud: "https://evil.example.test" }],
    ["no audience", { aud: undefined }],
    ["no expiry", { exp: undefined }],
    ["an expiry that is not a number", { exp: "never" }],
    ["an unknown session", { sid: "0198a000-0000-7000-8000-000000000000" }],
    ["another person's id", { sub: "0198a000-0000-7000-8000-000000000000" }],
    ["another organization's id", { org_id: "0198a000-0000-7000-8000-000000000000" }],
    ["an operator for a session id", { sid: { $gt: "" } }],
    ["a start in the future", { nbf: 32_503_680_000 }],
  ];
  for (const [why, changes] of CHANGES) {
    it(`is refused even under the real key with ${why}`, async () => {
      expect(await outcome(await forge(changes))).to.equal("UNAUTHORIZED");
    });
  }

  it("is refused with algorithm none, signed or not", async () => {
    const [, payload, signature] = (await the.signIn()).token.split(".");
    for (const alg of ["none", "None", "NONE", ""]) {
      const header = base64url({ alg, typ: "JWT" });
      expect(await outcome(`${header}.${payload}.`)).to.equal("UNAUTHORIZED");
      expect(await outcome(`${header}.${payload}.${signature}`)).to.equal("UNAUTHORIZED");
    }
  });

  it("is refused with HS256 keyed by the public key in any of its encodings", async () => {
    const [, payload] = (await the.signIn()).token.split(".");
    const header = base64url({ alg: "HS256", typ: "JWT" });
    const x = key.publicKey.export({ format: "jwk" }).x ?? "";
    const encodings = [
      key.publicKey.export({ type: "spki", format: "pem" }),
      key.publicKey.export({ type: "spki", format: "der" }),
      Buffer.from(x, "base64url"),
      x,
    ];
    for (const secret of encodings) {
      const signature = createHmac("sha256", secret).update(`${header}.${payload}`).digest("base64url");
      expect(await outcome(`${header}.${payload}.${signature}`)).to.equal("UNAUTHORIZED");
    }
  });

  it("is refused under another EdDSA key, also when the header brings that key along", async () => {
    const foreign = generateKeyPairSync("ed25519");
    expect(await outcome(await forge({}, foreign.privateKey))).to.equal("UNAUTHORIZED");
    const jwk = foreign.publicKey.export({ format: "jwk" });
    const carried = await new SignJWT(decodeJwt((await the.signIn()).token))
      .setProtectedHeader({ alg: "EdDSA", typ: "JWT", jwk })
      .sign(foreign.privateKey);
    expect(await outcome(carried)).to.equal("UNAUTHORIZED");
  });

  it("is refused with another algorithm and key, even when its header brings that key along", async () => {
    const claims = decodeJwt((await the.signIn()).token);
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
    for (const [alg, { privateKey, publicKey }] of [
      ["RS256", rsa],
      ["PS256", rsa],
      ["ES256", ec],
    ] as const) {
      const jwk = publicKey.export({ format: "jwk" });
      for (const header of [
        { alg, typ: "JWT" },
        { alg, typ: "JWT", jwk },
        { alg, typ: "JWT", kid: "../../dev/null" },
      ]) {
        const token = await new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
        expect(await outcome(token), alg).to.equal("UNAUTHORIZED");
      }
    }
  });

  it("is refused with another type or algorithm in its header, though the signature is right", async () => {
    const claims = decodeJwt((await the.signIn()).token);
    const typed = new SignJWT(claims).setProtectedHeader({ alg: "EdDSA", typ: "at+jwt" });
    expect(await outcome(await typed.sign(key.privateKey))).to.equal("UNAUTHORIZED");
    expect(await outcome(await forge({}, key.privateKey, "Ed25519"))).to.equal("UNAUTHORIZED");
  });

  it("is refused when any part was tampered with", async () => {
    const { token } = await the.signIn();
    const [header = "", payload = "", signature = ""] = token.split(".");
    const promoted = base64url({ ...decodeJwt(token), org_role: "admin" });
    expect(await outcome(`${header}.${promoted}.${signature}`)).to.equal("UNAUTHORIZED");
    for (const part of [0, 1, 2]) {
      const parts = [header, payload, signature];
      const text = parts[part] ?? "";
      parts[part] = text.slice(0, 9) + (text.charAt(9) === "A" ? "B" : "A") + text.slice(10);
      expect(await outcome(parts.join("."))).to.equal("UNAUTHORIZED");
    }
  });

  it("is refused, and never an exception, when it is no token at all", async () => {
    const odd = [
      "",
      ".",
      "..",
      "a.b.c",
      "\u0000",
      "null",
      "{}",
      "x".repeat(1_000_000),
      `${"a".repeat(200)}.${"b".repeat(200)}.`,
    ];
    for (const token of odd) expect(await outcome(token)).to.equal("UNAUTHORIZED");
  });

  it("is dead from the moment of the sign-out, and only that session's", async () => {
    const [one, other] = [await the.signIn(), await the.signIn()];
    valueOf(await the.auth.signOut(valueOf(await the.auth.authenticateSession(one.token))));
    expect(await outcome(one.token)).to.equal("UNAUTHORIZED");
    expect(await outcome(other.token)).to.equal(null);
    expect(outcomeOf(await the.auth.refresh({ refreshToken: one.refreshToken }))).to.equal("UNAUTHORIZED");
  });

  it("carries a changed role from the next request on, whatever it says itself", async () => {
    const { token } = await the.signIn();
    await the.prove("user", { _id: the.userId }, { role: "member" });
    expect(valueOf(await the.auth.authenticateSession(token)).role).to.equal("member");
    await the.prove("user", { _id: the.userId }, { role: "owner" });
    expect(valueOf(await the.auth.authenticateSession(token)).role).to.equal("owner");
  });

  it("is dead from the moment its person is removed or in another organization", async () => {
    const { token } = await the.signIn();
    const user = await the.collections.users.findOneAndDelete({ _id: the.userId });
    expect(await outcome(token)).to.equal("UNAUTHORIZED");
    if (user === null) throw new Error("The user was there.");
    await the.collections.users.insertOne({ ...user, organizationId: "another" });
    await the.prove("user");
    expect(await outcome(token)).to.equal("UNAUTHORIZED");
    await the.collections.users.replaceOne({ _id: the.userId }, user);
    expect(await outcome(token)).to.equal(null);
  });
});

type SignInKey = Parameters<SignJWT["sign"]>[0];

describe("The signing key", () => {
  it("is one when two servers start first at once, and outlives a restart", async () => {
    const the = await fixture();
    try {
      const { db } = the.database;
      await db.collection<{ _id: string }>("settings").deleteOne({ _id: "session-signing-key" });
      const deps = { db, masterKey: the.masterKey, baseUrl: BASE_URL, clock: the.clock.read };
      const servers = await atOnce(4, () => authOn(deps));
      const later = await authOn(deps);
      for (const server of servers) {
        const { token } = valueOf(await server.signIn({ email: EMAIL, password: PASSWORD }));
        for (const other of [...servers, later]) valueOf(await other.authenticateSession(token));
      }
    } finally {
      await the.database.close();
    }
  });

  it("lies sealed in the database, and does not open under another master key", async () => {
    const { db, close } = await testDatabase();
    try {
      await loadSigningKey(db, new Sealer(masterKeyOf("a")), () => new Date());
      const stored = JSON.stringify(await db.collection("settings").find().toArray());
      expect(stored).not.to.include("PRIVATE KEY");
      const error: unknown = await loadSigningKey(db, new Sealer(masterKeyOf("b")), () => new Date()).then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).to.be.instanceOf(SealError);
    } finally {
      await close();
    }
  });

  it("accepts nothing of a service with another base URL that shares it", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const now = new Date();
    const subject = { sessionId: "s", userId: "u", organizationId: "o" };
    const staging = new SessionTokens({ privateKey, publicKey }, "https://staging.example.test");
    const live = new SessionTokens({ privateKey, publicKey }, BASE_URL);
    const { token } = await staging.sign({ ...subject, role: "owner", signedInAt: now, amr: ["pwd"] }, now);
    expect(await staging.verify(token, now)).to.deep.equal(subject);
    expect(await live.verify(token, now)).to.equal(null);
  });
});
