import { expect } from "chai";
import type { Browser, BrowserContext, HTTPRequest, Page } from "puppeteer-core";
import { freshAddress } from "./api.ts";
import { until } from "./world.ts";

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/** True: the request was seen to, and does not go on to the service. */
export type Interception = (request: HTTPRequest) => Promise<boolean> | boolean;

/** Nobody is promised it: so long a busy machine may take for what else takes a moment. */
const WITHIN_MS = 120_000;
const DECISION = /\/v1\/approvals\/\w+\/(approve|deny)$/;

/** The page of a payment on hold in a real browser, used as a person uses it. */
export class ApprovalPage {
  /** What happens to requests of the page on their way; by default nothing. */
  intercept: Interception = () => false;
  /** The decisions that the page has sent, in their order. */
  readonly decisions: string[] = [];
  readonly page: Page;
  /** What the browser has refused to do, what a script has thrown, and requests to anywhere else. */
  readonly #complaints: string[] = [];
  readonly #origin: string;

  private constructor(page: Page, origin: string) {
    this.page = page;
    this.#origin = origin;
  }

  /** Opens it in a session of its own, or in that of another page. */
  static async open(
    on: Browser | BrowserContext,
    baseUrl: string,
    approvalId: string,
    intercept: Interception = () => false,
  ): Promise<ApprovalPage> {
    const context = "createBrowserContext" in on ? await on.createBrowserContext() : on;
    const opened = new ApprovalPage(await context.newPage(), baseUrl);
    opened.intercept = intercept;
    await opened.#watch();
    await opened.page.goto(`${baseUrl}/approvals/${approvalId}`);
    return opened;
  }

  async #watch(): Promise<void> {
    // The tests share one machine, and sign-ins are counted by address.
    await this.page.setExtraHTTPHeaders({ "x-forwarded-for": freshAddress() });
    await this.page.setRequestInterception(true);
    this.page.setDefaultTimeout(WITHIN_MS);
    this.page.on("request", (request) => {
      // What is under way when a test ends goes with its page.
      this.#pass(request).catch((error: unknown) => this.#complaints.push(String(error)));
    });
    this.page.on("pageerror", (error) => this.#complaints.push(String(error)));
    this.page.on("console", (message) => {
      if (/Content Security Policy/i.test(message.text())) this.#complaints.push(message.text());
    });
  }

  async #pass(request: HTTPRequest): Promise<void> {
    const { origin, pathname } = new URL(request.url());
    if (origin !== this.#origin) this.#complaints.push(`a request to ${request.url()}`);
    const how = DECISION.exec(pathname)?.[1];
    if (how !== undefined && request.method() === "POST") this.decisions.push(how);
    if (!(await this.intercept(request))) await request.continue();
  }

  /** Ends it, with its session; nothing may have been blocked, thrown or asked of anybody else. */
  async close(): Promise<void> {
    await this.page.browserContext().close();
    expect(this.#complaints).to.deep.equal([]);
  }

  async signIn({ email, password }: Credentials): Promise<void> {
    await this.page.waitForSelector("#sign-in");
    await this.fill("#email", email);
    await this.fill("#password", password);
    await this.page.click("#sign-in button[type=submit]");
  }

  /** Types into a field in place of what it holds. */
  async fill(selector: string, text: string): Promise<void> {
    await this.page.click(selector, { count: 3 });
    await this.page.type(selector, text);
  }

  /** What is read there; nothing where it is hidden, or not there. */
  async text(selector: string): Promise<string> {
    const texts = await this.page.$$eval(selector, (elements) =>
      elements.map((element) =>
        element.checkVisibility() ? (element.textContent ?? "").replaceAll(/\s+/g, " ").trim() : "",
      ),
    );
    return texts[0] ?? "";
  }

  /** Waits until this is read there. */
  reads(selector: string, text: string): Promise<string> {
    return until(`${selector} reads ${text}`, async () => {
      const read = await this.text(selector);
      return read.includes(text) ? read : null;
    });
  }

  /** Waits until it can be used. */
  async offers(selector: string): Promise<void> {
    await this.page.waitForSelector(selector, { visible: true });
  }

  async isShown(selector: string): Promise<boolean> {
    const shown = await this.page.$$eval(selector, (elements) =>
      elements.map((element) => element.checkVisibility()),
    );
    return shown[0] ?? false;
  }

  /** The id, or else the kind, of the element that has the focus. */
  async focused(): Promise<string> {
    const focused = await this.page.$$eval(":focus", (elements) =>
      elements.map(({ id, nodeName }) => (id === "" ? nodeName : id)),
    );
    return focused[0] ?? "";
  }
}
