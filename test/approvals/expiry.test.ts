import { expect } from "chai";
import { ApprovalPage } from "../support/approval-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { booksOnceAgreed } from "../support/books.ts";
import { newWorld, until, type World } from "../support/world.ts";

const NOBODYS = `apr_${"0".repeat(26)}`;
/** A page is loaded within it. */
const WINDOW_SECONDS = 4;

describe("undecided approvals", () => {
  let service: TestService;
  let world: World;
  before(async () => {
    service = await startTestService({ approvalWindowSeconds: WINDOW_SECONDS });
    world = await newWorld(service);
  });
  after(() => service.stop());

  it("expire at the window's end: released, without a resolver, then refused as APPROVAL_EXPIRED", async () => {
    const agent = await world.agent({ autoApprovalThresholdCents: 0 });
    const { approvalId, transactionId } = await agent.hold();
    const read = () => world.api.ok("getPayment", 200, { token: agent.key, id: transactionId });
    const { approval, transaction } = await until("the approval expires", async () => {
      const payment = await read();
      return payment.transaction.status === "pending" ? null : payment;
    });
    expect([transaction.status, transaction.denialCode]).to.deep.equal(["expired", "APPROVAL_EXPIRED"]);
    expect(approval).to.deep.include({ resolution: "expired", resolvedBy: null, feedback: null });
    const created = Date.parse(approval?.createdAt ?? "");
    expect(Date.parse(approval?.expiresAt ?? "") - created).to.equal(WINDOW_SECONDS * 1_000);
    expect(Date.parse(approval?.resolvedAt ?? "") - created).to.be.at.least(WINDOW_SECONDS * 1_000);

    const decision = { token: world.token, id: approvalId };
    await world.api.refused("approveApproval", 409, "APPROVAL_EXPIRED", decision);
    const body = { feedback: "late" };
    await world.api.refused("denyApproval", 409, "APPROVAL_EXPIRED", { ...decision, body });
    const cancel = { token: agent.key, id: transactionId };
    await world.api.refused("cancelPayment", 409, "PAYMENT_NOT_CANCELLABLE", cancel);
    const query = { agent_id: agent.id };
    const completed = await world.api.ok("listCompletedApprovals", 200, { token: world.token, query });
    expect(completed.approvals.map(({ resolution }) => resolution)).to.deep.equal(["expired"]);
    expect(await booksOnceAgreed(world, agent)).to.deep.include({ entries: 0, reservedCents: 0 });

    const audited = { token: world.token, query: { resource: transactionId } };
    const { entries } = await world.api.ok("listAuditLog", 200, audited);
    expect(entries.map(({ action, actor, result }) => [action, actor.type, result.code])).to.deep.equal([
      ["resolvePayment", "system", "APPROVAL_EXPIRED"],
      ["decidePayment", "agent", null],
    ]);
  });

  describe("on their page, in a browser", () => {
    let page: ApprovalPage;
    before(async function () {
      page = await ApprovalPage.on(await chromiumOrPending(this), service.baseUrl);
    });
    after(() => page?.close());

    it("run out before the reader's eyes: expired, and nothing is offered any more", async () => {
      const agent = await world.agent({ autoApprovalThresholdCents: 0 });
      // It is loaded before, so that the time is not over by then on a busy machine.
      await page.visit(NOBODYS, world.token);
      await page.reads("#outcome", "Payment not found");
      const { approvalId } = await agent.hold();
      await page.load(approvalId);
      await page.reads("#outcome-title", "Expired");
      expect(await page.text("#outcome")).to.include("Nobody decided in time");
      expect([await page.isShown("#choice"), await page.text("#left")]).to.deep.equal([false, ""]);
    });
  });
});
