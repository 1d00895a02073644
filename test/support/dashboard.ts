import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "chai";
import type { Browser, BrowserContext, CDPSession, HTTPRequest, Page } from "puppeteer-core";
import { z } from "zod";
import { freshAddress } from "./api.ts";
import { seed } from "./seed.ts";
import { isSoak } from "./soak.ts";
import { becomes, clickOn, LOOK_MS, within, WITHIN_MS } from "./browser-page.ts";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
let axe: string | null = null;

const violations = z.array(
  z.object({
    id: z.string(),
    impact: z.string().nullish(),
    nodes: z.array(z.object({ target: z.array(z.unknown()), failureSummary: z.string().optional() })),
  }),
);

const TEXT = String.raw`document.body.innerText.replaceAll(/\s+/g, " ")`;

/** Of so many looks for barriers, each of which takes the browser half a second of processor, one is taken. */
const BARRIERS_EVERY = 3;

const PRESSES_MAX = 5;
const MISSED_MS = 10_000;

/** The dashboard in a real browser, used as a person uses it: by what is read and named on it. */
export class Dashboard {
  readonly page: Page;
  readonly #origin: string;
  /** What the browser has refused to do, what a script has thrown, and requests to anywhere else. */
  readonly #complaints: string[] = [];
  /** Other origins that the page may ask. */
  readonly #allowed = new Set<string>();
  /** Calls for barriers so far. */
  #looks = 0;

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
      if (origin !== this.#origin && !this.#allowed.has(origin) && protocol !== "data:")
        this.#complaints.push(`a request to ${request.url()}`);
    });
    this.page.on("pageerror", (error) => this.#complaints.push(String(error)));
    this.page.on("console", (message) => {
      if (/Content Security Policy|Minified React error|same key/i.test(message.text()))
        this.#complaints.push(message.text());
    });
  }

  /** From now on the page may also ask this origin. */
  allow(url: string): void {
    this.#allowed.add(new URL(url).origin);
  }

  async go(path: string): Promise<void> {
    await this.page.goto(`${this.#origin}${path}`);
  }

  /** Goes there as a link does, within what is loaded, which costs a part of a load. */
  async walk(path: string): Promise<void> {
    await this.page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)})`);
  }

  /** Loads this as a user whom the browser does not know, with nothing kept: signed in by a token alone, or not at all. */
  async visit(path: string, token: string | null = null): Promise<void> {
    await becomes(this.page, this.#origin, token);
    await this.page.evaluate("localStorage.clear(); sessionStorage.clear()");
    // An address that differs in what is behind its # alone would not be loaded anew. Of another origin it would cost a process.
    await this.page.goto(`${this.#origin}/healthz`);
    await this.go(path);
  }

  /** Fails where anything was blocked, thrown or asked of another host. */
  check(): void {
    expect(this.#complaints).to.deep.equal([]);
  }

  /** Ends it, with its session; nothing may have been blocked, thrown or asked of another host. */
  async close(): Promise<void> {
    await this.page.browserContext().close();
    this.check();
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
  async press(name: string, role = "button", ms = WITHIN_MS): Promise<void> {
    await clickOn(this.page, `::-p-aria([name="${name}"][role="${role}"])`, { ms });
  }

  /**
   * The same until this is read; again where the service could not be reached, as a person would, and where nothing comes of
   * it: what moves just then is missed.
   */
  async pressFor(name: string, text: string): Promise<void> {
    const [sought, unreached] = [JSON.stringify(text), JSON.stringify("can’t be reached")];
    const condition = `read.includes(${sought}) || read.includes(${unreached})`;
    for (let tries = 1; tries < PRESSES_MAX; tries += 1) {
      const read = await this.press(name, "button", MISSED_MS)
        .then(() => this.#reads(condition, `${name} leads to ${text}`, MISSED_MS))
        .catch(() => "");
      if (read.includes(text)) return;
    }
    await this.sees(text);
  }

  /** Puts a text into the field of this name in place of what it holds, at once: each key for itself costs a frame. */
  async fill(name: string, text: string): Promise<void> {
    await clickOn(this.page, `::-p-aria([name="${name}"])`, { count: 3 });
    await this.page.keyboard.sendCharacter(text);
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
    return z.string().parse(await this.page.evaluate(TEXT));
  }

  /** Waits until it is so in the page, which looks by a timer: a frame of its own for each look would cost more. */
  async waitFor(condition: string): Promise<void> {
    await this.page.waitForFunction(condition, { polling: LOOK_MS });
  }

  /** Waits until this is read on the page. */
  sees(text: string): Promise<string> {
    return this.#reads(`read.includes(${JSON.stringify(text)})`, `the page reads ${text}`);
  }

  /** Waits until this is read no more. */
  seesNo(text: string): Promise<string> {
    return this.#reads(`!read.includes(${JSON.stringify(text)})`, `the page reads no ${text}`);
  }

  /** Waits until the page's source has it no more: a dialog that was left is still drawn for a moment. */
  async hasNo(text: string): Promise<void> {
    await this.waitFor(`!document.documentElement.outerHTML.includes(${JSON.stringify(text)})`);
  }

  /** Holds requests of such a path back until they are released. */
  async holdBack(path: RegExp): Promise<{ release(): Promise<void> }> {
    await this.page.setRequestInterception(true);
    const releasing = new EventEmitter();
    const released = once(releasing, "release");
    const pass = async (request: HTTPRequest): Promise<void> => {
      if (path.test(new URL(request.url()).pathname)) await released;
      await request.continue();
    };
    const onRequest = (request: HTTPRequest): void => void pass(request);
    this.page.on("request", onRequest);
    return {
      release: async () => {
        releasing.emit("release");
        this.page.off("request", onRequest);
        await this.page.setRequestInterception(false);
      },
    };
  }

  /** Waits until what is read on the page is such; where it does not become so, says what is read instead. */
  async #reads(condition: string, what: string, ms = WITHIN_MS): Promise<string> {
    try {
      const read = await within(this.page, `((read) => ${condition} ? read : null)(${TEXT})`, what, ms);
      return z.string().parse(read);
    } catch (error) {
      const instead = await this.text().catch(String);
      throw new Error(`not within ${String(ms)} ms: ${what}. It reads: ${instead}`, { cause: error });
    }
  }

  /** What `barriersOn` finds on the page; in `npm test` on some of a file's pages, picked by the run's seed. */
  async barriers(): Promise<readonly string[]> {
    this.#looks += 1;
    const isPicked = isSoak || (this.#looks + seed) % BARRIERS_EVERY === 0;
    return isPicked ? barriersOn(this.page) : [];
  }
}

/** What axe-core finds that keeps a user from using a page, or the first element of each selector. */
export async function barriersOn(page: Page, parts?: readonly string[]): Promise<readonly string[]> {
  axe ??= readFileSync(AXE, "utf8");
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(axe);
  const where =
    parts === undefined
      ? "document"
      : `{ include: ${JSON.stringify(parts)}.map((part) => document.querySelector(part)) }`;
  const found = await page.evaluate(
    `axe.run(${where}, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
      resultTypes: ['violations'],
    }).then(({ violations }) => violations)`,
  );
  return violations
    .parse(found)
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ failureSummary, target }) => `${target.join(" ")} ${failureSummary ?? ""}`).join("; ")}`,
    );
}
