import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { freshAddress } from "../support/api.ts";
import {
  answerAt,
  startIdentityProvider,
  type IdentityProvider,
  LOOPBACK,
  type ProviderPerson,
} from "../support/identity-provider.ts";
import { invite, join, newEmail } from "../support/people.ts";
import { prove } from "../support/access-proofs.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";
import { elevate, newWorld, type World } from "../support/world.ts";

const HOUR_MS = 3_600_000;

describe("sign-in by an organization's identity provider", () => {
  let service: TestService;
  let provider: IdentityProvider;
  let world: World;
  let domain: string;
  let aheadMs = 0;

  before(async () => {
    service = await startTestService({
      worker: false,
      clientDocuments: LOOPBACK,
      clock: () => new Date(Date.now() + aheadMs),
    });
  });
  after(() => service.stop());

  beforeEach(async () => {
    aheadMs = 0;
    world = await newWorld(service);
    const { callbackUrl } = await world.api.ok("getSso", 200, { token: world.token });
    provider = await startIdentityProvider(callbackUrl);
    domain = `${randomUUID()}.example.com`;
    await choose();
  });
  afterEach(() => provider.close());

  const chosen = (change: object = {}) => ({
    issuer: provider.issuer,
    clientId: provider.clientId,
    clientSecret: provider.clientSecret,
    domains: [domain],
    required: false,
    jit: { role: "member" as const },
    ...change,
  });

  async function choose(change: object = {}): Promise<void> {
    await elevate(world);
    await world.api.ok("setSso", 200, { token: world.token, body: chosen(change) });
  }

  /** Begins a sign-in: where the browser goes, and what it keeps. */
  async function begin(body: object = { email: `ada@${domain}` }) {
    const response = await fetch(`${service.baseUrl}/v1/auth/sso/start`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": freshAddress() },
      body: JSON.stringify(body),
    });
    expect(response.status).to.equal(200);
    const cookie = response.headers.getSetCookie().find((each) => each.includes("svc_sso")) ?? "";
    expect(cookie)
      .to.match(/HttpOnly/i)
      .and.match(/SameSite=Strict/i)
      .and.include("Path=/v1/auth/sso/callback");
    const { url } = (await response.json()) as { url: string };
    return { url, flow: /svc_sso[^=]*=([^;]+)/.exec(cookie)?.[1] ?? "" };
  }

  /** The body with which the page comes back. */
  async function comeBack(person: ProviderPerson, of?: object): Promise<Record<string, string>> {
    const { flow, url } = await begin(of);
    const returned = await provider.signIn(url, person);
    return { flow, ...answerAt(returned) };
  }

  const finish = (body: object) => world.api.call("finishSso", { body });
  const signIn = async (person: ProviderPerson, of?: object) =>
    world.api.ok("finishSso", 200, { body: await comeBack(person, of) });
  const ada = (change: object = {}): ProviderPerson => ({
    sub: "subject-of-ada",
    email: `ada@${domain}`,
    email_verified: true,
    name: "Ada",
    ...change,
  });
  const refused = async (status: number, code: string, body: object) =>
    world.api.refused("finishSso", status, code as "SSO_FAILED", { body });

  async function isAlive({ token = "" }: { readonly token?: string | undefined }): Promise<boolean> {
    return (await world.api.call("listAgents", { token })).status === 200;
  }

  it("an owner alone sets it; its secret is sealed, never shown, and kept for the same client", async () => {
    const admin = await join(world, "admin");
    const { clientSecret: _same, ...body } = chosen({ required: false });
    await world.api.refused("setSso", 403, "ROLE_REQUIRED", { token: admin.token, body });
    await elevate(world);
    const kept = await world.api.ok("setSso", 200, { token: world.token, body });
    expect(JSON.stringify(kept)).not.to.include(provider.clientSecret);
    expect(kept.callbackUrl).to.match(/\/sso\/[\w-]{36}$/);
    const other = { ...body, clientId: "another" };
    await world.api.refused("setSso", 400, "VALIDATION_FAILED", { token: world.token, body: other });
    const stored = await service.db.collection("sso").findOne({ domains: domain });
    expect(JSON.stringify(stored)).not.to.include(provider.clientSecret);
    await signIn(ada());
    const away = { ...chosen(), issuer: "http://127.0.0.1:1" };
    await world.api.refused("setSso", 400, "VALIDATION_FAILED", { token: world.token, body: away });
    const second = await newWorld(service);
    await elevate(second);
    const taken = chosen({ clientId: "second" });
    await second.api.refused("setSso", 400, "VALIDATION_FAILED", { token: second.token, body: taken });
  });

  it("a person is issuer and subject: their address may change, and never becomes another's", async () => {
    const first = await signIn(ada());
    expect(first.user).to.deep.include({
      email: `ada@${domain}`,
      role: "member",
      name: "Ada",
      emailVerified: true,
    });
    await world.api.ok("listAgents", 200, { token: first.token ?? "" });
    const again = await signIn(ada({ email: `countess@${domain}` }));
    expect(again.user.id).to.equal(first.user.id);
    await refused(403, "SSO_NO_ACCOUNT", await comeBack(ada({ sub: "somebody-else" })));
  });

  it("an address that is not verified, in so many words, or of another domain makes no account", async () => {
    for (const change of [
      { email_verified: "true" },
      { email_verified: undefined },
      { email: "ada@elsewhere.example.com" },
      { email: undefined },
    ])
      await refused(403, "SSO_NO_ACCOUNT", await comeBack(ada({ sub: randomUUID(), ...change })));
    await choose({ jit: null });
    await refused(403, "SSO_NO_ACCOUNT", await comeBack(ada()));
  });

  it("an account is linked by a proved address alone; a claimed one may be a stranger's", async () => {
    const { user } = await signIn(ada());
    const { id } = await join(world, "member");
    const email = `grace@${domain}`;
    await prove(service.db, "user", { _id: id }, { email, emailNormalized: email });
    const grace = { sub: "subject-of-grace", email, email_verified: true };
    await refused(403, "SSO_NO_ACCOUNT", await comeBack(grace));
    await service.db.collection("users").updateOne({ _id: id } as object, { $set: { emailVerified: true } });
    expect((await signIn(grace)).user.id)
      .to.equal(id)
      .and.not.equal(user.id);
  });

  it("an invite links whoever opens it, with its role, once", async () => {
    const { token } = await invite(world, "auditor", newEmail());
    const person = { sub: "invited", name: "Invited" };
    const { user } = await signIn(person, { token });
    expect(user).to.deep.include({ role: "auditor", emailVerified: false });
    await world.api.refused("startSso", 404, "NOT_FOUND", { body: { token } });
    expect((await signIn(person)).user.id).to.equal(user.id);
  });

  it("the first sign-in in two browsers at once makes one account", async () => {
    const bodies = [await comeBack(ada()), await comeBack(ada())];
    const ids = (await Promise.all(bodies.map((body) => world.api.ok("finishSso", 200, { body })))).map(
      ({ user }) => user.id,
    );
    expect(new Set(ids).size).to.equal(1);
  });

  it("who asks learns nothing of accounts: the domain alone decides", async () => {
    await world.api.refused("startSso", 404, "NOT_FOUND", { body: { email: newEmail() } });
    const url = new URL((await begin({ email: `nobody@${domain}` })).url);
    expect(url.origin).to.equal(provider.issuer);
    expect(url.searchParams.get("code_challenge_method")).to.equal("S256");
  });

  it("an answer counts once, in the browser that asked, from the issuer that was asked", async () => {
    const { flow: _own, ...foreign } = await comeBack(ada());
    await refused(401, "SSO_FAILED", foreign);
    await refused(401, "SSO_FAILED", { ...foreign, flow: (await begin()).flow });
    const good = await comeBack(ada());
    await refused(401, "SSO_FAILED", { ...good, state: "another" });
    await refused(401, "SSO_FAILED", { ...good, iss: "https://evil.example.com" });
    const { iss: _iss, ...missing } = await comeBack(ada());
    await refused(401, "SSO_FAILED", missing);
    const late = await comeBack(ada());
    aheadMs = 11 * 60_000;
    await refused(401, "SSO_FAILED", late);
    aheadMs = 0;
    const once = await comeBack(ada());
    expect((await finish(once)).status).to.equal(200);
    await refused(401, "SSO_FAILED", once);
    // The code of one sign-in in the flow of another: PKCE and nonce are not its.
    const [mine, theirs] = [await comeBack(ada()), await comeBack(ada({ sub: "mallory" }))];
    await refused(401, "SSO_FAILED", { ...mine, code: theirs["code"] });
  });

  it("an answer at another organization's page is not sent to this one's provider", async () => {
    const good = await comeBack(ada());
    const { organizationId } = (await newWorld(service)).organization;
    await refused(401, "SSO_FAILED", { ...good, organizationId });
    // The code was redeemed by nobody.
    expect((await finish(good)).status).to.equal(200);
  });

  it("an account of another organization is never linked, whatever its proved address", async () => {
    const other = await newWorld(service);
    const { id } = await join(other, "owner");
    const email = `ada@${domain}`;
    const proved = { email, emailNormalized: email, emailVerified: true };
    await prove(service.db, "user", { _id: id }, proved);
    expect((await signIn(ada())).user.id).not.to.equal(id);
    const account = await service.db.collection("users").findOne({ _id: id } as object);
    expect(account).not.to.have.property("sso");
  });

  it("a new provider links people anew; the earlier one lets nobody in", async () => {
    const before = await signIn(ada());
    const earlier = await comeBack(ada());
    await provider.close();
    const { callbackUrl } = await world.api.ok("getSso", 200, { token: world.token });
    provider = await startIdentityProvider(callbackUrl);
    await choose();
    await refused(401, "SSO_FAILED", earlier);
    expect((await signIn(ada({ sub: "of the new provider" }))).user.id).to.equal(before.user.id);
  });

  it("where it is required members come by it alone, for 12 hours; owners keep their password", async () => {
    const member = await join(world, "member");
    const { token: pending } = await invite(world, "member");
    await choose({ required: true });
    await world.api.refused("listAgents", 401, "UNAUTHORIZED", { token: member.token });
    const byPassword = { email: member.email, password: PASSWORD };
    await world.api.refused("signIn", 403, "SSO_REQUIRED", { body: byPassword });
    const accepted = { token: pending, name: "Late", password: PASSWORD };
    await world.api.refused("acceptInvite", 403, "SSO_REQUIRED", { body: accepted });
    await world.api.ok("listAgents", 200, { token: world.token });
    const { email, password } = world.organization;
    await world.api.ok("signIn", 200, { body: { email, password } });
    const { refreshToken = "" } = await signIn(ada());
    aheadMs = 11 * HOUR_MS;
    const body = await world.api.ok("refreshSession", 200, { body: { refreshToken } });
    aheadMs = 12 * HOUR_MS + 60_000;
    await world.api.refused("refreshSession", 401, "UNAUTHORIZED", {
      body: { refreshToken: body.refreshToken ?? "" },
    });
  });

  it("a provider's logout token ends the sessions that it names, and nothing forged does", async () => {
    const end = async (logout_token: string) => {
      const body = new URLSearchParams({ logout_token });
      return (await fetch(`${service.baseUrl}/v1/auth/sso/logout`, { method: "POST", body })).status;
    };
    const [one, two] = [await signIn(ada()), await signIn(ada())];
    const { sub } = ada();
    const old = Math.floor(Date.now() / 1_000) - 3_600;
    for (const claims of [
      { sub, aud: "another" },
      { sub, nonce: "n" },
      { sub, events: {} },
      { sub, iat: old },
      {},
    ])
      expect(await end(await provider.logoutToken(claims)), JSON.stringify(claims)).to.equal(401);
    const [head, , signature] = (await provider.logoutToken({ sub })).split(".");
    const [, forged] = (await provider.logoutToken({ sub, sid: "x" })).split(".");
    expect(await end([head, forged, signature].join("."))).to.equal(401);
    expect([await isAlive(one), await isAlive(two)]).to.deep.equal([true, true]);
    const users = service.db.collection("sessions").find({ userId: one.user.id }).sort({ _id: 1 });
    const [begun] = await users.toArray();
    expect(await end(await provider.logoutToken({ sub, sid: String(begun?.["ssoSid"]) }))).to.equal(204);
    expect([await isAlive(one), await isAlive(two)]).to.deep.equal([false, true]);
    expect(await end(await provider.logoutToken({ sub }))).to.equal(204);
    expect(await isAlive(two)).to.equal(false);
  });
});
