import { expect } from "chai";
import { cookieNames } from "../../src/contract/cookies.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { createOrganizationOn } from "../../server/admin/create-organization.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";
import { shortOrSoak } from "../support/soak.ts";
import { TotpCodes } from "../support/totp.ts";
import { newWorld } from "../support/world.ts";

/** What extensions answer in the browser's place: its fields, neither its prototypes nor `toJSON`. */
const LIKE_AN_EXTENSION = `for (const ceremony of navigator.credentials === undefined ? [] : ["create", "get"]) {
  const real = navigator.credentials[ceremony].bind(navigator.credentials);
  navigator.credentials[ceremony] = async (options) => {
    const { id, rawId, response, type } = await real(options);
    const { attestationObject, authenticatorData, clientDataJSON, signature, userHandle } = response;
    const made = ceremony === "create"
      ? { clientDataJSON, attestationObject, getTransports: () => ["internal"] }
      : { clientDataJSON, authenticatorData, signature, userHandle };
    return { id, rawId, type, response: made, getClientExtensionResults: () => ({}) };
  };
}`;

/** How people come into the dashboard: in real Chromium, on a service that is not set up yet. */
describe("coming into the dashboard, in a browser", function () {
  let service: TestService;
  /** In each test as a user whom the browser does not know. */
  let page: Dashboard;

  before(async function () {
    const browser = await chromiumOrPending(this);
    service = await startTestService({ evmRpcUrl: null });
    // A service that has just started takes long for its first organization, on a busy machine too long for an answer.
    const owner = { ownerEmail: "trial@example.com", ownerPassword: PASSWORD };
    await createOrganizationOn(
      service.connections,
      TEST_ACCESS_PROOFS,
      { name: "Trial", ...owner, plan: "free" },
      "trial",
    );
    page = await Dashboard.open(browser, pageOrigin({ service }));
  });
  afterEach(() => page.check());
  after(async () => {
    await page?.close();
    await service?.stop();
  });

  it("by the set-up link: organization, owner, a passkey, and then what to do first", async () => {
    const link = new URL((await service.setUpLink()) ?? "");
    await page.visit(`${link.pathname}${link.hash}`);
    const authenticator = await page.withAuthenticator();
    await page.fill("Organization", "Analytical <b>Engines</b>");
    await page.fill("Your name", "Ada Lovelace");
    await page.fill("E-mail", "ada@example.com");
    await page.fill("Password", "short");
    await page.press("Set up");
    await page.sees("The password must have at least 12 characters");
    expect(
      await page.page.$$eval('input[aria-invalid="true"]', (fields) => fields.map(({ name }) => name)),
    ).to.deep.equal(["password"]);
    expect(await page.barriers()).to.deep.equal([]);
    await page.fill("Password", PASSWORD);
    await page.pressFor("Set up", "Protect your account");
    expect(page.page.url(), "the token is in no address any more").to.equal(
      `${pageOrigin({ service })}/setup`,
    );
    await page.press("Create a passkey");
    await page.pressFor("Create passkey", "Create your first agent");
    expect(await page.text()).to.include("Analytical <b>Engines</b>");
    expect(await page.barriers()).to.deep.equal([]);

    await authenticator.detach();

    await page.visit(`${link.pathname}${link.hash}`);
    const said = await page.sees("This link does not work");
    expect(said).to.include("Used already?").and.include("Sign in").and.include("create-organization");
    expect(await page.page.$$("input")).to.deep.equal([]);
  });

  it("by passkey alone; and by password, with a code where the account has one", async () => {
    const world = await newWorld(service);
    const { secret } = await world.api.ok("enrollTotp", 201, { token: world.token });
    const codes = new TotpCodes(secret);
    await world.api.ok("confirmTotp", 200, { token: world.token, body: { code: await codes.next() } });
    await page.visit("/agents");
    expect(await page.barriers()).to.deep.equal([]);
    await page.signIn({ ...world.organization, password: "wrong" });
    expect(await page.sees("The e-mail or the password is wrong.")).to.include("reset-password");
    await page.fill("Password", PASSWORD);
    await page.press("Sign in");
    await page.code("12");
    await page.press("Sign in");
    await page.sees("Must be six digits.");
    await page.code(await codes.next());
    await page.sees("Agents");
    expect(new URL(page.page.url()).pathname, "it is where the address said").to.equal("/agents");
    expect(await page.page.evaluate("document.cookie"), "no script reads the session").to.equal("");
    await page.go("/agnets");
    await page.sees("Page not found");
    expect(await page.barriers()).to.deep.equal([]);
    await page.press("Approvals", "link");
    await page.sees("Nothing waits for approval");
  });

  it("by a passkey that a password manager's extension makes: a plain object without toJSON", async () => {
    const world = await newWorld(service);
    await page.visit("/settings/security", world.token);
    const authenticator = await page.withAuthenticator();
    const { identifier } = await page.page.evaluateOnNewDocument(LIKE_AN_EXTENSION);
    await page.go("/settings/security");
    await page.press("Add a passkey");
    await page.press("Create passkey");
    await page.sees("Last used");
    await page.visit("/agents");
    await page.press("Sign in with a passkey");
    await page.sees("Create an agent");
    await page.page.removeScriptToEvaluateOnNewDocument(identifier);
    await authenticator.detach();
  });

  it("by an invite, as its role says; its link works once", async () => {
    const world = await newWorld(service);
    const body = { email: "mary@example.com", role: "member" };
    const { token } = await world.api.ok("createInvite", 201, { token: world.token, body });
    await page.visit(`/invite#token=${token ?? ""}`);
    const { organization, user } = await world.api.ok("getMe", 200, { token: world.token });
    await page.sees(`${user.name} invites you to the organization ${organization.name}, as a member.`);
    expect(await page.barriers()).to.deep.equal([]);
    await page.fill("Your name", "Mary");
    await page.fill("Password", PASSWORD);
    await page.pressFor("Join", "Protect your account");
    await page.press("Later");
    await page.sees("Hello, Mary");
    await page.visit(`/invite#token=${token ?? ""}`);
    await page.sees("not valid any more");
    expect(await page.page.$$("input")).to.deep.equal([]);
  });

  it("at an IP address an authenticator app is offered first, since no passkey works there", async () => {
    const world = await newWorld(service);
    const body = { email: "joan@example.com", role: "member" };
    const { token } = await world.api.ok("createInvite", 201, { token: world.token, body });
    const path = `/invite#token=${token ?? ""}`;
    const there = await Dashboard.open(page.page.browserContext(), new URL(service.baseUrl).origin, path);
    await there.fill("Your name", "Joan");
    await there.fill("Password", PASSWORD);
    await there.pressFor("Join", "Use an authenticator app");
    const said = await there.sees("and not at an IP address");
    expect(said).not.to.include("Create a passkey");
    there.check();
    await there.page.close();
  });

  it("two tabs share one session, whose token they refresh in turn, and end together", async () => {
    const world = await newWorld(service);
    await page.visit("/");
    await page.signIn(world.organization);
    await page.sees("Get started");
    const context = page.page.browserContext();
    const other = await Dashboard.open(context, pageOrigin(world), "/agents");
    await other.sees("Agents");
    const { session } = cookieNames(pageOrigin(world));
    const drop = async () => {
      const token = (await context.cookies()).filter(({ name }) => name === session);
      await context.deleteCookie(...token);
    };
    for (let round = 0; round < shortOrSoak(1, 10); round += 1) {
      await drop();
      await Promise.all([page.page.reload(), other.page.reload()]);
      await Promise.all([page.sees("Get started"), other.sees("Agents")]);
      await page.sees("Test");
    }
    // What is behind another tab is not drawn, and waits to be.
    await page.page.bringToFront();
    await page.page.locator(".side .account").click();
    await page.press("Sign out", "menuitem");
    await page.sees("Sign in");
    await other.go("/agents");
    await other.sees("Sign in");
    other.check();
    await other.page.close();
  });
});
