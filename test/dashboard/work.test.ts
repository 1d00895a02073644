import { EventEmitter, once } from "node:events";
import { expect } from "chai";
import { DateTime } from "luxon";
import type { HTTPRequest } from "puppeteer-core";
import { mintKey } from "../authorization/scene.ts";
import { clickOn } from "../support/browser-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { barriersOn, Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { restricting } from "../support/restrictions.ts";
import { sharedService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { TotpCodes } from "../support/totp.ts";
import { ChainView } from "../support/chain.ts";
import { openShop } from "../x402/shops.ts";
import { cardPayment, elevate, newWorld, until, type World } from "../support/world.ts";

const respondWith = (request: HTTPRequest, body: object): Promise<void> =>
  request.respond({ contentType: "application/json", body: JSON.stringify(body) });

/** Holds the next request of such a path back until it is released. */
async function heldBack({ page }: Dashboard, path: RegExp) {
  await page.setRequestInterception(true);
  const releasing = new EventEmitter();
  const released = once(releasing, "release");
  const pass = async (request: HTTPRequest): Promise<void> => {
    if (path.test(new URL(request.url()).pathname)) await released;
    await request.continue();
  };
  const onRequest = (request: HTTPRequest): void => void pass(request);
  page.on("request", onRequest);
  return {
    async release(): Promise<void> {
      releasing.emit("release");
      page.off("request", onRequest);
      await page.setRequestInterception(false);
    },
  };
}

const paidFor = { purpose: "a test", idempotencyKey: "from a shop" };

/** What people do in the dashboard, in real Chromium, on the real service: one after another, in one session. */
describe("the dashboard at work, in a browser", function () {
  let world: World;
  let page: Dashboard;
  let codes: TotpCodes;
  let key: string;

  const pay = (fields: object) =>
    world.api.ok("createPayment", 201, { token: key, body: cardPayment({ ...fields }) });
  const firstAgent = async () => {
    const [agent] = (await world.api.ok("listAgents", 200, { token: world.token })).agents;
    if (agent === undefined) throw new Error("There is an agent.");
    return agent;
  };

  /** A dialog that was left is still drawn for a moment. */
  const gone = (text: string) =>
    until("the page has nothing of it", async () =>
      (await page.page.content()).includes(text) ? null : true,
    );

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld(sharedService());
    page = await Dashboard.open(browser, pageOrigin(world));
    await page.signIn(world.organization);
    await page.sees("Create your first agent");
    await page.walk("/settings/security");
    await page.press("Enrol");
    await page.page.waitForSelector("#totp-secret");
    const secret = await page.page.$eval("#totp-secret", ({ textContent }) => textContent ?? "");
    codes = new TotpCodes(secret);
    await page.code(await codes.next());
    await page.sees("Enabled");
  });
  after(() => page?.close());

  it("an agent is created, its key shown once, in the configuration of its client", async () => {
    await page.walk("/agents");
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
    await gone(key);
    expect((await pay({ amountCents: 100 })).transaction.status).to.equal("approved");
  });

  it("a sandbox is said on every page, and a wallet on its chain gets test money by a button", async () => {
    await page.walk(`/agents/${(await firstAgent()).id}`);
    await page.press("Add test money");
    await page.fill("Amount", "12.50");
    expect(await page.barriers()).to.deep.equal([]);
    await page.press("Add");
    await gone("It is worth nothing.");
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
    const approval = await heldBack(page, /\/approve$/);
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
    await page.go(`/transactions?open=${transaction.id}`);
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
    const context = await heldBack(page, /\/context$/);
    await page.go("/approvals");
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

  it("a policy is saved after a step-up; another user's change is shown as a choice", async () => {
    const { id } = await firstAgent();
    await page.walk(`/agents/${id}`);
    await page.press("Policy", "tab");
    await page.fill("Limit per payment", "50");
    await page.press("Save");
    await page.sees("Confirm that it’s you");
    // Typed without a click: the dialog has put the cursor there.
    await page.waitFor("document.activeElement.ariaLabel === 'Digit 1'");
    await page.page.keyboard.type(await codes.next());
    await until("the limit is in force", async () => {
      const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });
      return policy.perTransactionLimitCents === 5_000 ? true : null;
    });
    const { budgetCents, version } = await world.api.ok("getAgentBudgetPolicy", 200, {
      token: world.token,
      id,
    });
    // The other person's change comes by the team's budget, which asks for no factor.
    const { organization, token } = world;
    const budget = await world.api.ok("getTeamBudget", 200, { token, id: organization.teamId });
    await page.fill("Limit per day", "80");
    await world.api.ok("setTeamBudget", 200, {
      token,
      id: organization.teamId,
      body: {
        capCents: null,
        agents: [{ agentId: id, budgetCents: budgetCents + 100 }],
        version: budget.version,
      },
    });
    await page.press("Save");
    const said = await page.sees("Somebody else has changed this policy");
    expect(said).to.match(/Budget \$101\.00 as theirs.*Limit per day No limit \$80\.00/);
    expect(await page.barriers()).to.deep.equal([]);
    await page.press("Save mine over it");
    await page.seesNo("Somebody else has changed this policy");
    const after = await until("mine is in force, over theirs", async () => {
      const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token, id });
      return policy.dailySpendLimitCents === 8_000 ? policy : null;
    });
    expect(after.budgetCents).to.equal(budgetCents + 100);
    expect(after.version).to.be.greaterThan(version);
  });

  it("a wallet's target is set; a purchase's drawer names shop, payee, protocol and receipt", async () => {
    const { id } = await firstAgent();
    const chain = new ChainView(world);
    const rpcUrl = world.service.env["EVM_RPC_URL"] ?? "";
    const shop = await openShop({ rpcUrl, token: await chain.token({ id }) });
    const body = { url: `${shop.url}/paid/report`, maxAmountCents: 5, ...paidFor };
    const { transaction } = await world.api.ok("payX402Request", 201, { token: key, body });
    await shop.close();
    await page.go(`/agents/${id}`);
    await page.press("Policy", "tab");
    await page.sees("Kept at Not kept");
    await page.fill("Keep the wallet at", "3");
    await page.press("Set target");
    await page.sees("Kept at $3.00");
    expect(await page.barriers()).to.deep.equal([]);
    await page.go(`/transactions?open=${transaction?.id ?? ""}`);
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
    await page.go(`/agents/${id}`);
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

  it("what is typed while a policy is being saved is kept, as the next change", async () => {
    const { id } = await firstAgent();
    const saved = async (expected: object) => {
      await until(`saved: ${JSON.stringify(expected)}`, async () => {
        const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });
        return Object.entries(expected).every(([name, value]) => Reflect.get(policy, name) === value)
          ? true
          : null;
      });
    };
    await page.go(`/agents/${id}`);
    await page.press("Policy", "tab");
    await page.fill("Limit per payment", "60");
    const answer = await heldBack(page, /\/budget-policy$/);
    await page.press("Save");
    await page.fill("Limit per day", "90");
    await answer.release();
    await saved({ perTransactionLimitCents: 6_000, dailySpendLimitCents: 8_000 });
    await page.press("Save");
    await saved({ perTransactionLimitCents: 6_000, dailySpendLimitCents: 9_000 });
  });

  it("rules changed while they are saved stay changed; discarding shows what is saved", async () => {
    const { organization, token } = world;
    const id = organization.teamId;
    const inRules = (name: string) =>
      clickOn(page.page, `::-p-xpath(//section[.//h2="Approval rules"]//button[contains(., "${name}")])`);
    const savedRules = async (amountCents: number) => {
      const { rules } = await until(`a rule above ${String(amountCents)} alone`, async () => {
        const current = await world.api.ok("getTeamApprovalRules", 200, { token, id });
        const [rule] = current.rules;
        return rule?.type === "amount_above" && rule.params.amountCents === amountCents ? current : null;
      });
      expect(rules).to.have.lengthOf(1);
      return rules[0]?.id;
    };
    await page.walk(`/teams/${id}`);
    await page.press("Add a rule");
    await page.press("Large amount", "menuitem");
    await page.fill("Amount", "40");
    const answer = await heldBack(page, /\/approval-rules$/);
    await inRules("Save");
    await page.fill("Amount", "45");
    await answer.release();
    const ruleId = await savedRules(4_000);
    await inRules("Save");
    expect(await savedRules(4_500)).to.equal(ruleId);
    await page.fill("Amount", "99");
    await page.sees("above $99.00");
    await inRules("Discard changes");
    await page.sees("above $45.00");
    expect(await page.page.$eval('[aria-label="Amount"]', (field) => Reflect.get(field, "value"))).to.equal(
      "45",
    );
    await world.api.ok("setTeamApprovalRules", 200, {
      token,
      id,
      body: { rules: [], version: (await world.api.ok("getTeamApprovalRules", 200, { token, id })).version },
    });
  });

  it("a rule with an empty list says so at its field; merchant categories are chosen by name", async () => {
    const { organization, token } = world;
    const id = organization.teamId;
    const inRules = (name: string) =>
      clickOn(page.page, `::-p-xpath(//section[.//h2="Approval rules"]//button[contains(., "${name}")])`);
    await page.go(`/teams/${id}`);
    await page.press("Add a rule");
    await page.press("Merchant categories", "menuitem");
    await inRules("Save");
    expect(await page.sees("Must name at least one.")).not.to.include("params");
    expect(await page.barriers()).to.deep.equal([]);
    await page.fill("Categories", "softw");
    await page.press("Computer software stores (5734)", "option");
    await page.fill("Categories", "1234");
    await page.press("1234", "option");
    await page.sees("of category Computer software stores (5734) or 1234 requires approval");
    // The open list of categories may lie over the button.
    await page.page.keyboard.press("Escape");
    await inRules("Save");
    const { version } = await until("the rule is saved", async () => {
      const current = await world.api.ok("getTeamApprovalRules", 200, { token, id });
      const [rule] = current.rules;
      const listed = rule?.type === "merchant_category" ? (rule.params.anyOf?.join(" ") ?? "") : "";
      return listed === "5734 1234" ? current : null;
    });
    await world.api.ok("setTeamApprovalRules", 200, { token, id, body: { rules: [], version } });
  });

  it("the organization is renamed, and a rule on the time of day starts with its time zone", async () => {
    await page.walk("/settings/organization");
    await page.fill("Name", "Difference Engines");
    await page.fill("Time zone", "Auckland");
    await page.press("Pacific/Auckland", "option");
    await page.press("Save");
    await page.waitFor("document.querySelector('.account').innerText.includes('Difference Engines')");
    await page.go(`/teams/${world.organization.teamId}`);
    await page.press("Add a rule");
    await page.press("Time of day", "menuitem");
    await page.sees("(Pacific/Auckland)");
  });

  it("what is typed into an open budget or form undoes nothing that was changed elsewhere", async () => {
    const { organization, token } = world;
    const id = organization.teamId;
    const backend = await mintKey(world, ["agents:write"]);
    const agent = await firstAgent();
    const read = () => world.api.ok("getAgentBudgetPolicy", 200, { token, id: agent.id });
    const { budgetCents, version } = await read();
    const lowered = { budgetCents: budgetCents - 1, version };
    await page.go(`/teams/${id}`);
    await page.fill("Cap", "500");
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: backend, id: agent.id, body: lowered });
    await clickOn(page.page, `::-p-xpath(//section[.//h2="Budget"]//button[contains(., "Save")])`);
    await page.sees("Somebody else has changed this budget");
    expect((await read()).budgetCents).to.equal(lowered.budgetCents);
    await page.press("Show theirs");

    await page.press("Edit");
    await page.fill("Description", "Buys paper.");
    await world.api.ok("updateTeam", 200, { token, id, body: { color: "#0f766e" } });
    await clickOn(page.page, `::-p-xpath(//*[@role="dialog"]//button[contains(., "Save")])`);
    const { color } = await until("the description is saved", async () => {
      const { team } = await world.api.ok("getTeam", 200, { token, id });
      return team.description === "Buys paper." ? team : null;
    });
    expect(color).to.equal("#0f766e");
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

  it("the emergency stop pauses an agent and revokes its key with two clicks", async () => {
    const { id } = await firstAgent();
    await page.walk(`/agents/${id}`);
    await page.press("Emergency stop");
    await page.press("Stop now");
    await page.sees("This agent is paused");
    await page.sees("Create a key");
    const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id });
    expect([agent.state, agent.key]).to.deep.equal(["paused", null]);
  });

  it("the emergency stop of the whole organization is on the overview, with two clicks", async () => {
    const { id } = await firstAgent();
    await world.api.ok("resumeAgent", 200, { token: world.token, id });
    await page.go("/");
    await page.press("Emergency stop");
    await page.sees("Stop all agents of the organization?");
    await page.press("Stop now");
    const entries = await until("both calls are in the audit log", async () => {
      const query = { action: "stopOrganization" };
      const listed = await world.api.ok("listAuditLog", 200, { token: world.token, query });
      return listed.entries.length === 2 ? listed.entries : null;
    });
    expect(entries.map(({ after }) => after)).to.deep.equal([
      { revokeKeys: true, paused: 0, revoked: 0 },
      { revokeKeys: false, paused: 1, revoked: 0 },
    ]);
  });

  it("an organization key is created with what it may do, shown once, and works", async () => {
    await page.walk("/settings/keys");
    await page.press("Create a key");
    await page.fill("Name", "Backend");
    await page.page.locator("::-p-aria([name='agents:read'][role='checkbox'])").click();
    await page.press("Create");
    const shown = await page.sees("The new key");
    const value = /svc_org_live_\w+/.exec(shown)?.[0] ?? "";
    expect((await world.api.ok("listAgents", 200, { token: value })).agents).to.have.lengthOf(1);
    await world.api.refused("createTeam", 403, "INSUFFICIENT_SCOPE", {
      token: value,
      body: { name: "x", idempotencyKey: "k" },
    });
    await page.press("I have saved it");
    await page.sees("Backend");
    await gone(value);
  });

  it("a webhook of one agent is added, and nothing but that agent's events goes to it", async () => {
    const { id } = await firstAgent();
    await page.walk("/settings/webhooks");
    await page.press("Add an endpoint");
    await page.fill("Name", "Books");
    await page.fill("URL", "https://1.1.1.1/hooks");
    await page.page.locator('[role="radiogroup"] label ::-p-text(Agents)').click();
    await page.fill("Chosen agents", "Buyer");
    await page.press("Buyer", "option");
    // The list of agents lies over what comes next until it is left.
    await page.page.keyboard.press("Tab");
    await page.press("Add");
    await page.sees("whsec_");
    const { webhooks } = await world.api.ok("listWebhooks", 200, { token: world.token });
    expect(webhooks.map(({ scopeIds, scopeType }) => [scopeType, scopeIds])).to.deep.equal([["agent", [id]]]);
  });

  it("the audit log reads in words and names, shows each change, and is narrowed by pickers", async () => {
    const { api, token } = world;
    const row = (words: string) =>
      clickOn(page.page, `::-p-xpath(//main//tr[contains(., "${words}")]//td//button)`);
    const { webhooks } = await api.ok("listWebhooks", 200, { token });
    const removed = webhooks[0]?.id ?? "";
    await api.ok("deleteWebhook", 204, { token, id: removed });
    await page.walk("/settings/audit");
    const whole = await page.sees("Stopped all agents of organization");
    // What is gone by the name that it had, its id, and that it is gone; what is there by its name alone, as a link.
    expect(whole).to.match(new RegExp(`Deleted webhook endpoint Books ${removed} no longer exists Done`));
    expect(whole).to.include("Created organization key Backend Done");
    expect(whole).to.include("$6.00 to <img src=x onerror=alert(1)>[U+202E]WWW");
    expect(await page.page.$$("main img")).to.deep.equal([]);
    expect(whole).not.to.match(/[0-9a-f]{8}-[0-9a-f]{4}-7/);
    await page.page.waitForSelector(`main a[href="/agents/${(await firstAgent()).id}"]`);
    expect(await page.barriers()).to.deep.equal([]);

    await page.fill("Person", "Backend");
    await page.page.locator('[role="option"] ::-p-text(Backend)').click();
    await page.seesNo("Stopped all agents");
    await page.sees("Tried to create team Refused insufficient scope Backend");
    expect(page.page.url()).to.include("actor=okey_");
    await page.go("/settings/audit");
    await page.fill("Kind of object", "Agent");
    await page.press("Agent", "option");
    await page.fill("Object", "Buy");
    await page.press("Buyer", "option");
    await page.fill("Action", "budget");
    await page.press("Changed budget policy of agent", "option");
    await page.seesNo("Created agent");
    const today = DateTime.now().setZone("Pacific/Auckland");
    const days = `from=${today.minus({ days: 1 }).toISODate()}&to=${today.toISODate()}`;
    await page.go(`${new URL(page.page.url()).pathname}${new URL(page.page.url()).search}&${days}`);
    await page.sees("Days are those of Pacific/Auckland.");
    const lastDayEnds = async () => {
      const exported = await page.page.$eval("a[download]", ({ search }) => search);
      expect(new URLSearchParams(exported).get("to")).to.equal(end);
    };
    const end = today.plus({ days: 1 }).startOf("day").toUTC().toISO();
    await lastDayEnds();
    const log = page.page.url();
    await page.go(`/transactions?${days}`);
    await page.sees("Days are those of Pacific/Auckland.");
    await lastDayEnds();
    await page.go(log.slice(new URL(log).origin.length));

    // On a phone: the result without a click, the change by a touch, nothing wider than it.
    await page.page.setViewport({ width: 360, height: 740 });
    expect(await page.sees("Changed budget policy of agent")).to.include("Buyer Done");
    await row("Changed budget policy of agent");
    const detail = await page.sees("What changed");
    expect(detail).to.include("Budget − Old: $101.00 + New: $100.99");
    expect(await page.barriers()).to.deep.equal([]);
    const over = await page.page.$$eval("html, [role=dialog]", (boxes) =>
      boxes.map(({ clientWidth, scrollWidth }) => scrollWidth - clientWidth),
    );
    expect(over).to.deep.equal([0, 0]);
    await page.page.keyboard.press("Escape");
    await page.waitFor("document.activeElement.innerText === 'Changed budget policy of agent'");
    await page.page.setViewport({ width: 1_280, height: 900 });
  });

  it("a session that has ended elsewhere leads to the sign-in, and takes what was shown away", async () => {
    await page.walk("/transactions");
    await page.sees("Second Shop");
    await world.api.ok("endOtherSessions", 204, { token: world.token });
    await page.page.evaluate("document.querySelector('a[href=\"/agents\"]').click()");
    await page.sees("Decide what your agents may spend.");
    expect(await page.page.content()).not.to.include("Second Shop");
    await page.signIn(world.organization);
    await page.code(await codes.next());
    await page.sees("Buyer");
    expect(new URL(page.page.url()).pathname).to.equal("/agents");
  });

  it("every page is accessible: axe-core finds nothing serious, and none is wider than a phone", async () => {
    const { id } = await firstAgent();
    const { organization } = world;
    const paths = [
      "/",
      "/approvals",
      "/agents",
      `/agents/${id}`,
      "/transactions",
      "/projects",
      `/projects/${organization.projectId}`,
      `/teams/${organization.teamId}`,
      "/settings/organization",
      "/settings/keys",
      "/settings/members",
      "/settings/webhooks",
      "/settings/security",
      "/settings/audit",
    ];
    const wide: string[] = [];
    for (const [index, path] of someOrAll(paths, 2).entries()) {
      const scheme = index % 2 === 0 ? "light" : "dark";
      await page.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.go(path);
      await page.page.waitForSelector("main h1");
      await page.waitFor("document.querySelector('.mantine-Skeleton-root') === null");
      expect(await barriersOn(page.page), `${path} ${scheme}`).to.deep.equal([]);
      // Narrow and nothing else: to become a phone, the page would be loaded again.
      await page.page.setViewport({ width: 360, height: 740 });
      const over = await page.page.$eval("html", ({ clientWidth, scrollWidth }) => scrollWidth - clientWidth);
      if (over > 0) wide.push(`${path} by ${over}`);
      await page.page.setViewport({ width: 1_280, height: 900 });
    }
    expect(wide).to.deep.equal([]);
  });

  it("restrictions of a team and an agent are edited, and say in sentences what they do", async () => {
    const { organization, token } = world;
    const { teamId } = organization;
    const agent = await world.agent();
    await elevate(world);
    const inRestrictions = (name: string) =>
      clickOn(page.page, `::-p-xpath(//section[.//h2="Restrictions"]//button[contains(., "${name}")])`);
    await page.go(`/teams/${teamId}`);
    await page.sees("No payment is denied by them.");
    await page.fill("Never these recipients", "Casino");
    await page.page.keyboard.press("Enter");
    await page.sees("Never payments to Casino.");
    expect(await page.barriers()).to.deep.equal([]);
    // Tried on a real payment before it is saved.
    expect((await agent.pay({ merchant: "CASINO", amountCents: 1_234 })).transaction.status).to.equal(
      "approved",
    );
    await inRestrictions("Try");
    await page.sees("What would have been different");
    await page.sees("RECIPIENT_NOT_ALLOWED");
    await page.sees("12.34");
    await page.sees("is not guessed");
    expect(await page.barriers()).to.deep.equal([]);
    await page.page.keyboard.press("Escape");
    await inRestrictions("Save");
    await until("the team's are saved", async () => {
      const { recipients } = await world.api.ok("getTeamRestrictions", 200, { token, id: teamId });
      return recipients.never.join() === "Casino" || null;
    });
    const body = restricting({ rails: { only: ["card"] } });
    await world.api.ok("setAgentRestrictions", 200, { token, id: agent.id, body });
    await page.go(`/agents/${agent.id}`);
    await page.press("Policy", "tab");
    await page.sees("Only payments by card.");
    await page.fill("Only these recipients", "host:api.example.com");
    await page.page.keyboard.press("Enter");
    await page.sees("Only payments to host:api.example.com.");
    await inRestrictions("Save");
    await until("the agent's are saved", async () => {
      const { rails, recipients } = await world.api.ok("getAgentRestrictions", 200, { token, id: agent.id });
      return `${String(rails.only)} ${String(recipients.only)}` === "card host:api.example.com" || null;
    });
    await world.api.ok("setTeamRestrictions", 200, { token, id: teamId, body: restricting({}, 2) });
  });

  it("limits by period follow the project's calendar, and bars say when they begin anew", async () => {
    const { organization, token } = world;
    const { projectId, teamId } = organization;
    const agent = await world.agent();
    await elevate(world);
    await page.go(`/projects/${projectId}`);
    await page.fill("Time of day", "04:00");
    await page.press("Save calendar");
    await until("the calendar is saved", async () => {
      const { resetTime } = await world.api.ok("getProjectCalendar", 200, { token, id: projectId });
      return resetTime === "04:00" || null;
    });
    for (const [path, tab, amount] of [
      [`/teams/${teamId}`, null, "900"],
      [`/agents/${agent.id}`, "Policy", "200"],
    ] as const) {
      await page.go(path);
      if (tab !== null) await page.press(tab, "tab");
      await page.fill("Per month", amount);
      await page.press("Save limits");
      await page.sees("This month");
      await page.sees("Begins anew");
      expect(await page.barriers()).to.deep.equal([]);
    }
    const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token, id: agent.id });
    expect(policy.spendLimits.map(({ limitCents, period }) => [period, limitCents])).to.deep.equal([
      ["month", 20_000],
    ]);
    expect(policy.spendLimits[0]?.resetsAt).to.match(/-01T04:00:00/);
    const team = await world.api.ok("getTeamBudget", 200, { token, id: teamId });
    expect(team.spendLimits.map(({ limitCents }) => limitCents)).to.deep.equal([90_000]);
  });
});
