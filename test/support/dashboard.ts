import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "chai";
import type { Browser, BrowserContext, CDPSession, Page } from "puppeteer-core";
import { z } from "zod";
import { freshAddress } from "./api.ts";
import { until } from "./world.ts";

/** Nobody is promised it: so long a busy machine may take for what else takes a moment. */
const WITHIN_MS = 120_000;

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let axe: string | null = null;

const violations = z.array(
  z.object({
    id: z.string(),
    impact: z.string().nullish(),
    nodes: z.array(z.object({ target: z.array(z.unknown()), failureSummary: z.string().optional() })),
  }),
);

const PRESSES_MAX = 5;
const MISSED_MS = 10_000;

/** The dashboard in a real browser, used as a person uses it: by what is read and named on it. */
export class Dashboard {
  readonly page: Page;
  readonly #origin: string;
  /** What the browser has refused to do, what a script has thrown, and requests to anywhere else. */
  readonly #complaints: string[] = [];

  private constructor(page: Page, origin: string) {
    this.page = page;
    this.#origin = origin;
  }

  /** Opens it in a session of its own, or beside the pages of another one. */
  static async open(on: Browser | BrowserContext, origin: string, path = "/"): Promise<Dashboard> {
    const context = "createBrowserContext" in on ? await on.createBrowserContext() : on;
    const opened = new Dashboard(await context.newPage(), origin);
    await opened.#watch();
    await opened.go(path);
    return opened;
  }

  async #watch(): Promise<void> {
    // The tests share one machine, and sign-ins are counted by address.
    await this.page.setExtraHTTPHeaders({ "x-forwarded-for": freshAddress() });
    await this.page.setViewport({ width: 1_280, height: 900 });
    this.page.setDefaultTimeout(WITHIN_MS);
    this.page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (origin !== this.#origin && protocol !== "data:")
        this.#complaints.push(`a request to ${request.url()}`);
    });
    this.page.on("pageerror", (error) => this.#complaints.push(String(error)));
    this.page.on("console", (message) => {
      if (/Content Security Policy|Minified React error|same key/i.test(message.text()))
        this.#complaints.push(message.text());
    });
  }

  async go(path: string): Promise<void> {
    await this.page.goto(`${this.#origin}${path}`);
  }

  /** Ends it, with its session; nothing may have been blocked, thrown or asked of anybody else. */
  async close(): Promise<void> {
    await this.page.browserContext().close();
    expect(this.#complaints).to.deep.equal([]);
  }

  /** An authenticator of the browser's own, as a device has one. */
  async withAuthenticator(): Promise<CDPSession> {
    const cdp = await this.page.createCDPSession();
    await cdp.send("WebAuthn.enable");
    await cdp.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return cdp;
  }

  /** Presses what has this name for everybody, also for who does not see it. */
  async press(name: string, role = "button"): Promise<void> {
    await this.page.locator(`::-p-aria([name="${name}"][role="${role}"])`).click();
  }

  /** The same until this is read; again where the service could not be reached, as a person would. */
  async pressFor(name: string, text: string): Promise<void> {
    await this.press(name);
    await until(`${name} leads to ${text}`, async () => {
      const read = await this.text();
      if (read.includes(text)) return true;
      if (read.includes("can’t be reached")) await this.press(name);
      return null;
    });
  }

  /** Presses, and again after a while where what it leads to is not there: what moves may have been missed. */
  async pressUntil(name: string, text: string): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      await this.press(name);
      try {
        await this.page.waitForSelector(`::-p-text(${text})`, { timeout: MISSED_MS });
        return;
      } catch (error) {
        if (tries >= PRESSES_MAX) throw error;
      }
    }
  }

  /** Types into the field of this name in place of what it holds. */
  async fill(name: string, text: string): Promise<void> {
    await this.page.locator(`::-p-aria([name="${name}"])`).fill(text);
  }

  /** Types a code into its boxes, one digit after another. */
  async code(digits: string): Promise<void> {
    await this.page.locator('::-p-aria([name="Digit 1"])').click();
    await this.page.keyboard.type(digits);
  }

  async signIn({ email, password }: { readonly email: string; readonly password: string }): Promise<void> {
    await this.fill("E-mail", email);
    await this.fill("Password", password);
    await this.press("Sign in");
  }

  /** All that is read on the page, in one line. */
  async text(): Promise<string> {
    return (await this.page.$eval("body", ({ innerText }) => innerText)).replaceAll(/\s+/g, " ");
  }

  /** Waits until this is read on the page. */
  sees(text: string): Promise<string> {
    return until(`the page reads ${text}`, async () => {
      const read = await this.text();
      return read.includes(text) ? read : null;
    });
  }

  /** Waits until this is read no more. */
  seesNo(text: string): Promise<string> {
    return until(`the page reads no ${text}`, async () => {
      const read = await this.text();
      return read.includes(text) ? null : read;
    });
  }

  /** What axe-core finds that keeps somebody from using the page. */
  async barriers(): Promise<readonly string[]> {
    axe ??= readFileSync(AXE, "utf8");
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(
      "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }).then(({ violations }) => violations)",
    );
    return violations
      .parse(found)
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(
        ({ id, nodes }) =>
          `${id}: ${nodes.map(({ failureSummary, target }) => `${target.join(" ")} ${failureSummary ?? ""}`).join("; ")}`,
      );
  }
}
