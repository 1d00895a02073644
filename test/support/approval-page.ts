import { expect } from "chai";
import type { Browser, HTTPRequest, Page } from "puppeteer-core";
import { z } from "zod";
import { becomes, clickOn, typeInto, within, WITHIN_MS } from "./browser-page.ts";

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/** True: the request was seen to, and does not go on to the service. */
export type Interception = (request: HTTPRequest) => Promise<boolean> | boolean;

const DECISION = /\/v1\/approvals\/\w+\/(approve|deny)$/;

/** A sign-out is answered within 5 s, or refused. */
const SIGNED_OUT_MS = 10_000;

const first = (selector: string): string => `document.querySelector(${JSON.stringify(selector)})`;
const shown = (selector: string): string => `(${first(selector)}?.checkVisibility() ?? false)`;
const textOf = (selector: string): string =>
  `(${shown(selector)} ? ${first(selector)}.textContent.replaceAll(/\\s+/g, " ").trim() : "")`;

/** The page of a payment on hold in a real browser, used as a person uses it. */
export class ApprovalPage {
  /** Handler of requests on their way; null: none, and the browser keeps what it has loaded. */
  #interception: Interception | null = null;
  /** The decisions that the page has sent, in their order, for the payment that it is of. */
  readonly decisions: string[] = [];
  readonly page: Page;
  /** What the browser has refused to do, what a script has thrown, and requests to anywhere else. */
  readonly #complaints: string[] = [];
  readonly #origin: string;

  private constructor(page: Page, origin: string) {
    this.page = page;
    this.#origin = origin;
  }

  /** Opens none yet, in a context of its own. */
  static async on(browser: Browser, baseUrl: string): Promise<ApprovalPage> {
    const context = await browser.createBrowserContext();
    const opened = new ApprovalPage(await context.newPage(), baseUrl);
    opened.#watch();
    return opened;
  }

  #watch(): void {
    this.page.setDefaultTimeout(WITHIN_MS);
    this.page.on("request", (request) => this.#note(request));
    this.page.on("pageerror", (error) => this.#complaints.push(String(error)));
    this.page.on("console", (message) => {
      if (/Content Security Policy/i.test(message.text())) this.#complaints.push(message.text());
    });
    this.page.on("request", (request) => {
      this.#pass(request).catch((error: unknown) => {
        // A request that was under way when the interception ended has gone on by itself.
        if (this.#interception !== null) this.#complaints.push(String(error));
      });
    });
  }

  /** Sees to requests from now on. */
  async intercept(interception: Interception): Promise<void> {
    this.#interception = interception;
    await this.page.setRequestInterception(true);
  }

  /** Lets all requests go on again. */
  async letPass(): Promise<void> {
    this.#interception = null;
    await this.page.setRequestInterception(false);
  }

  #note(request: HTTPRequest): void {
    const { origin, pathname } = new URL(request.url());
    if (origin !== this.#origin) this.#complaints.push(`a request to ${request.url()}`);
    const how = DECISION.exec(pathname)?.[1];
    if (how !== undefined && request.method() === "POST") this.decisions.push(how);
  }

  async #pass(request: HTTPRequest): Promise<void> {
    if (this.#interception === null) return;
    if (!(await this.#interception(request))) await request.continue();
  }

  /** Loads the page of this payment, signed in by this session's token alone, or by none. */
  async visit(approvalId: string, token: string | null): Promise<void> {
    await becomes(this.page, this.#origin, token);
    await this.load(approvalId);
  }

  /** Loads it as the user who is signed in. */
  async load(approvalId: string): Promise<void> {
    this.decisions.length = 0;
    await this.page.goto(`${this.#origin}/approvals/${approvalId}`);
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

  async signIn({ email, password }: Credentials): Promise<void> {
    await this.offers("#sign-in");
    await this.fill("#email", email);
    await this.fill("#password", password);
    await this.press("#sign-in button[type=submit]");
  }

  /** Signs out as a person does: who is still signed in after some seconds clicks again, and the log says what the page showed until then. */
  async signOut(): Promise<void> {
    const end = Date.now() + WITHIN_MS;
    for (;;) {
      await this.press("#sign-out");
      try {
        return await this.offers("#sign-in", SIGNED_OUT_MS);
      } catch (error) {
        if (Date.now() >= end) throw error;
        process.stderr.write(`signs out again: ${String(error)}\n`);
      }
    }
  }

  /** Clicks on it once it stands still. */
  press(selector: string): Promise<void> {
    return clickOn(this.page, selector);
  }

  /** Types into a field in place of what it holds. */
  async fill(selector: string, text: string): Promise<void> {
    await typeInto(this.page, selector, text);
  }

  /** What is read there; nothing where it is hidden, or not there. */
  async text(selector: string): Promise<string> {
    return z.string().parse(await this.page.evaluate(textOf(selector)));
  }

  /** Waits until this is read there. */
  async reads(selector: string, text: string): Promise<string> {
    const read = textOf(selector);
    const found = await within(
      this.page,
      `${read}.includes(${JSON.stringify(text)}) ? ${read} : null`,
      `${selector} reads ${text}`,
    );
    return z.string().parse(found);
  }

  /** Waits until it can be used. */
  async offers(selector: string, ms = WITHIN_MS): Promise<void> {
    await within(this.page, `${shown(selector)} ? true : null`, `${selector} is offered`, ms);
  }

  /** Waits until it is gone. */
  async offersNo(selector: string): Promise<void> {
    await within(this.page, `${shown(selector)} ? null : true`, `${selector} is offered no more`);
  }

  async isShown(selector: string): Promise<boolean> {
    return z.boolean().parse(await this.page.evaluate(shown(selector)));
  }

  /** The id, or else the kind, of the element that has the focus. */
  async focused(): Promise<string> {
    const focused = await this.page.$$eval(":focus", (elements) =>
      elements.map(({ id, nodeName }) => (id === "" ? nodeName : id)),
    );
    return focused[0] ?? "";
  }
}
