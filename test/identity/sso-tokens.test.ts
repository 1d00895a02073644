import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mock } from "node:test";
import { expect } from "chai";
import {
  type CryptoKey,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  SignJWT,
  UnsecuredJWT,
} from "jose";
import { GuardedFetch } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import { isProvedEmail, ProviderFailure, Providers } from "../../src/identity/sso/providers.ts";
import { answerAt, LOOPBACK } from "../support/identity-provider.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { elevate, newWorld, type World } from "../support/world.ts";

const CLIENT = {
  clientId: "spending-control",
  clientSecret: "a secret of 32 characters or more, as HMAC wants",
};

const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";

type Claims = Readonly<Record<string, unknown>>;

describe("ID tokens of an identity provider", () => {
  let service: TestService;
  let world: World;
  let server: Server;
  let issuer: string;
  let keys: { readonly publicKey: CryptoKey; readonly privateKey: CryptoKey };
  let published: readonly JWK[];
  let keysRead = 0;
  let domain: string;
  /** The ID token that the provider answers next, by the nonce of the request. */
  let tokenOf: (claims: Claims) => Promise<string>;
  let claims: Claims = {};

  before(async () => {
    keys = await generateKeyPair("RS256", { extractable: true });
    published = [await jwkOf(keys.publicKey, "provider")];
    server = createServer((request, response) => {
      const answer = (body: object): void =>
        void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
      if (request.url?.startsWith("/.well-known/") === true)
        return answer({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["RS256", "HS256", "none"],
        });
      if (request.url === "/jwks") {
        keysRead += 1;
        return answer({ keys: published });
      }
      void tokenOf(claims).then((id_token) => answer({ access_token: "x", token_type: "Bearer", id_token }));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    service = await startTestService({ worker: false, clientDocuments: LOOPBACK });
    world = await newWorld(service);
    domain = `${randomUUID()}.example.com`;
    await elevate(world);
    const jit = { role: "member" as const };
    const body = { ...CLIENT, issuer, domains: [domain], required: false, jit };
    await world.api.ok("setSso", 200, { token: world.token, body });
  });
  after(async () => {
    await service?.stop();
    server?.closeAllConnections();
    server?.close();
  });

  /** The request that finishes a sign-in, for which the provider answers a token of these claims. */
  async function comeBack(change: Claims, make: typeof tokenOf, iss?: string) {
    const email = `ada@${domain}`;
    const begun = await world.api.call("startSso", { body: { email } });
    const flow = /svc_sso[^=]*=([^;]+)/.exec(begun.headers.getSetCookie().join())?.[1] ?? "";
    const { searchParams } = new URL((begun.body as { url: string }).url);
    const now = Math.floor(Date.now() / 1_000);
    const sound = { iss: issuer, aud: CLIENT.clientId, sub: "ada", iat: now, exp: now + 60 };
    const nonce = searchParams.get("nonce");
    claims = { ...sound, nonce, email, email_verified: true, ...change };
    tokenOf = make;
    const returned = new URL(searchParams.get("redirect_uri") ?? "");
    returned.searchParams.set("code", "code");
    returned.searchParams.set("state", searchParams.get("state") ?? "");
    if (iss !== undefined) returned.searchParams.set("iss", iss);
    return { body: { flow, ...answerAt(returned) } };
  }

  const accepted = async (...of: Parameters<typeof comeBack>) =>
    world.api.ok("finishSso", 200, await comeBack(...of));
  const refused = async (...of: Parameters<typeof comeBack>) =>
    world.api.refused("finishSso", 401, "SSO_FAILED", await comeBack(...of));

  const signed = (
    given: Claims,
    key: CryptoKey | Uint8Array = keys.privateKey,
    alg = "RS256",
    kid = "provider",
  ) => new SignJWT(given).setProtectedHeader({ alg, kid }).sign(key);

  const logout = (change: Claims): Claims => {
    const events = { [LOGOUT_EVENT]: {} };
    const iat = Math.floor(Date.now() / 1_000);
    return { iss: issuer, aud: CLIENT.clientId, iat, events, ...change };
  };
  const ended = (logout_token: string) => world.api.ok("endSsoSessions", 204, { body: { logout_token } });
  const isOver = async (token = ""): Promise<boolean> =>
    (await world.api.call("listAgents", { token })).status === 401;

  it("one that is signed for this client and this request lets its person in", async () => {
    const { user } = await accepted({}, signed);
    expect(user.email).to.equal(`ada@${domain}`);
  });

  const FORGED: Readonly<Record<string, (given: Claims) => Promise<string>>> = {
    "is not signed": (given) => Promise.resolve(new UnsecuredJWT(given).encode()),
    "is signed with the client's secret": (given) =>
      signed(given, new TextEncoder().encode(CLIENT.clientSecret), "HS256"),
    "is signed with the provider's public key as a secret": async (given) =>
      signed(given, new TextEncoder().encode(await exportSPKI(keys.publicKey)), "HS256"),
    "is signed with a key that the provider does not have": async (given) =>
      signed(given, (await generateKeyPair("RS256")).privateKey),
  };
  for (const [what, make] of Object.entries(FORGED)) {
    it(`one that ${what} is refused`, async () => {
      await refused({}, make);
    });
  }

  const FOREIGN: Readonly<Record<string, Claims>> = {
    "of another issuer": { iss: "https://evil.example.com" },
    "for another client": { aud: "another" },
    "for several clients, made for another": { aud: [CLIENT.clientId, "another"], azp: "another" },
    "of another request": { nonce: "another" },
    "without the request's nonce": { nonce: undefined },
    "that has expired": { exp: Math.floor(Date.now() / 1_000) - 3_600 },
    "of nobody": { sub: undefined },
  };
  for (const [what, change] of Object.entries(FOREIGN)) {
    it(`one ${what} is refused`, async () => {
      await refused(change, signed);
    });
  }

  it("a name or an address that no account could have keeps nobody out", async () => {
    const sub = randomUUID();
    const [email, name] = [`${sub}@${domain}`, "x".repeat(101)];
    const { user } = await accepted({ sub, email, name }, signed);
    expect(user.name).to.equal(sub);
    expect((await accepted({ sub, email: "no address", name: "a\u0000b" }, signed)).user.id).to.equal(
      user.id,
    );
  });

  it("a logout token whose issuer or audience is no text is refused as any forged one is", async () => {
    for (const change of [{ iss: { $gt: "" } }, { aud: [{ $ne: "" }] }, { aud: { $ne: "" } }]) {
      const logout_token = await signed(logout({ sub: "ada", ...change }));
      await world.api.refused("endSsoSessions", 401, "SSO_FAILED", { body: { logout_token } });
    }
  });

  it("a logout of one session ends those of its person, too, that the provider gave no id", async () => {
    const { token } = await accepted({}, signed);
    const other = await accepted({ sid: "another" }, signed);
    await ended(await signed(logout({ sub: "ada", sid: "unheard of" })));
    expect([await isOver(token), await isOver(other.token)]).to.deep.equal([true, false]);
  });

  it("a new key of the provider is read after a pause, in which unknown keys cause no other read", async () => {
    const providers = new Providers(new GuardedFetch(LOOPBACK));
    const of = { ...CLIENT, issuer, redirectUri: "" };
    const endedBy = async (key: CryptoKey, kid: string) =>
      providers.loggedOut(of, await signed(logout({ sub: "ada" }), key, "RS256", kid)).then(
        ({ sub }) => sub,
        (error: unknown) => (error instanceof ProviderFailure ? "refused" : error),
      );
    const next = await generateKeyPair("RS256", { extractable: true });
    mock.timers.enable({ apis: ["Date"], now: Date.now() });
    try {
      expect(await endedBy(keys.privateKey, "provider")).to.equal("ada");
      const before = keysRead;
      for (let tries = 0; tries < 20; tries += 1)
        expect(await endedBy(next.privateKey, `unknown ${tries}`)).to.equal("refused");
      expect(keysRead).to.equal(before);
      published = [...published, await jwkOf(next.publicKey, "next")];
      mock.timers.tick(5_000);
      expect(await endedBy(next.privateKey, "next")).to.equal("ada");
      expect(await endedBy(keys.privateKey, "provider")).to.equal("ada");
      expect(keysRead).to.equal(before + 1);
    } finally {
      mock.timers.reset();
    }
  });

  it("an answer that names another issuer is refused, whatever the metadata promises", async () => {
    await refused({}, signed, "https://evil.example.com");
    await accepted({}, signed, issuer);
  });
});

describe("addresses that an identity provider has verified", () => {
  it("Google vouches for those of its Workspaces alone; anybody may have had another once", () => {
    const verified = { email: "ada@corp.example.com", email_verified: true };
    const google = "https://accounts.google.com";
    expect(isProvedEmail(google, verified)).to.equal(false);
    expect(isProvedEmail(google, { ...verified, hd: "" })).to.equal(false);
    expect(isProvedEmail(google, { ...verified, hd: "corp.example.com" })).to.equal(true);
    expect(isProvedEmail("https://corp.okta.com", verified)).to.equal(true);
    expect(isProvedEmail("https://corp.okta.com", { ...verified, email_verified: "true" })).to.equal(false);
  });
});

const jwkOf = async (key: CryptoKey, kid: string): Promise<JWK> => ({
  ...(await exportJWK(key)),
  kid,
  alg: "RS256",
  use: "sig",
});
