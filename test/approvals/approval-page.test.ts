import { expect } from "chai";
import type { HTTPRequest } from "puppeteer-core";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { ApprovalPage } from "../support/approval-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { join } from "../support/people.ts";
import { someTests } from "../support/soak.ts";
import { gate } from "../workflows/support/doubles.ts";
import { newWorld, type TestAgent, type World } from "../support/world.ts";

const isDecision = (request: HTTPRequest) => /\/(approve|deny)$/.test(new URL(request.url()).pathname);
const isOfApi = (request: HTTPRequest) => new URL(request.url()).pathname.startsWith("/v1/");

/** It does not get to see what happens elsewhere before it sends a decision itself. */
async function blindUntilItDecides(page: ApprovalPage): Promise<void> {
  let isBlind = true;
  await page.intercept(async (request) => {
    if (isDecision(request)) isBlind = false;
    if (isBlind) await request.abort();
    return isBlind;
  });
}

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

  describe("on bad lines", () => {
    // Also after one that failed.
    afterEach(() => page.letPass());

    someTests(3, {
      "a decision that came too late is not repeated: it says what happened instead": async () => {
        const { transactionId } = await held();
        await blindUntilItDecides(page);
        await world.api.ok("cancelPayment", 200, { token: agent.key, id: transactionId });
        await page.press("#approve");
        await page.reads("#outcome", "The agent cancelled the payment");
        expect([await page.isShown("#choice"), page.decisions]).to.deep.equal([false, ["approve"]]);
      },
      "a decision whose answer is lost is read again, and not sent again: it had arrived": async () => {
        const { approvalId, transactionId } = await held();
        await page.intercept(async (request) => {
          if (!isDecision(request)) return false;
          await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
          await request.abort();
          return true;
        });
        await page.press("#approve");
        await page.reads("#outcome", "Approved and paid");
        expect(page.decisions).to.deep.equal(["approve"]);
        expect((await transactionOf(transactionId)).status).to.equal("approved");
      },
      "one refused, or not arrived for sure, is offered again: by a person's act alone it is sent":
        async () => {
          const { transactionId } = await held();
          await page.intercept(async (request) => {
            if (!isDecision(request)) return false;
            const body = JSON.stringify({
              error: "RATE_LIMITED",
              message: "Too many.",
              retry_after_seconds: 30,
            });
            await request.respond({ status: 429, contentType: "application/json", body });
            return true;
          });
          await page.press("#approve");
          await page.reads("#problem", "Too many tries");
          expect(await page.isShown("#approve")).to.equal(true);
          const reading = gate();
          await page.intercept(async (request) => {
            if (!isDecision(request)) {
              if (isOfApi(request)) await reading.opened;
              return false;
            }
            await request.respond({ status: 503, contentType: "application/json", body: "{}" });
            return true;
          });
          await page.press("#approve");
          await page.reads("#outcome", "Checking your decision");
          expect(await page.isShown("#choice")).to.equal(false);
          reading.open();
          await page.reads("#problem", "Your decision has not arrived");
          expect([page.decisions.length, (await transactionOf(transactionId)).status]).to.deep.equal([
            2,
            "pending",
          ]);
          await page.letPass();
          await page.offers("#approve");
          await page.press("#approve");
          await page.reads("#outcome", "Approved and paid");
          expect(await page.text("#problem")).to.equal("");
          expect(page.decisions).to.deep.equal(["approve", "approve", "approve"]);
        },
      "what is approved and not final is followed to its end, also over a bad line": async () => {
        // It settles after 3 s, and the answer waits for almost as long.
        const { transactionId } = await held({ merchant: "sandbox-slow" });
        await page.intercept(async (request) => {
          if (isDecision(request)) return false;
          await request.abort();
          return true;
        });
        await page.press("#approve");
        const title = await page.reads("#outcome-title", "Approved");
        expect(title).to.be.oneOf(["Approved, on its way", "Approved and paid"]);
        await page.letPass();
        await page.reads("#outcome-title", "Approved and paid");
        expect(page.decisions).to.deep.equal(["approve"]);
        expect((await transactionOf(transactionId)).status).to.equal("approved");
      },
      "without a line, or with a 503, it says so, keeps trying, and tries at once when asked to":
        async () => {
          const { approvalId } = await held();
          await page.intercept(async (request) => {
            if (isOfApi(request)) await request.abort();
            return isOfApi(request);
          });
          await page.reads("#trouble-text", "can’t be reached");
          await page.letPass();
          await page.press("#again");
          await page.offersNo("#trouble");

          const down = {
            status: 503,
            contentType: "application/json",
            body: '{"error":"SERVICE_UNAVAILABLE"}',
          };
          await page.intercept(async (request) => {
            if (isOfApi(request)) await request.respond(down);
            return isOfApi(request);
          });
          await page.load(approvalId);
          await page.reads("#trouble-text", "can’t be reached");
          expect(await page.isShown("#sign-in")).to.equal(false);
          await page.letPass();
          await page.offers("#approve");
        },
      "who has signed in and can read nothing is not asked again; who signs out sees nothing more":
        async () => {
          const stranger = await newWorld(world.service);
          const { approvalId } = await agent.hold({ merchant: "Our Shop" });
          await page.visit(approvalId, null);
          await page.offers("#sign-in");
          await page.intercept(async (request) => {
            if (request.method() !== "GET") return false;
            await request.abort();
            return true;
          });
          await page.signIn(world.organization);
          await page.reads("#trouble-text", "can’t be reached");
          expect(await page.isShown("#sign-in")).to.equal(false);
          await page.letPass();
          await page.press("#again");
          await page.offers("#approve");

          await page.intercept(async (request) => {
            if (!request.url().endsWith("/v1/auth/sign-out")) return false;
            await request.respond({ status: 503, contentType: "application/json", body: "{}" });
            return true;
          });
          await page.press("#sign-out");
          await page.reads("#sign-out-problem", "You are still signed in.");
          expect(await page.isShown("#sign-in")).to.equal(false);
          await page.letPass();
          await page.signOut();
          expect(await page.page.content()).not.to.include("Our Shop");

          await page.signIn(stranger.organization);
          await page.reads("#outcome", "Payment not found");
          expect(await page.text("#person")).to.include(stranger.organization.email);
          const text = await page.text("main");
          expect(text).to.include("not complete").and.include("another organization’s");
          expect(text).not.to.include("Our Shop");
          expect([await page.isShown("#payment"), await page.isShown("#choice")]).to.deep.equal([
            false,
            false,
          ]);
          await page.load("apr_x%2f..%2fpending");
          await page.reads("#outcome", "Payment not found");
        },
      "a session that was ended elsewhere decides nothing: sign in, and decide again": async () => {
        const own = await newWorld(world.service);
        const asker = await own.agent({ autoApprovalThresholdCents: 0 });
        const { approvalId, transactionId } = await asker.hold();
        await page.visit(approvalId, own.token);
        await page.offers("#approve");
        await blindUntilItDecides(page);
        const { organizationId } = own.organization;
        const $set = { revokedAt: new Date(), revokedBecause: "signed_out" };
        await world.service.db.collection("sessions").updateMany({ organizationId }, { $set });
        await page.press("#approve");
        await page.reads("#problem", "Your session has ended");
        const payment = await own.api.ok("getPayment", 200, { token: asker.key, id: transactionId });
        expect(payment.transaction.status).to.equal("pending");
        await page.signIn(own.organization);
        await page.offers("#approve");
        await page.press("#approve");
        await page.reads("#outcome", "Approved and paid");
      },
    });
  });
});
