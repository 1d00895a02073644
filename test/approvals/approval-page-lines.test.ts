import { expect } from "chai";
import { cookieNames } from "../../src/contract/cookies.ts";
import type { HTTPRequest } from "puppeteer-core";
import { ApprovalPage, type Interception } from "../support/approval-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { gate } from "../workflows/support/doubles.ts";
import { type Fields, newWorld, type TestAgent, type World } from "../support/world.ts";

const NOBODYS = `apr_${"0".repeat(26)}`;
const isDecision = (request: HTTPRequest) => /\/(approve|deny)$/.test(new URL(request.url()).pathname);
const isOfApi = (request: HTTPRequest) => new URL(request.url()).pathname.startsWith("/v1/");

/** It does not get to see what happens elsewhere before it sends a decision itself. */
function blindUntilItDecides(page: ApprovalPage): void {
  page.intercept = async (request) => {
    if (isDecision(request)) page.intercept = () => false;
    else await request.abort();
    return !isDecision(request);
  };
}

/** What goes wrong on the way between the page and the service, and what time does. */
describe("the page of a payment on hold, on bad lines and in time", function () {
  let world: World;
  let agent: TestAgent;
  /** Each test loads it anew, on a good line. */
  let page: ApprovalPage;

  before(async function () {
    const browser = await chromiumOrPending(this);
    world = await newWorld();
    agent = await world.agent({ autoApprovalThresholdCents: 0 });
    page = await ApprovalPage.on(browser, world.service.baseUrl, "intercepts");
  });
  afterEach(() => page.check());
  after(() => page?.close());

  /** Loads the page of a new payment on hold, its owner signed in. */
  async function held(fields: Fields = {}, intercept: Interception = () => false) {
    const hold = await agent.hold(fields);
    page.intercept = intercept;
    await page.visit(hold.approvalId, world.token);
    await page.offers("#approve");
    return hold;
  }

  const statusOf = async (id: string) =>
    (await world.api.ok("getPayment", 200, { token: agent.key, id })).transaction.status;

  it("a decision that came too late is not repeated: it says who decided what instead", async () => {
    const { approvalId } = await held();
    blindUntilItDecides(page);
    const body = { feedback: "First." };
    await world.api.ok("denyApproval", 200, { token: world.token, id: approvalId, body });
    await page.press("#approve");
    await page.reads("#outcome", "Denied by you");
    expect(page.decisions).to.deep.equal(["approve"]);
  });

  it("a decision whose answer is lost is read again, and not sent again: it had arrived", async () => {
    const { approvalId, transactionId } = await held();
    page.intercept = async (request) => {
      if (!isDecision(request)) return false;
      await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
      await request.abort();
      return true;
    };
    await page.press("#approve");
    await page.reads("#outcome", "Approved and paid");
    expect(page.decisions).to.deep.equal(["approve"]);
    expect(await statusOf(transactionId)).to.equal("approved");
  });

  it("one that has not arrived is offered again only once that is known, and by a person's act", async () => {
    const { transactionId } = await held();
    const reading = gate();
    page.intercept = async (request) => {
      if (!isDecision(request)) {
        if (isOfApi(request)) await reading.opened;
        return false;
      }
      await request.respond({ status: 503, contentType: "application/json", body: "{}" });
      return true;
    };
    await page.press("#approve");
    await page.reads("#outcome", "Checking your decision");
    expect(await page.isShown("#choice")).to.equal(false);
    reading.open();
    await page.reads("#problem", "Your decision has not arrived");
    expect([page.decisions.length, await statusOf(transactionId)]).to.deep.equal([1, "pending"]);
    page.intercept = () => false;
    await page.offers("#approve");
    await page.press("#approve");
    await page.reads("#outcome", "Approved and paid");
    expect(await page.text("#problem")).to.equal("");
    expect(page.decisions).to.deep.equal(["approve", "approve"]);
  });

  it("a refusal is said, and no reason to look for its effect: the decision is offered again", async () => {
    await held();
    page.intercept = async (request) => {
      if (!isDecision(request)) return false;
      const body = JSON.stringify({ error: "RATE_LIMITED", message: "Too many.", retry_after_seconds: 30 });
      await request.respond({ status: 429, contentType: "application/json", body });
      return true;
    };
    await page.press("#approve");
    await page.reads("#problem", "Too many tries");
    expect(await page.isShown("#approve")).to.equal(true);
  });

  it("what is approved and not final is followed to its end, also over a bad line", async () => {
    // It settles after 3 s, and the answer waits for almost as long.
    const { transactionId } = await held({ merchant: "sandbox-slow" });
    page.intercept = async (request) => {
      if (isDecision(request)) return false;
      await request.abort();
      return true;
    };
    await page.press("#approve");
    const title = await page.reads("#outcome-title", "Approved");
    expect(title).to.be.oneOf(["Approved, on its way", "Approved and paid"]);
    page.intercept = () => false;
    await page.reads("#outcome-title", "Approved and paid");
    expect(page.decisions).to.deep.equal(["approve"]);
    expect(await statusOf(transactionId)).to.equal("approved");
  });

  it("without a line, or with a 503, it says so, keeps trying, and tries at once when asked to", async () => {
    const { approvalId } = await held();
    page.intercept = async (request) => {
      if (isOfApi(request)) await request.abort();
      return isOfApi(request);
    };
    await page.reads("#trouble-text", "can’t be reached");
    page.intercept = () => false;
    await page.press("#again");
    await page.offersNo("#trouble");

    const down = { status: 503, contentType: "application/json", body: '{"error":"SERVICE_UNAVAILABLE"}' };
    page.intercept = async (request) => {
      if (isOfApi(request)) await request.respond(down);
      return isOfApi(request);
    };
    await page.load(approvalId);
    await page.reads("#trouble-text", "can’t be reached");
    expect(await page.isShown("#sign-in")).to.equal(false);
    page.intercept = () => false;
    await page.offers("#approve");
  });

  it("a user who has signed in and can read nothing yet is not asked to sign in again", async () => {
    const { approvalId } = await agent.hold();
    page.intercept = () => false;
    await page.visit(approvalId, null);
    await page.offers("#sign-in");
    page.intercept = async (request) => {
      if (request.method() !== "GET") return false;
      await request.abort();
      return true;
    };
    await page.signIn(world.organization);
    await page.reads("#trouble-text", "can’t be reached");
    expect(await page.isShown("#sign-in")).to.equal(false);
    page.intercept = () => false;
    await page.press("#again");
    await page.offers("#approve");
  });

  it("a user who could not be signed out is told so, is still signed in, and can try again", async () => {
    const { approvalId } = await agent.hold();
    const { email, password } = world.organization;
    page.intercept = async (request) => {
      if (!request.url().endsWith("/v1/auth/sign-out")) return false;
      await request.respond({ status: 503, contentType: "application/json", body: "{}" });
      return true;
    };
    await page.visit(approvalId, await world.service.api.signIn(email, password));
    // Once nothing moves it any more.
    await page.offers("#approve");
    await page.press("#sign-out");
    await page.reads("#sign-out-problem", "You are still signed in.");
    expect(await page.isShown("#sign-in")).to.equal(false);
    page.intercept = () => false;
    await page.press("#sign-out");
    await page.offers("#sign-in");
  });

  it("an expired token is refreshed without a word by two pages at once, and both stay signed in", async () => {
    const { approvalId } = await agent.hold();
    page.intercept = () => false;
    await page.visit(approvalId, null);
    // By itself, so that it has what refreshes.
    await page.signIn(world.organization);
    await page.offers("#approve");
    const context = page.page.browserContext();
    const other = await ApprovalPage.on(context, world.service.baseUrl, "intercepts");
    await other.load(approvalId);
    await other.offers("#approve");
    const { session } = cookieNames(world.service.baseUrl);
    await context.deleteCookie(...(await context.cookies()).filter(({ name }) => name === session));
    await Promise.all([page.page.reload(), other.page.reload()]);
    for (const one of [page, other]) {
      await one.page.bringToFront();
      await one.offers("#approve");
      expect(await one.isShown("#sign-in")).to.equal(false);
    }
    await other.press("#approve");
    await other.reads("#outcome", "Approved and paid");
    other.check();
    await other.page.close();
    await page.page.bringToFront();
  });

  it("a session that was ended elsewhere decides nothing: sign in, and decide again", async () => {
    const own = await newWorld(world.service);
    const asker = await own.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await asker.hold();
    page.intercept = () => false;
    await page.visit(approvalId, own.token);
    await page.offers("#approve");
    blindUntilItDecides(page);
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
  });

  describe("and its time", () => {
    const WINDOW_SECONDS = 5;
    let service: TestService;
    before(async () => {
      service = await startTestService({ approvalWindowSeconds: WINDOW_SECONDS, evmRpcUrl: null });
    });
    after(() => service.stop());

    it("runs out before the reader's eyes: expired, and nothing is offered any more", async () => {
      const own = await newWorld(service);
      const asker = await own.agent({ autoApprovalThresholdCents: 0 });
      const brief = await ApprovalPage.on(page.page.browserContext(), service.baseUrl);
      // It is loaded before, so that the time is not over by then on a busy machine.
      await brief.visit(NOBODYS, own.token);
      await brief.reads("#outcome", "Payment not found");
      const { approvalId } = await asker.hold();
      await brief.load(approvalId);
      await brief.reads("#outcome-title", "Expired");
      expect(await brief.text("#outcome")).to.include("Nobody decided in time");
      expect([await brief.isShown("#choice"), await brief.text("#left")]).to.deep.equal([false, ""]);
      brief.check();
    });
  });
});
