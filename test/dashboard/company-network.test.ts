import { expect } from "chai";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { newWorld, type World } from "../support/world.ts";

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

/** The dashboard as a company has it on its network: several people's locales. */
describe("the dashboard on a company's network, in a browser", function () {
  let world: World;
  let page: Dashboard;

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld();
    page = await Dashboard.open(browser, pageOrigin(world));
    await page.visit("/", world.token);
  });
  afterEach(() => page?.check());
  after(() => page?.close());

  for (const { ambiguous, budget, locale, question, threshold } of LOCALES) {
    it(`in a ${locale} browser an amount is stored as it was typed there, or asked about`, async () => {
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
