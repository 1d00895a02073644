import { expect } from "chai";
import { generate } from "otplib";
import type { Browser } from "puppeteer-core";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";
import { newWorld, until } from "../support/world.ts";

/** How people come into the dashboard: in real Chromium, on a service that nobody has set up yet. */
describe("coming into the dashboard, in a browser", function () {
  let browser: Browser;
  let service: TestService;
  let origin: string;
  const opened: Dashboard[] = [];

  before(async function () {
    browser = await chromiumOrPending(this);
    service = await startTestService({ evmRpcUrl: null });
    origin = pageOrigin({ service });
  });
  afterEach(async () => {
    for (const page of opened.splice(0)) await page.close();
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function open(path: string, beside?: Dashboard): Promise<Dashboard> {
    const page = await Dashboard.open(beside?.page.browserContext() ?? browser, origin, path);
    if (beside === undefined) opened.push(page);
    return page;
  }

  it("by the set-up link: organization, owner, a passkey, and then what to do first", async () => {
    const link = new URL((await service.setUpLink()) ?? "");
    const page = await open(`${link.pathname}${link.hash}`);
    await page.withAuthenticator();
    await page.fill("Organization", "Analytical <b>Engines</b>");
    await page.fill("Your name", "Ada Lovelace");
    await page.fill("E-mail", "ada@example.com");
    await page.fill("Password", "short");
    await page.press("Set up");
    await page.sees("At least 12 characters");
    expect(await page.barriers()).to.deep.equal([]);
    await page.fill("Password", PASSWORD);
    await page.pressFor("Set up", "Protect your account");
    expect(page.page.url(), "the token is in no address any more").to.equal(`${origin}/setup`);
    await page.press("Create a passkey");
    await page.press("Create passkey");
    await page.sees("Create your first agent");
    expect(await page.text()).to.include("Analytical <b>Engines</b>");
    expect(await page.barriers()).to.deep.equal([]);

    const late = await open(`${link.pathname}${link.hash}`);
    const said = await late.sees("This link does not work");
    expect(said).to.include("Used already?").and.include("Sign in").and.include("create-organization");
    expect(await late.page.$$("input")).to.deep.equal([]);
  });

  it("by passkey alone; and by password, with a code where the account has one", async () => {
    const world = await newWorld(service);
    const { secret } = await world.api.ok("enrollTotp", 201, { token: world.token });
    const code = (at: number) => generate({ secret, epoch: Date.now() / 1_000 + at });
    await world.api.ok("confirmTotp", 200, { token: world.token, body: { code: await code(-30) } });
    const page = await open("/agents");
    expect(await page.barriers()).to.deep.equal([]);
    await page.signIn({ ...world.organization, password: "wrong" });
    await page.sees("The e-mail or the password is wrong.");
    await page.fill("Password", PASSWORD);
    await page.press("Sign in");
    await page.fill("Code", "12");
    await page.press("Sign in");
    await page.sees("Must be six digits.");
    await page.fill("Code", await code(0));
    await page.press("Sign in");
    await page.sees("Agents");
    expect(new URL(page.page.url()).pathname, "it is where the address said").to.equal("/agents");
    expect(await page.page.evaluate("document.cookie"), "no script reads the session").to.equal("");
  });

  it("by an invite, as its role says; its link works once", async () => {
    const world = await newWorld(service);
    const body = { email: "mary@example.com", role: "member" };
    const { token } = await world.api.ok("createInvite", 201, { token: world.token, body });
    const page = await open(`/invite#token=${token ?? ""}`);
    expect(await page.barriers()).to.deep.equal([]);
    await page.fill("Your name", "Mary");
    await page.fill("Password", PASSWORD);
    await page.pressFor("Join", "Protect your account");
    await page.press("Later");
    await page.sees("Hello, Mary");
    const late = await open(`/invite#token=${token ?? ""}`);
    await late.fill("Your name", "Mallory");
    await late.fill("Password", PASSWORD);
    await late.press("Join");
    await late.sees("not valid any more");
  });

  it("two tabs share one session, whose token they refresh in turn, and end together", async () => {
    const world = await newWorld(service);
    const one = await open("/");
    await one.signIn(world.organization);
    await one.sees("Get started");
    const two = await open("/agents", one);
    await two.sees("Agents");
    const context = one.page.browserContext();
    const drop = async () => {
      const token = (await context.cookies()).filter(({ name }) => name === "svc_session");
      await context.deleteCookie(...token);
    };
    for (let round = 0; round < 3; round += 1) {
      await drop();
      await Promise.all([one.page.reload(), two.page.reload()]);
      await Promise.all([one.sees("Get started"), two.sees("Agents")]);
      await until("somebody is signed in", async () => (await one.text()).includes("Test") || null);
    }
    // What is behind another tab is not drawn, and waits to be.
    await one.page.bringToFront();
    await one.page.locator(".side .account").click();
    await one.press("Sign out", "menuitem");
    await one.sees("Sign in");
    await two.go("/agents");
    await two.sees("Sign in");
  });
});
