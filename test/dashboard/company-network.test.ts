import { expect } from "chai";
import { TargetType } from "puppeteer-core";
import { cookieNames } from "../../src/contract/cookies.ts";
import { clickOn } from "../support/browser-page.ts";
import { chromiumOrPending, NETWORK_NAME } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { shortOrSoak, someOrAll, someTests } from "../support/soak.ts";
import { TotpCodes } from "../support/totp.ts";
import { newWorld, until, type World } from "../support/world.ts";

interface LocaleCase {
  readonly locale: string;
  readonly budget: string;
  readonly threshold: string;
  /** The budget by the rules of another locale, and the two readings that it is asked about with. */
  readonly ambiguous: string;
  readonly question: string;
}

/** The same two amounts, 12.50 and 0.99, as three readers type them. */
const LOCALES: readonly LocaleCase[] = [
  {
    locale: "de-DE",
    budget: "12,50",
    threshold: "0,99",
    ambiguous: "12.50",
    question: "Do you mean 12,50 or 1.250,00?",
  },
  {
    locale: "en-IN",
    budget: "12.50",
    threshold: "0.99",
    ambiguous: "12,50",
    question: "Do you mean 12.50 or 1,250.00?",
  },
  {
    locale: "ar-EG",
    budget: "١٢٫٥٠",
    threshold: "٠٫٩٩",
    ambiguous: "١٢,٥٠",
    question: "Do you mean ١٢٫٥٠ or ١٬٢٥٠٫٠٠?",
  },
];

/** In the soak, more than a browser has connections to a server over HTTP/1.1; two share one stream, or don't. */
const TABS = shortOrSoak(2, 7);

/** Keeps what is copied. No script reads the clipboard here. */
const KEEP_COPIED = `document.addEventListener("copy", () => { globalThis.copied = document.activeElement.value })`;

/** The dashboard as a company has it on its network: plain http, a name that is not localhost, several locales, many tabs. */
describe("the dashboard on a company's network, in a browser", function () {
  let service: TestService;
  let world: World;
  let origin: string;
  let page: Dashboard;

  before(async function () {
    const browser = await chromiumOrPending(this);
    service = await startTestService({
      publicHost: NETWORK_NAME,
      evmRpcUrl: null,
      settings: {
        SMTP_URL: "smtp://127.0.0.1:1",
        MAIL_FROM: "spending@example.com",
        BASE_URL: `http://${NETWORK_NAME}`,
      },
    });
    world = await newWorld(service);
    const { port } = new URL(service.baseUrl);
    origin = `http://${NETWORK_NAME}:${port}`;
    page = await Dashboard.open(browser, origin);
    await page.visit("/", world.token);
  });
  afterEach(() => page?.check());
  after(async () => {
    await page?.close();
    await service?.stop();
  });

  someTests(2, {
    "agents, projects and rules are created, and secrets are copied, without a secure context": async () => {
      expect(await page.page.evaluate("isSecureContext")).to.equal(false);
      await page.go("/agents");
      await page.press("Create an agent");
      await page.fill("Name", "Buyer");
      await page.fill("Budget", "100");
      await page.press("Never ask: it may spend its whole budget by itself", "radio");
      await page.press("Create");
      const key = /sk_svc_live_\w+/.exec(await page.sees("Buyer is ready"))?.[0];
      await page.page.evaluate(KEEP_COPIED);
      await page.press("Copy");
      await page.sees("Copied");
      expect(await page.page.evaluate("globalThis.copied")).to.equal(key);
      await page.walk("/projects");
      await page.press("Create a project");
      await page.fill("Name", "Warehouse");
      await page.press("Create");
      await page.sees("A project");
      await page.press("Add a rule");
      await page.press("Large amount", "menuitem");
      await page.sees("A payment above $100.00 requires approval.");
    },
    "passkeys are not offered but explained, and an authenticator app takes their place": async () => {
      const person = await newWorld(service);
      await page.visit("/settings/security");
      await page.sees("Passkeys work only over https or at localhost, and not at an IP address.");
      await page.signIn(person.organization);
      await page.sees("Use an authenticator app here.");
      await page.press("Enrol");
      await page.page.waitForSelector("#totp-secret");
      const secret = await page.page.$eval("#totp-secret", ({ textContent }) => textContent ?? "");
      await page.code(await new TotpCodes(secret).next());
      await page.sees("Enabled");
    },
    "a person switches mails about payments on hold off": async () => {
      const person = await newWorld(service);
      await page.visit("/settings/security", person.token);
      await clickOn(page.page, "::-p-text(Mail me when a payment waits for approval)", { ms: 20_000 });
      await until("it is off", async () => {
        const { notifications } = await person.api.ok("getNotifications", 200, { token: person.token });
        return notifications.approvalMails ? null : true;
      });
      expect(await page.barriers()).to.deep.equal([]);
      await page.visit("/", world.token);
    },
    "two tabs that refresh the session at the same time stay signed in": async () => {
      await page.visit("/agents");
      await page.signIn(world.organization);
      await page.sees("Create an agent");
      const context = page.page.browserContext();
      const other = await Dashboard.open(context, origin, "/agents");
      await other.sees("Create an agent");
      const { session } = cookieNames(origin);
      await context.deleteCookie(...(await context.cookies()).filter(({ name }) => name === session));
      await Promise.all([page.page.reload(), other.page.reload()]);
      for (const tab of [page, other]) {
        await tab.page.bringToFront();
        await tab.sees("Create an agent");
      }
      other.check();
      await other.page.close();
      await page.page.bringToFront();
    },
    "tabs load and are live by one stream, and an approval's own page needs none": async () => {
      const sharedWorkers = () =>
        page.page
          .browserContext()
          .targets()
          .filter((target) => target.type() === TargetType.SHARED_WORKER).length;
      const agent = await world.agent({ autoApprovalThresholdCents: 0 });
      const { approvalId } = await agent.hold({ amountCents: 600 });
      await page.visit(`/approvals/${approvalId}`, world.token);
      await page.sees("Approve $6.00");
      expect(sharedWorkers()).to.equal(0);
      const context = page.page.browserContext();
      const tabs: Dashboard[] = [];
      for (let opened = 0; opened < TABS; opened += 1) {
        const tab = await Dashboard.open(context, origin, "/approvals");
        tabs.push(tab);
        await tab.sees("Approve $6.00");
      }
      expect(sharedWorkers()).to.equal(1);
      await agent.hold({ amountCents: 700 });
      for (const tab of tabs) {
        await tab.page.bringToFront();
        await tab.sees("Approve $7.00");
      }
      for (const tab of tabs) {
        tab.check();
        await tab.page.close();
      }
      await page.page.bringToFront();
    },
  });

  for (const { ambiguous, budget, locale, question, threshold } of someOrAll(LOCALES, 1)) {
    it(`in a ${locale} browser an amount is stored as it was typed there, or asked about`, async () => {
      await page.visit("/", world.token);
      const cdp = await page.page.createCDPSession();
      await cdp.send("Emulation.setLocaleOverride", { locale });
      await page.go("/agents");
      await page.press("Create an agent");
      await page.fill("Name", `Buyer ${locale}`);
      await page.fill("Budget", ambiguous);
      await page.press("Create");
      await page.sees(question);
      await page.fill("Budget", budget);
      await page.fill("Require approval above", threshold);
      await page.press("Create");
      await page.sees(`Buyer ${locale} is ready`);
      await cdp.detach();
      const { agents } = await world.api.ok("listAgents", 200, { token: world.token });
      const made = agents.find(({ name }) => name === `Buyer ${locale}`);
      expect([made?.budgetCents, made?.autoApprovalThresholdCents]).to.deep.equal([1_250, 99]);
    });
  }
});
