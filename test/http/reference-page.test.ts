import { expect } from "chai";
import type { BrowserContext, Page } from "puppeteer-core";
import { z } from "zod";
import { operationList } from "../../src/contract/registry.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { barriersOn } from "../support/dashboard.ts";
import { isSoak } from "../support/soak.ts";
import type { TestService } from "../support/service.ts";
import { newWorld, type TestAgent, type World } from "../support/world.ts";

const RENDERED_MS = 60_000;
const OPERATIONS = operationList.flatMap(([id, { http, tag }]) => (http === null ? [] : [{ id, tag }]));

/** One of each method. */
const FEW: readonly string[] = [
  "createPayment",
  "listPayments",
  "setTeamBudget",
  "updateAgentBudgetPolicy",
  "deleteWebhook",
];
const described = z.looseObject({ operationId: z.string() });

/** What is looked at for barriers: all that is no operation, an open operation, and one of each other method. */
const PARTS = [
  "header",
  ".information-container",
  ".scheme-container",
  ".filter-container",
  '[id$="-createPayment"]',
  ...["get", "put", "patch", "delete"].map((method) => `.opblock-${method} .opblock-summary`),
];

const ids = (of: Page): Promise<string[]> => of.$$eval(".opblock", (blocks) => blocks.map(({ id }) => id));
const idsOf = (operations: typeof OPERATIONS) =>
  operations.map(({ id, tag }) => `operations-${tag.replaceAll(" ", "_")}-${id}`).toSorted();

describe("the API's reference in a browser", function () {
  let service: TestService;
  let world: World;
  let agent: TestAgent;
  let context: BrowserContext;
  /** Of the document with only `FEW` operations: rendering all of them costs most of what a reader does. */
  let page: Page;
  /** Messages and addresses of the browser since a page was opened. */
  const said: string[] = [];
  const asked: string[] = [];
  let rendersNothing = false;

  before(async function () {
    this.timeout(300_000);
    const browser = await chromiumOrPending(this);
    world = await newWorld();
    service = world.service;
    agent = await world.agent();
    context = await browser.createBrowserContext();
    page = await opened(await documentOfFew());
  });
  after(() => context?.close());

  /** The page, of the service's document or another. */
  async function opened(document?: object): Promise<Page> {
    const opening = await context.newPage();
    opening.on("console", (message) => said.push(message.text()));
    opening.on("pageerror", (error) => said.push(String(error)));
    opening.on("request", (request) => {
      asked.push(request.url());
      if (document === undefined) return;
      const body = JSON.stringify(document);
      const isOfIt = request.url() === `${service.baseUrl}/v1/openapi.json`;
      const isBare = /\/(docs|reference\.\w+)$/.test(new URL(request.url()).pathname);
      if (rendersNothing && !isBare) void request.abort();
      else void (isOfIt ? request.respond({ contentType: "application/json", body }) : request.continue());
    });
    await opening.setRequestInterception(document !== undefined);
    await opening.goto(`${service.baseUrl}/docs`);
    await opening.waitForSelector(".opblock", { timeout: RENDERED_MS });
    return opening;
  }

  async function documentOfFew(): Promise<object> {
    const { body } = await service.api.call("GET", "/v1/openapi.json");
    const whole = z.looseObject({ paths: z.record(z.string(), z.record(z.string(), described)) }).parse(body);
    const paths = Object.entries(whole.paths).map(([path, methods]) => {
      const few = Object.entries(methods).filter(([, { operationId }]) => FEW.includes(operationId));
      return [path, Object.fromEntries(few)] as const;
    });
    return { ...whole, paths: Object.fromEntries(paths) };
  }

  const texts = (selector: string) =>
    page.$$eval(selector, (found) => found.map(({ textContent }) => textContent ?? ""));

  const press = (selector: string) => page.locator(selector).click();

  async function pressLast(selector: string): Promise<void> {
    const [last] = (await page.$$(selector)).slice(-1);
    await last?.click();
  }

  /** Opens an operation, which is shown with all that belongs to it. */
  async function open(id: string): Promise<string> {
    const operation = OPERATIONS.find((each) => each.id === id);
    const block = `[id="operations-${operation?.tag.replaceAll(" ", "_") ?? ""}-${id}"]`;
    await page.waitForSelector(block);
    await press(`${block} .opblock-summary-control`);
    await page.waitForSelector(`${block} .execute`);
    return block;
  }

  it("renders every operation of its document", async () => {
    if (!isSoak) {
      const few = OPERATIONS.filter(({ id }) => FEW.includes(id));
      expect((await ids(page)).toSorted()).to.deep.equal(idsOf(few));
      return;
    }
    const whole = await opened();
    expect((await ids(whole)).toSorted()).to.deep.equal(idsOf(OPERATIONS));
    await whole.close();
  });

  it("shows code samples of a request, in three languages", async () => {
    const block = await open("createPayment");
    const samples = await texts(`${block} .sample`);
    expect(samples.map((sample) => /^(curl|JavaScript|Python)/.exec(sample)?.[0])).to.deep.equal([
      "curl",
      "JavaScript",
      "Python",
    ]);
    for (const sample of samples) {
      expect(sample)
        .to.include(`${service.baseUrl}/v1/payments`)
        .and.to.include("API_KEY")
        .and.to.include("amountCents");
    }
  });

  it("leads back to the dashboard, and nothing in it keeps anybody from using it", async () => {
    expect(await page.$eval("header .brand", (link) => link.getAttribute("href"))).to.equal("/");
    for (const value of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
      expect(await barriersOn(page, [...PARTS])).to.deep.equal([]);
    }
    await page.setViewport({ width: 360, height: 740 });
    expect(await page.$eval("html", ({ clientWidth, scrollWidth }) => scrollWidth - clientWidth)).to.equal(0);
    await page.setViewport({ width: 1_280, height: 900 });
  });

  it("tries an operation out with a key that was pasted, and shows the answer", async () => {
    await press(".auth-wrapper .authorize");
    const input = 'input[aria-label="auth-bearer-value"]';
    await page.waitForSelector(input);
    // Each kind of credential has a field; the agent's key is the last one's.
    const [field] = (await page.$$(input)).slice(-1);
    await field?.focus();
    await page.keyboard.sendCharacter(agent.key);
    await pressLast(".auth-btn-wrapper .authorize");
    await pressLast(".btn-done");
    const block = await open("listPayments");
    await press(`${block} .execute`);
    await page.waitForSelector(`${block} .live-responses-table .response-col_status`);
    const [answer = ""] = await texts(`${block} .live-responses-table`);
    expect(answer).to.match(/200/).and.to.include('"payments": []');
  });

  it("asked no other host for anything, and nothing was against the policy", () => {
    const elsewhere = asked.filter((url) => !url.startsWith(service.baseUrl) && !url.startsWith("data:"));
    expect(elsewhere).to.deep.equal([]);
    expect(asked).to.include(`${service.baseUrl}/v1/openapi.json`);
    expect(said).to.deep.equal([]);
  });

  it("keeps no key: what was pasted would be gone with the page", async () => {
    const kept = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])");
    expect(kept).not.to.include(agent.key);
  });

  it("is dark or light as the system is, and as the reader chooses", async () => {
    const becomes = (theme: "dark" | "light") =>
      page.waitForSelector(theme === "dark" ? "html.dark-mode" : "html:not(.dark-mode)", {
        timeout: RENDERED_MS,
      });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await becomes("dark");
    await press("#theme");
    await becomes("light");
    // It is kept; for that, the page need not render everything again.
    rendersNothing = true;
    await page.reload({ waitUntil: "domcontentloaded" });
    expect(await page.$$("html.dark-mode")).to.deep.equal([]);
    await press("#theme");
    await becomes("dark");
  });
});
