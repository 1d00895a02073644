import { expect } from "chai";
import { mintKey } from "../authorization/scene.ts";
import { clickOn } from "../support/browser-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { restricting } from "../support/restrictions.ts";
import { sharedService } from "../support/service.ts";
import { TotpCodes } from "../support/totp.ts";
import { elevate, newWorld, type TestAgent, until, type World } from "../support/world.ts";

/** Forms that change what agents may do, in real Chromium, on the real service: one test after another, in one session. */
describe("policies and rules in the dashboard, in a browser", function () {
  let world: World;
  let page: Dashboard;
  let codes: TotpCodes;
  let buyer: TestAgent;

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld(sharedService());
    buyer = await world.agent({ name: "Buyer" });
    page = await Dashboard.open(browser, pageOrigin(world), "/settings/security");
    await page.signIn(world.organization);
    await page.press("Enrol");
    await page.page.waitForSelector("#totp-secret");
    const secret = await page.page.$eval("#totp-secret", ({ textContent }) => textContent ?? "");
    codes = new TotpCodes(secret);
    await page.code(await codes.next());
    await page.sees("Enabled");
  });
  after(() => page?.close());

  it("a policy is saved after a step-up; another user's change is shown as a choice", async () => {
    const { id } = buyer;
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

  it("what is typed while a policy is being saved is kept, as the next change", async () => {
    const { id } = buyer;
    const saved = async (expected: object) => {
      await until(`saved: ${JSON.stringify(expected)}`, async () => {
        const policy = await world.api.ok("getAgentBudgetPolicy", 200, { token: world.token, id });
        return Object.entries(expected).every(([name, value]) => Reflect.get(policy, name) === value)
          ? true
          : null;
      });
    };
    await page.fill("Limit per payment", "60");
    const answer = await page.holdBack(/\/budget-policy$/);
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
    const answer = await page.holdBack(/\/approval-rules$/);
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
    await page.seesNo("above $45.00");
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
    await page.walk(`/teams/${world.organization.teamId}`);
    await page.press("Add a rule");
    await page.press("Time of day", "menuitem");
    await page.sees("(Pacific/Auckland)");
  });

  it("what is typed into an open budget or form undoes nothing that was changed elsewhere", async () => {
    const { organization, token } = world;
    const id = organization.teamId;
    const backend = await mintKey(world, ["agents:write"]);
    const read = () => world.api.ok("getAgentBudgetPolicy", 200, { token, id: buyer.id });
    const { budgetCents, version } = await read();
    const lowered = { budgetCents: budgetCents - 1, version };
    await page.go(`/teams/${id}`);
    await page.fill("Cap", "500");
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: backend, id: buyer.id, body: lowered });
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
    await page.walk(`/agents/${agent.id}`);
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
    await page.walk(`/projects/${projectId}`);
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
      await page.walk(path);
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
