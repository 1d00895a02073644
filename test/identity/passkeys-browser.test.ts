import { expect } from "chai";
import type { CDPSession, Page } from "puppeteer-core";
import { z } from "zod";
import { freshAddress } from "../support/api.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { newWorld, type World } from "../support/world.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { startTestService, type TestService } from "../support/service.ts";

/** What a script of the page got for an answer, or the browser's own refusal. */
const answer = z.object({ status: z.int(), body: z.looseObject({}).nullable() });
type Answer = z.output<typeof answer>;

const FETCH = `async (method, path, body) => {
  const response = await fetch(path, {
    method,
    headers: { "svc-session": "cookie", ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}`;

/** As the pages of any site do it: options from the service, the browser's ceremony, its answer to the service. */
const CEREMONIES = {
  create: `async (options) => (await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
  })).toJSON()`,
  get: `async (options) => (await navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
  })).toJSON()`,
};

/**
 * The three ceremonies in real Chromium, with its own virtual authenticator, at http://localhost: what the table of
 * refusals proves with an authenticator in software is held against what browsers really send.
 */
describe("Passkeys in a browser", function () {
  let service: TestService;
  let world: World;
  let page: Page;
  let cdp: CDPSession;
  let authenticatorId: string;

  before(async function () {
    const standIn = ";\n    the authenticator in software of the other passkey tests stands in for it";
    const browser = await chromiumOrPending(this, standIn);
    service = await startTestService({ worker: false, evmRpcUrl: null });
    page = await (await browser.createBrowserContext()).newPage();
    // Any page of the origin will do, and this one is light; its own policy lets no script ask for anything.
    await page.setBypassCSP(true);
    await page.goto(`${pageOrigin({ service })}/healthz`);
    cdp = await page.createCDPSession();
    await cdp.send("WebAuthn.enable");
  });
  beforeEach(async () => {
    world = await newWorld(service);
    // The tests share one machine, and sign-ins are counted by address.
    await page.setExtraHTTPHeaders({ "x-forwarded-for": freshAddress() });
    const context = page.browserContext();
    await context.deleteCookie(...(await context.cookies()));
    authenticatorId = await virtualAuthenticator();
  });
  afterEach(() => cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId }));
  after(async () => {
    await page?.browserContext().close();
    await service?.stop();
  });

  async function virtualAuthenticator(): Promise<string> {
    const { authenticatorId: id } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return id;
  }

  const inPage = (script: string, ...args: readonly unknown[]): Promise<unknown> =>
    page.evaluate(`(${script})(${args.map((arg) => JSON.stringify(arg) ?? "undefined").join(", ")})`);

  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> =>
    answer.parse(await inPage(FETCH, method, path, body));

  async function ok(method: string, path: string, status: number, body?: unknown): Promise<Answer["body"]> {
    const got = await ask(method, path, body);
    expect(got.status, `${path}: ${JSON.stringify(got.body)}`).to.equal(status);
    return got.body;
  }

  async function signInByPassword(): Promise<void> {
    const { email, password } = world.organization;
    await ok("POST", "/v1/auth/sign-in", 200, { email, password });
  }

  async function signInByPasskey(): Promise<Answer> {
    const response = await respond("/v1/auth/sign-in/passkey/options");
    return await ask("POST", "/v1/auth/sign-in/passkey", { response });
  }

  async function enrol(name: string): Promise<Answer["body"]> {
    const options = await ok("POST", "/v1/auth/passkeys/options", 200);
    const response = await inPage(CEREMONIES.create, options);
    return await ok("POST", "/v1/auth/passkeys", 201, { name, response });
  }

  async function respond(path: string): Promise<unknown> {
    return await inPage(CEREMONIES.get, await ok("POST", path, 200));
  }

  /** The name of what the browser itself throws. */
  const thrownBy = (script: string, ...args: readonly unknown[]): Promise<unknown> =>
    inPage(
      `async (...args) => { try { await (${script})(...args); return null; } catch (e) { return e.name; } }`,
      ...args,
    );

  it("enrols, steps up, signs out and in without e-mail and password, by session cookies", async () => {
    await signInByPassword();
    await enrol("This browser");
    const response = await respond("/v1/auth/step-up/options");
    await ok("POST", "/v1/auth/step-up", 200, { method: "passkey", response });
    const key = { name: "x", scopes: ["agents:read"], binding: { type: "organization" } };
    await ok("POST", "/v1/organization-keys", 201, key);
    const replay = await ask("POST", "/v1/auth/step-up", { method: "passkey", response });
    expect([replay.status, replay.body?.["error"]]).to.deep.equal([403, "SECOND_FACTOR_INVALID"]);

    await ok("POST", "/v1/auth/sign-out", 204);
    expect((await ask("GET", "/v1/auth/me")).status).to.equal(401);
    const signedIn = await ok("POST", "/v1/auth/sign-in/passkey", 200, {
      response: await respond("/v1/auth/sign-in/passkey/options"),
    });
    expect(signedIn).not.to.have.any.keys("token", "refreshToken");
    const me = await ok("GET", "/v1/auth/me", 200);
    expect(me).to.deep.include({ stepUpExpiresAt: null });
    expect(me?.["user"]).to.deep.include({ id: world.organization.userId, secondFactors: ["passkey"] });
    const list = await ok("GET", "/v1/auth/passkeys", 200);
    expect(JSON.stringify(list)).to.include('"name":"This browser"').and.include('"transports":["internal"]');
  });

  it("makes a discoverable credential for localhost that keeps the user's handle", async () => {
    await signInByPassword();
    await enrol("This browser");
    const { credentials } = await cdp.send("WebAuthn.getCredentials", { authenticatorId });
    expect(credentials).to.have.lengthOf(1);
    expect(credentials[0]).to.deep.include({ isResidentCredential: true, rpId: "localhost" });
    const userHandle = Buffer.from(credentials[0]?.userHandle ?? "", "base64").toString("hex");
    expect(userHandle).to.equal(world.organization.userId.replaceAll("-", ""));
  });

  it("makes no second passkey on a device, and neither passkey nor signature if unverified", async () => {
    await signInByPassword();
    await enrol("This browser");
    await ok("POST", "/v1/auth/step-up", 200, {
      method: "passkey",
      response: await respond("/v1/auth/step-up/options"),
    });
    const options = await ok("POST", "/v1/auth/passkeys/options", 200);
    expect(await thrownBy(CEREMONIES.create, options)).to.equal("InvalidStateError");
    await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
    const request = await ok("POST", "/v1/auth/sign-in/passkey/options", 200);
    expect(await thrownBy(CEREMONIES.get, request)).to.equal("NotAllowedError");
  });

  it("a copy of the passkey that falls behind is refused, and the list says so", async () => {
    await signInByPassword();
    await enrol("This browser");
    const { credentials } = await cdp.send("WebAuthn.getCredentials", { authenticatorId });
    const [copy] = credentials;
    if (copy === undefined) throw new Error("The passkey is there.");
    expect((await signInByPasskey()).status).to.equal(200);
    await cdp.send("WebAuthn.removeCredential", { authenticatorId, credentialId: copy.credentialId });
    await cdp.send("WebAuthn.addCredential", { authenticatorId, credential: copy });
    const refused = await signInByPasskey();
    expect([refused.status, refused.body?.["error"]]).to.deep.equal([401, "PASSKEY_POSSIBLY_COPIED"]);
    const list = await ok("GET", "/v1/auth/passkeys", 200);
    expect(JSON.stringify(list)).to.match(/"suspectedCloneAt":"20/);
  });
});
