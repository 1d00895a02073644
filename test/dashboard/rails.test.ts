import { expect } from "chai";
import type { CardNetwork } from "../../src/engines/card-network/network.ts";
import { cardDataOf } from "../../src/engines/card-network/card-data.ts";
import type { Card } from "../../src/engines/card-network/shapes.ts";
import { testCardNetwork } from "../support/card-network.ts";
import { clickOn } from "../support/browser-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { noteSecret } from "../support/secrets.ts";
import { sharedService } from "../support/service.ts";
import { TotpCodes } from "../support/totp.ts";
import { newWorld, until, type TestAgent, type World } from "../support/world.ts";

const KEY = "rk_test_pasted_in_a_browser";
const SECRET = "whsec_pasted_in_a_browser";

const policyOf = async (url: string): Promise<string> =>
  (await fetch(url)).headers.get("content-security-policy") ?? "";

describe("card issuers, in a browser", function () {
  let world: World;
  let agent: TestAgent;
  let network: CardNetwork;
  let page: Dashboard;
  let codes: TotpCodes;
  let paid: string;

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld(sharedService());
    agent = await world.agent({ budgetCents: 100_000 });
    ({ network } = (await testCardNetwork()).accountOf(KEY));
    for (const secret of [KEY, SECRET]) noteSecret(secret);
    const { secret } = await world.api.ok("enrollTotp", 201, { token: world.token });
    codes = new TotpCodes(secret);
    await world.api.ok("confirmTotp", 200, { token: world.token, body: { code: await codes.next() } });
    page = await Dashboard.open(browser, pageOrigin(world), "/settings/rails");
    await page.signIn(world.organization);
    await page.code(await codes.next());
  });
  after(async () => {
    network?.configure({ authorizationUrl: null });
    await page?.close();
  });

  const cardOf = (id: string): Card | undefined =>
    network.store.all<Card>("issuing.card").find(({ metadata }) => metadata["transaction"] === id);

  it("an owner connects an issuer with a pasted key, and the sandbox's badge goes", async () => {
    expect(await page.sees("Connect a card issuer")).to.include("Sandbox");
    await page.fill("Restricted key", KEY);
    await page.press("Connect");
    await page.sees("Confirm that it’s you");
    await page.code(await codes.next());
    const shown = await page.sees("Real-time authorization");
    expect(shown).to.include("Test mode").and.include("Not set up yet").and.not.include(KEY);
    expect(shown).to.match(/choose that a time-out\s+declines/);
    await page.waitFor('document.querySelector(".sandbox")?.textContent.startsWith("Test")');
    expect(await page.barriers()).to.deep.equal([]);
  });

  it("the check says in words what is wrong, and that it works once the address is pasted", async () => {
    await page.fill("Signing secret", SECRET);
    await page.press("Save the secret");
    await page.sees("Replaces the one that is known.");
    network.configure({ authorizationUrl: "http://127.0.0.1:1/", authorizationSecret: SECRET });
    await page.press("Check");
    await page.sees("It does not work yet");
    const { connection } = await world.api.ok("listRails", 200, { token: world.token });
    network.configure({ authorizationUrl: connection?.authorizationUrl ?? null });
    await page.press("Check");
    await page.sees("It works");
  });

  it("number and code of a card are shown by the issuer's frames alone", async () => {
    await page.fill("Publishable key", "pk_test_pasted");
    await page.press("Save the key");
    await page.waitFor(
      `![...document.querySelectorAll("button")].find((each) => each.textContent === "Save the key").dataset.loading`,
    );
    const { card, transaction } = await agent.pay({ amountCents: 1_000 });
    paid = transaction.id;
    expect(card).to.deep.include({ stage: "armed", credential: null });
    const { code, number } = cardDataOf(network.id, cardOf(paid)?.id ?? "");
    noteSecret(number);
    expect(card?.last4).to.equal(number.slice(-4));

    page.allow((await testCardNetwork()).url);
    await page.go(new URL(card?.viewUrl ?? "").pathname);
    await page.press("Show number and code");
    const framed = async (part: string): Promise<string> => {
      const frame = await (await page.page.waitForSelector(`[data-part=${part}] iframe`))?.contentFrame();
      return until(`the frame shows the ${part}`, async () => {
        const text = String(await frame?.evaluate("document.body.innerText")).trim();
        return text === "" ? null : text;
      });
    };
    expect([await framed("number"), await framed("code")]).to.deep.equal([number, code]);
    expect(await page.page.content()).not.to.include(number);
  });

  it("no other page lets the issuer's script or frames in", async () => {
    const { url } = await testCardNetwork();
    expect(await policyOf(`${pageOrigin(world)}/cards/${paid}`))
      .to.include(`frame-src ${url}`)
      .and.include("default-src 'none'");
    for (const path of ["/", "/settings/rails", "/transactions"])
      expect(await policyOf(`${pageOrigin(world)}${path}`)).not.to.include(url);
  });

  it("the payment's drawer names card and stage, and links to its page", async () => {
    await page.go(`/transactions?open=${paid}`);
    const drawn = await page.sees("Armed: nothing is charged yet");
    expect(drawn).to.include("Waits for its first charge until");
    const link = await page.page.$eval("[role=dialog] a[target=_blank]", (a) => a.getAttribute("href"));
    expect(link).to.equal(`/cards/${paid}`);
  });

  it("an issuer with an open card is not disconnected, and one without is", async () => {
    await page.walk("/settings/rails");
    await page.press("Disconnect");
    await page.sees("Its key is erased");
    const confirm = '::-p-xpath(//*[@role="dialog"]//button[contains(., "Disconnect")])';
    await clickOn(page.page, confirm);
    await page.page.waitForSelector("[role=dialog] [role=alert]");
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: paid });
    await until("the card is closed", () =>
      Promise.resolve(cardOf(paid)?.status === "canceled" ? true : null),
    );
    await until("it is disconnected", async () => {
      await clickOn(page.page, confirm, { ms: 1_000 }).catch(() => null);
      const { connection } = await world.api.ok("listRails", 200, { token: world.token });
      return connection === null ? true : null;
    });
    await page.sees("Connect a card issuer");
  });
});
