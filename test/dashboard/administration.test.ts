import { expect } from "chai";
import { DateTime } from "luxon";
import { mintKey } from "../authorization/scene.ts";
import { clickOn } from "../support/browser-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { barriersOn, Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { sharedService } from "../support/service.ts";
import { someOrAll } from "../support/soak.ts";
import { elevate, newWorld, type TestAgent, until, type World } from "../support/world.ts";

/** Stops, keys, webhooks and the audit log in the dashboard, in real Chromium: one test after another, in one session. */
describe("administration in the dashboard, in a browser", function () {
  let world: World;
  let page: Dashboard;
  let buyer: TestAgent;

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld(sharedService());
    const { api, token } = world;
    buyer = await world.agent({ name: "Buyer", budgetCents: 10_100, autoApprovalThresholdCents: 500 });
    const merchant = `<img src=x onerror=alert(1)>\u202e${"W".repeat(150)}`;
    const { approvalId } = await buyer.hold({ amountCents: 600, merchant });
    await api.ok("approveApproval", 200, { token, id: approvalId });
    const backend = await mintKey(world, ["agents:write"]);
    const { version } = await api.ok("getAgentBudgetPolicy", 200, { token, id: buyer.id });
    const body = { budgetCents: 10_099, version };
    await api.ok("updateAgentBudgetPolicy", 200, { token: backend, id: buyer.id, body });
    await api.ok("updateOrganization", 200, { token, body: { timezone: "Pacific/Auckland" } });
    page = await Dashboard.open(browser, pageOrigin(world), "/agents");
    await page.signIn(world.organization);
    await page.sees("Buyer");
    await elevate(world);
  });
  after(() => page?.close());

  it("the emergency stop pauses an agent and revokes its key with two clicks", async () => {
    const { id } = buyer;
    await page.walk(`/agents/${id}`);
    await page.press("Emergency stop");
    await page.press("Stop now");
    await page.sees("This agent is paused");
    await page.sees("Create a key");
    const { agent } = await world.api.ok("getAgent", 200, { token: world.token, id });
    expect([agent.state, agent.key]).to.deep.equal(["paused", null]);
  });

  it("the emergency stop of the whole organization is on the overview, with two clicks", async () => {
    const { id } = buyer;
    await world.api.ok("resumeAgent", 200, { token: world.token, id });
    await page.walk("/");
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
    await page.hasNo(value);
  });

  it("a webhook of one agent is added, and nothing but that agent's events goes to it", async () => {
    const { id } = buyer;
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
    await page.page.waitForSelector(`main a[href="/agents/${buyer.id}"]`);
    expect(await page.barriers()).to.deep.equal([]);

    await page.fill("Person", "Backend");
    await page.page.locator('[role="option"] ::-p-text(Backend)').click();
    await page.seesNo("Stopped all agents");
    await page.sees("Tried to create team Refused insufficient scope Backend");
    expect(page.page.url()).to.include("actor=okey_");
    await page.walk("/settings/audit");
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
    await page.sees("[U+202E]WWW");
    await world.api.ok("endOtherSessions", 204, { token: world.token });
    await page.page.evaluate("document.querySelector('a[href=\"/agents\"]').click()");
    await page.sees("Decide what your agents may spend.");
    expect(await page.page.content()).not.to.include("WWW");
    await page.signIn(world.organization);
    await page.sees("Buyer");
    expect(new URL(page.page.url()).pathname).to.equal("/agents");
  });

  it("every page is accessible: axe-core finds nothing serious, and none is wider than a phone", async () => {
    const { id } = buyer;
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
});
