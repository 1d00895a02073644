import { expect } from "chai";
import type { HTTPRequest } from "puppeteer-core";
import { clickOn } from "../support/browser-page.ts";
import { ChainView, fundedAgent } from "../support/chain.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { sharedService } from "../support/service.ts";
import { openShop } from "../x402/shops.ts";
import { cardPayment, elevate, newWorld, until, type World } from "../support/world.ts";

const respondWith = (request: HTTPRequest, body: object): Promise<void> =>
  request.respond({ contentType: "application/json", body: JSON.stringify(body) });

const paidFor = { purpose: "a test", idempotencyKey: "from a shop" };

/** Payments and money in the dashboard, in real Chromium, on the real service: one test after another, in one session. */
describe("payments in the dashboard, in a browser", function () {
  let world: World;
  let page: Dashboard;
  let key: string;

  const pay = (fields: object) =>
    world.api.ok("createPayment", 201, { token: key, body: cardPayment({ ...fields }) });
  const firstAgent = async () => {
    const [agent] = (await world.api.ok("listAgents", 200, { token: world.token })).agents;
    if (agent === undefined) throw new Error("There is an agent.");
    return agent;
  };

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld(sharedService());
    page = await Dashboard.open(browser, pageOrigin(world));
    await page.visit("/agents", world.token);
  });
  after(() => page?.close());

  it("an agent is created, its key shown once, in the configuration of its client", async () => {
    await page.press("Create an agent");
    await page.fill("Name", "Buyer");
    await page.fill("Budget", "100");
    await page.press("Create");
    await page.sees("An amount is needed; 0 asks for every payment.");
    await page.fill("Require approval above", "5");
    await page.press("Create");
    const shown = await page.sees("Buyer is ready");
    key = /sk_svc_live_\w+/.exec(shown)?.[0] ?? "";
    await until("the configuration and the payment to try have the key, too", async () =>
      (await page.text()).split(key).length > 3 ? true : null,
    );
    expect(await page.barriers()).to.deep.equal([]);
    await page.press("I have saved it");
    await page.sees("The only thing that the agent holds");
    await page.hasNo(key);
    expect((await pay({ amountCents: 100 })).transaction.status).to.equal("approved");
  });

  it("a sandbox is said on every page, and a wallet on its chain gets test money by a button", async () => {
    await page.walk(`/agents/${(await firstAgent()).id}`);
    await page.press("Add test money");
    await page.fill("Amount", "12.50");
    expect(await page.barriers()).to.deep.equal([]);
    await page.press("Add");
    await page.hasNo("It is worth nothing.");
    expect(await page.sees("$12.50")).to.include("Sandbox");
  });

  it("payments on hold are approved and denied from the inbox, and the agent is told why", async () => {
    const merchant = `<img src=x onerror=alert(1)>\u202e${"W".repeat(150)}`;
    const [first, second] = [
      await pay({ amountCents: 600, merchant, purpose: `<script>alert(1)</script> ${"x".repeat(400)}` }),
      await pay({ amountCents: 700, merchant: "Second Shop" }),
    ];
    await pay({ amountCents: 800, merchant: "Third Shop" });
    await page.walk("/approvals");
    await page.sees("3 waiting · $21.00");
    expect(await page.page.$$("main img, main script")).to.deep.equal([]);
    await page.press("Approve $6.00");
    await page.waitFor("document.querySelectorAll('main article').length === 2");
    expect(await page.sees("Paid $6.00 to")).to.include("<img src=x onerror=alert(1)>[U+202E]WWW");

    // Another payment's approval is under way, and arrives while it is asked why this one is denied.
    const approval = await page.holdBack(/\/approve$/);
    await page.press("Approve $8.00");
    const deny = '::-p-xpath(//article[.//button[contains(., "Approve $7.00")]]//button[@data-key="deny"])';
    await clickOn(page.page, deny);
    await page.sees("Too expensive: look for a cheaper offer.");
    await approval.release();
    await page.waitFor("document.querySelectorAll('main article').length === 1");
    await page.press("Too expensive: look for a cheaper offer.");
    // A click outside keeps the reason.
    await page.page.mouse.click(5, 5);
    await page.page.focus("[role=dialog] textarea");
    await page.page.keyboard.down("Control");
    await page.page.keyboard.press("Enter");
    await page.page.keyboard.up("Control");
    await page.sees("Nothing waits for approval");
    await page.sees("Denied $7.00 to Second Shop.");
    const of = async ({ transaction }: typeof first) =>
      (await world.api.ok("getPayment", 200, { token: key, id: transaction.id })).transaction;
    expect([(await of(first)).status, (await of(second)).denialCode]).to.deep.equal([
      "approved",
      "APPROVAL_DENIED",
    ]);
    await page.press("Decided", "tab");
    expect(await page.sees("Too expensive")).to.include("Second Shop");
  });

  it("a payment shows what its merchant charged and gave back, in list, drawer and timeline", async () => {
    const { transaction } = await pay({ amountCents: 400, merchant: "sandbox-partial-refund" });
    await until("a part came back", async () => {
      const read = await world.api.ok("getTransaction", 200, { token: world.token, id: transaction.id });
      return read.transaction.amounts.creditedCents > 0 ? true : null;
    });
    await page.walk(`/transactions?open=${transaction.id}`);
    const drawer = await page.sees("Refunded $1.00 by the card processor");
    expect(drawer).to.include("Approved Part refunded Card");
    expect(drawer).to.include("Asked for $4.00 Authorized $4.00 Charged $4.00 Came back $1.00");
    expect(drawer).to.match(/Charged \$4\.00 by the card processor.*Refunded \$1\.00/);
    expect(await page.barriers()).to.deep.equal([]);
    await page.page.keyboard.press("Escape");
    await page.page.waitForSelector('tbody [data-mark="Part refunded"]');
  });

  it("no button of the inbox moves when what an approval is judged by has been read", async () => {
    const { transaction } = await pay({ amountCents: 600 });
    const context = await page.holdBack(/\/context$/);
    await page.walk("/approvals");
    const bottom = async (): Promise<number> => {
      await page.page.waitForSelector("main article [data-key=approve]");
      return page.page.$eval(
        "main article [data-key=approve]",
        (button) => button.getBoundingClientRect().bottom,
      );
    };
    await page.sees("1 waiting");
    const before = await bottom();
    await context.release();
    await page.sees("Latest payments of the agent");
    expect(Math.abs((await bottom()) - before)).to.be.below(2);
    // On a phone the button is in reach before anything is scrolled.
    await page.page.setViewport({ width: 360, height: 740 });
    const isOnTop = "document.elementFromPoint(x, y)?.closest('[data-key=approve]') === button";
    await page.waitFor(`((button, { left, top, width, height }) =>
      ((x, y) => ${isOnTop})(left + width / 2, top + height / 2))(...((button) =>
      [button, button.getBoundingClientRect()])(document.querySelector("main article [data-key=approve]")))`);
    await page.page.setViewport({ width: 1_280, height: 900 });
    await world.api.ok("cancelPayment", 200, { token: key, id: transaction.id });
  });

  it("a wallet's target is set; a purchase's drawer names shop, payee, protocol and receipt", async () => {
    const { id } = await firstAgent();
    const chain = new ChainView(world);
    const rpcUrl = world.service.env["EVM_RPC_URL"] ?? "";
    const shop = await openShop({ rpcUrl, token: await chain.token({ id }) });
    const body = { url: `${shop.url}/paid/report`, maxAmountCents: 5, ...paidFor };
    const { transaction } = await world.api.ok("payX402Request", 201, { token: key, body });
    await shop.close();
    await elevate(world);
    await page.walk(`/agents/${id}`);
    await page.press("Policy", "tab");
    await page.sees("Kept at Not kept");
    await page.fill("Keep the wallet at", "3");
    await page.press("Set target");
    await page.sees("Kept at $3.00");
    expect(await page.barriers()).to.deep.equal([]);
    await page.walk(`/transactions?open=${transaction?.id ?? ""}`);
    const drawer = await page.sees("Seller’s receipt");
    for (const text of [
      body.url,
      shop.payTo,
      "Protocol x402",
      "$0.001",
      transaction?.onChainTxHash ?? "none",
    ])
      expect(drawer).to.include(text);
    expect(await page.barriers()).to.deep.equal([]);
  });

  it("a purchase on hold names shop and price, a tenth of a cent, in inbox and on its page", async () => {
    const careful = await fundedAgent(world, 100, { name: "Careful", autoApprovalThresholdCents: 0 });
    const rpcUrl = world.service.env["EVM_RPC_URL"] ?? "";
    const shop = await openShop({ rpcUrl, token: await new ChainView(world).token(careful) });
    const url = `${shop.url}/paid/weather`;
    const body = { url, maxAmountCents: 5, ...paidFor };
    const { approval } = await world.api.ok("payX402Request", 201, { token: careful.key, body });
    await page.walk("/approvals");
    const inbox = await page.sees("Approve $0.001");
    expect(inbox)
      .to.include(`$0.001 to ${new URL(url).host}`)
      .and.include("Careful");
    await page.press("Details", "link");
    const asked = await page.sees(url);
    for (const text of [
      `To ${new URL(url).host} (from the agent’s wallet`,
      `Paid to ${shop.payTo}`,
      "Approve $0.001",
    ])
      expect(asked).to.include(text);
    expect(await page.barriers()).to.deep.equal([]);
    await shop.close();
    const id = approval?.transactionId ?? "";
    await world.api.ok("cancelPayment", 200, { token: careful.key, id });
  });

  it("a wallet is funded from the treasury once; what it does not hold is refused in the dialog", async () => {
    const { id } = await firstAgent();
    const { token } = world;
    const balance = async (): Promise<number> => {
      const { wallet } = await world.api.ok("getAgentWallet", 200, { token, id });
      return wallet?.balanceCents ?? 0;
    };
    await until("the treasury has money", async () => {
      const answer = await world.api.call("depositToTreasury", { token, body: { amountCents: 5_000 } });
      return answer.status === 200 ? true : null;
    });
    const before = await balance();
    await elevate(world);
    await page.walk(`/agents/${id}`);
    await page.press("Fund from treasury");
    await page.sees("Goes from your organization’s treasury to the agent’s wallet.");
    expect(await page.barriers()).to.deep.equal([]);
    await page.fill("Amount", "900000");
    await page.press("Add");
    await page.sees("does not hold enough");
    expect(await balance()).to.equal(before);
    await page.fill("Amount", "7.25");
    await page.press("Add");
    await page.seesNo("Goes from your organization’s treasury to the agent’s wallet.");
    await until("the wallet has it", async () => ((await balance()) === before + 725 ? true : null));
    const moved = world.service.db.collection("wallet_fundings");
    expect(await moved.countDocuments({ "profile.agentId": id, amountCents: 725 })).to.equal(1);
  });

  it("sums that take several answers are shown as they come, and are called incomplete", async () => {
    const today = new Date().toISOString().slice(0, 10);
    const held: HTTPRequest[] = [];
    const day = { day: today, count: 1, amountCents: 700, groups: [], others: null };
    const intercept = (request: HTTPRequest): void => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname !== "/v1/transactions/summary") void request.continue();
      else if (searchParams.has("before")) held.push(request);
      else void respondWith(request, { days: [day], nextBefore: today });
    };
    await page.page.setRequestInterception(true);
    page.page.on("request", intercept);
    await page.go("/");
    await page.sees("$7.00 so far");
    await until("the rest is asked for", () => Promise.resolve(held.length > 0 ? true : null));
    for (const request of held) await respondWith(request, { days: [], nextBefore: null });
    await page.sees("$7.00 total");
    page.page.off("request", intercept);
    await page.page.setRequestInterception(false);
  });

  it("a payment that was charged above a limit is marked, and its drawer says by how much", async () => {
    const agent = await world.agent({ perTransactionLimitCents: 400 });
    const { transaction } = await agent.pay({ amountCents: 400, merchant: "sandbox-over" });
    await page.walk(`/transactions?open=${transaction.id}`);
    const drawer = await page.sees("Limits exceeded by the network");
    expect(drawer).to.include("Approved Over limit Card");
    expect(drawer).to.include(
      "Agent’s limit per transaction by $0.80. It was charged without another decision",
    );
    await page.page.keyboard.press("Escape");
    await page.page.waitForSelector('tbody [data-mark="Over limit"]');
  });
});
