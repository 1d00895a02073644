import { expect } from "chai";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { ApprovalPage } from "../support/approval-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { join } from "../support/people.ts";
import { TotpCodes } from "../support/totp.ts";
import { newWorld, type TestAgent, type World } from "../support/world.ts";

const NOBODYS = `apr_${"0".repeat(26)}`;

/** As a person decides: in real Chromium, on the real service, without its API wherever the page is enough. */
describe("the page of a payment on hold, in a browser", function () {
  let world: World;
  let agent: TestAgent;
  /** Each test loads it anew, as whom it says. */
  let page: ApprovalPage;

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld();
    agent = await world.agent({ name: "Shopper", autoApprovalThresholdCents: 0 });
    page = await ApprovalPage.on(browser, world.service.baseUrl);
  });
  afterEach(() => page.check());
  after(() => page?.close());

  /** Loads the page of a new payment on hold, its owner signed in. */
  async function held(fields: object = {}) {
    const hold = await agent.hold({ amountCents: 250, ...fields });
    await page.visit(hold.approvalId, world.token);
    await page.offers("#approve");
    return hold;
  }

  const transactionOf = async (id: string) =>
    (await world.api.ok("getPayment", 200, { token: agent.key, id })).transaction;

  it("shows all that there is to decide by, and approves once: the agent reads approved", async () => {
    const asked = { amountCents: 250, merchant: "Conference Inc", purpose: "A ticket" };
    const { transactionId } = await held(asked);
    expect(await page.text("#amount")).to.equal("$2.50");
    const shown = await page.text("#payment");
    for (const text of ["Conference Inc (by card)", "Shopper", "A ticket", "may pay without asking"]) {
      expect(shown).to.include(text);
    }
    await page.reads("#budget", "The agent’s budget$2.50 of $100.00");
    for (const level of ["The team", "The project"])
      await page.reads("#budget", `${level}$2.50 used, no cap`);
    expect(await page.text("#left")).to.match(/^(?:24 h 0|23 h 5\d) min left$/);
    expect(await page.text("#person")).to.include(world.organization.email);
    expect(await page.text("#approve")).to.equal("Approve $2.50");

    await page.press("#approve");
    await page.reads("#outcome", "Approved and paid");
    expect(await page.text("#outcome")).to.include("Approved by you");
    expect([await page.isShown("#choice"), await page.focused()]).to.deep.equal([false, "outcome"]);
    expect(page.decisions).to.deep.equal(["approve"]);
    expect((await transactionOf(transactionId)).status).to.equal("approved");
  });

  it("denies only with 1 to 1,000 characters of feedback, which get_denial_feedback answers", async () => {
    const { transactionId } = await held();
    await page.press("#deny");
    await page.offers("#denial");
    const send = () => page.press("#denial button[type=submit]");
    await send();
    await page.reads("#feedback-problem", "Say why");
    await page.page.keyboard.sendCharacter("x".repeat(1_001));
    await send();
    await page.reads("#feedback-problem", "too long");
    expect(await page.text("#feedback-count")).to.equal("1,001 of 1,000 characters");
    expect(page.decisions).to.deep.equal([]);

    await page.fill("#feedback", "We have <b>two</b>.");
    await page.press(".reason");
    await send();
    const feedback = "We have <b>two</b>.\nToo expensive: look for a cheaper offer.";
    await page.reads("#outcome-title", "Denied");
    expect(await page.page.$eval("#outcome-feedback", ({ textContent }) => textContent)).to.equal(feedback);
    expect(page.decisions).to.deep.equal(["deny"]);
    const mcp = await McpCaller.connect(world.service.baseUrl, agent.key);
    const { output } = operations.getDenialFeedback;
    const { denials } = await mcp.ok(output, "get_denial_feedback", { transactionId });
    await mcp.close();
    expect(denials.map((denial) => denial.feedback)).to.deep.equal([feedback]);
  });

  it("moves by itself when another user decides, and says who and what", async () => {
    const { approvalId } = await held();
    const admin = await join(world, "admin");
    const body = { feedback: "Not this one." };
    await world.api.ok("denyApproval", 200, { token: admin.token, id: approvalId, body });
    await page.reads("#outcome", "Denied by The admin");
    expect(await page.text("#outcome-feedback")).to.equal("Not this one.");
    expect([await page.isShown("#choice"), page.decisions.length]).to.deep.equal([false, 0]);
  });

  it("of a payment that its agent cancelled, says so, and offers nothing", async () => {
    const { approvalId, transactionId } = await agent.hold();
    await world.api.ok("cancelPayment", 200, { token: agent.key, id: transactionId });
    await page.visit(approvalId, world.token);
    await page.reads("#outcome", "The agent cancelled the payment");
    expect(await page.isShown("#choice")).to.equal(false);
  });

  it("warns that a paused agent's payment fails when it is approved, and then says that it did", async () => {
    const own = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId } = await own.hold();
    await world.api.ok("pauseAgent", 200, { token: world.token, id: own.id });
    await page.visit(approvalId, world.token);
    await page.reads("#warning", "paused");
    await page.press("#approve");
    await page.reads("#outcome", "Approved, but not paid");
    const [{ denialReason } = { denialReason: null }] = (
      await world.api.ok("listTransactions", 200, { token: world.token, query: { agent_id: own.id } })
    ).transactions;
    expect(denialReason).to.be.a("string");
    await page.reads("#outcome-text", denialReason ?? "");
  });

  it("of another organization's payment, and of none, says both and shows nothing of it", async () => {
    const stranger = await newWorld(world.service);
    const theirs = await stranger.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId } = await theirs.hold({ merchant: "Their Shop" });
    for (const id of [approvalId, NOBODYS, "pending", "apr_x%2f..%2fpending"]) {
      await page.visit(id, world.token);
      await page.reads("#outcome", "Payment not found");
      const text = await page.text("main");
      expect(text).to.include("not complete").and.include("another organization’s");
      expect(text).not.to.include("Their Shop");
      expect([await page.isShown("#payment"), await page.isShown("#choice")]).to.deep.equal([false, false]);
    }
  });

  it("signs out, and takes what it showed away; then another person can sign in", async () => {
    const stranger = await newWorld(world.service);
    const { approvalId } = await agent.hold({ merchant: "Our Shop" });
    const { email, password } = world.organization;
    await page.visit(approvalId, await world.service.api.signIn(email, password));
    await page.reads("#payment", "Our Shop");
    await page.signOut();
    expect(await page.page.content()).not.to.include("Our Shop");
    await page.signIn(stranger.organization);
    await page.reads("#outcome", "Payment not found");
    expect(await page.text("#person")).to.include(stranger.organization.email);
  });

  it("a wrong password is said, does not sign in, and can be typed again", async () => {
    const { approvalId } = await agent.hold();
    await page.visit(approvalId, null);
    await page.signIn({ ...world.organization, password: "wrong" });
    await page.reads("#problem", "The e-mail or the password is wrong.");
    expect([await page.isShown("#sign-in"), await page.focused()]).to.deep.equal([true, "problem"]);
    expect(page.page.url()).to.equal(`${world.service.baseUrl}/approvals/${approvalId}`);
    await page.signIn(world.organization);
    await page.offers("#approve");
    expect(await page.text("#problem")).to.equal("");
  });

  it("asks for six digits where the account has a second factor, after the password alone", async () => {
    const own = await newWorld(world.service);
    const { secret } = await own.api.ok("enrollTotp", 201, { token: own.token });
    const codes = new TotpCodes(secret);
    await own.api.ok("confirmTotp", 200, { token: own.token, body: { code: await codes.next() } });
    await page.visit(NOBODYS, null);
    await page.signIn(own.organization);
    // The sixth digit sends the code.
    const type = async (code: string): Promise<void> => {
      await page.press('::-p-aria([name="Digit 1"])');
      await page.page.keyboard.type(code);
    };
    const right = await codes.next();
    await type(right === "000000" ? "000001" : "000000");
    await page.reads("#problem", "The code is wrong");
    await type(right);
    await page.reads("#person", own.organization.email);
  });

  it("can be used by keyboard alone, the focus going where something has happened", async () => {
    const { approvalId, transactionId } = await agent.hold();
    await page.visit(approvalId, null);
    const { keyboard } = page.page;
    await page.offers("#sign-in");
    const visited: string[] = [];
    const tab = async () => {
      await keyboard.press("Tab");
      visited.push(await page.focused());
    };
    await tab();
    await keyboard.sendCharacter(world.organization.email);
    await tab();
    await keyboard.sendCharacter(world.organization.password);
    await keyboard.press("Enter");
    await page.offers("#choice");
    await page.page.waitForSelector("#payment:focus");
    await tab();
    await tab();
    await keyboard.press("Enter");
    visited.push(await page.focused());
    await keyboard.sendCharacter("By keyboard.");
    await keyboard.press("Tab");
    await keyboard.press("Enter");
    await page.reads("#outcome-title", "Denied");
    visited.push(await page.focused());
    expect(visited).to.deep.equal(["email", "password", "approve", "deny", "feedback", "outcome"]);
    expect((await transactionOf(transactionId)).denialCode).to.equal("APPROVAL_DENIED");
  });

  it("an agent's words are text, turn no letters around, and fit a phone, however long", async () => {
    const merchant = `<img src=x onerror=alert(1)>\u202e${"W".repeat(150)}`;
    await held({ merchant, purpose: `<script>alert(1)</script> ${"x".repeat(400)}` });
    expect(await page.text("#recipient")).to.equal(merchant.replace("\u202e", "[U+202E]"));
    expect(await page.page.$$("#payment img, #payment script")).to.deep.equal([]);
    // By now it is one of a phone.
    await page.page.setViewport({ width: 320, height: 640, isMobile: true, hasTouch: true });
    await page.offers("#approve");
    const wide = await page.page.$eval("html", ({ clientWidth, scrollWidth }) => scrollWidth - clientWidth);
    expect(wide).to.equal(0);
    const heights = await page.page.$$eval("button", (buttons) =>
      buttons.filter((button) => button.checkVisibility()).map(({ offsetHeight }) => offsetHeight),
    );
    expect(Math.min(...heights)).to.be.at.least(44);
    await page.page.tap("#approve");
    await page.reads("#outcome", "Approved and paid");
  });
});
