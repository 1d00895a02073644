import { expect } from "chai";
import type { Browser, Page } from "puppeteer-core";
import { chromiumOrPending } from "../support/chromium.ts";
import { PASSWORD, startTestService, type TestService } from "../support/service.ts";

const isShown = (page: Page, selector: string) =>
  page.$eval(selector, (element) => !element.hasAttribute("hidden"));

describe("the set-up page in a browser", function () {
  let service: TestService;
  let browser: Browser | null = null;

  before(async function () {
    browser = await chromiumOrPending(this);
    service = await startTestService({ evmRpcUrl: null });
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
  });

  async function open(link: string): Promise<Page> {
    const page = await browser?.newPage();
    if (page === undefined) throw new Error("The browser runs.");
    await page.goto(link);
    return page;
  }

  it("takes the form of a good link, and says what to do with one that is used up when it loads", async () => {
    const link = (await service.setUpLink()) ?? "";
    const page = await open(link);
    expect([await isShown(page, "form"), await isShown(page, "#problem")]).to.deep.equal([true, false]);
    for (const [name, value] of [
      ["organizationName", "Analytical Engines"],
      ["name", "Ada"],
      ["email", "ada@example.com"],
      ["password", PASSWORD],
    ] as const) {
      await page.type(`#${name}`, value);
    }
    await page.click("button");
    await page.waitForSelector("#done:not([hidden])");
    expect(await page.$eval("#who", ({ textContent }) => textContent)).to.equal("ada@example.com");

    const late = await open(link);
    await late.waitForSelector("#problem:not([hidden])");
    expect(await isShown(late, "form")).to.equal(false);
    const said = await late.$eval("#problem", ({ textContent }) => textContent);
    expect(said).to.include("Used already?").and.include("Sign in").and.include("create-organization");
  });
});
