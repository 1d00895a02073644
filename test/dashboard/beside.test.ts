import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { CDPSession } from "puppeteer-core";
import { operations } from "../../src/contract/registry.ts";
import { McpCaller } from "../mcp/support.ts";
import { clickOn } from "../support/browser-page.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { Dashboard } from "../support/dashboard.ts";
import { pageOrigin } from "../support/passkeys.ts";
import { askRaise } from "../support/raises.ts";
import { elevate, type TestAgent, until, type World } from "../support/world.ts";
import { deliveredTo, endpointAt, openScene, type Scene, worldIn } from "../webhooks/support.ts";

/** Time enough to decide in, on a busy machine too, and short enough to wait for its end. */
const WINDOW_SECONDS = 20;
/** Longer than a person takes here: the client's call is answered by their decision. */
const WAIT_SECONDS = 45;

interface Download {
  readonly suggestedFilename: string;
  /** Its name in the folder. */
  readonly guid: string;
}

/** The next file that the browser has downloaded, whole. */
async function nextDownload(cdp: CDPSession): Promise<Download> {
  const began = new Promise<Download>((resolve) => cdp.once("Browser.downloadWillBegin", resolve));
  return await new Promise((resolve) =>
    cdp.on("Browser.downloadProgress", ({ state }) => {
      if (state === "completed") resolve(began);
    }),
  );
}

/** The dashboard beside what it has to do with: an agent's client that waits, a receiver, a folder, the clock. */
describe("the dashboard and the world beside it, in a browser", function () {
  let scene: Scene;
  let world: World;
  let agent: TestAgent;
  let page: Dashboard;

  before(async function () {
    const browser = await chromiumOrPending(this);
    scene = await openScene(undefined, {}, { approvalWindowSeconds: WINDOW_SECONDS, evmRpcUrl: null });
    world = await worldIn(scene);
    agent = await world.agent({ autoApprovalThresholdCents: 500 });
    page = await Dashboard.open(browser, pageOrigin(world));
    await page.visit("/approvals", world.token);
  });
  afterEach(() => page.check());
  after(async () => {
    await page?.close();
    await scene?.close();
  });

  const expectNoBarriers = async (): Promise<void> => {
    expect(await page.barriers()).to.deep.equal([]);
  };

  it("an agent's call over MCP waits while a person approves in the inbox, and is answered by it", async () => {
    await page.go("/approvals");
    await page.sees("Nothing waits for approval");
    const mcp = await McpCaller.connect(scene.service.baseUrl, agent.key);
    let isAnswered = false;
    const call = mcp
      .okAtOnce(operations.createCardPayment.output, "create_card_payment", {
        amountCents: 900,
        merchant: "Waiting Shop",
        purpose: "a test",
        idempotencyKey: randomUUID(),
        waitSeconds: WAIT_SECONDS,
      })
      .finally(() => (isAnswered = true));
    // It comes by itself.
    await page.sees("Approve $9.00");
    expect(isAnswered).to.equal(false);
    await page.press("Approve $9.00");
    const { transaction } = await call;
    expect(transaction.status).to.equal("approved");
    await page.sees("Nothing waits for approval");
    await mcp.close();
  });

  it("a raise appears in the inbox by itself, and is granted there, or refused with a reason", async () => {
    const { token } = world;
    const raised = await world.agent({
      name: "Raised",
      spendLimits: [{ period: "month", limitCents: 100 }],
    });
    await elevate(world);
    const read = async (id: string) =>
      (await world.api.ok("getRaiseRequest", 200, { token, id })).raiseRequest;
    const first = await askRaise(world, raised, { amountCents: 500, reason: "Twenty more seats" });
    await page.sees("Raised asks for room for $5.00");
    await page.sees("The agent’s limit by month: $4.00 more than $1.00");
    await expectNoBarriers();
    await page.press("Raise the limits");
    await until("it is granted", async () => (await read(first)).status === "granted" || null);
    const second = await askRaise(world, raised, { amountCents: 9_000, reason: "A whole floor" });
    await page.sees("A whole floor");
    await page.press("Refuse");
    await page.press("Too expensive: look for a cheaper offer.");
    await clickOn(page.page, '::-p-xpath(//*[@role="dialog"]//button[@type="submit"])');
    await until("it is refused", async () => (await read(second)).status === "refused" || null);
    expect((await read(second)).feedback).to.include("cheaper offer");
    await page.go(`/agents/${raised.id}`);
    await page.press("Policy", "tab");
    await page.sees("$4.00 more until");
  });

  it("a raise asked for after the inbox was read, and before its stream begins, appears", async () => {
    // The page opens the stream itself: requests of a worker can't be held back.
    const { identifier } = await page.page.evaluateOnNewDocument("delete globalThis.SharedWorker");
    const stream = await page.holdBack(/\/stream$/);
    const read = page.page.waitForResponse((response) => response.url().includes("/v1/raise-requests"));
    await page.go("/approvals");
    await read;
    await askRaise(world, agent, { reason: "Between two looks" });
    await stream.release();
    await page.sees("Between two looks");
    await page.page.removeScriptToEvaluateOnNewDocument(identifier);
  });

  it("a test event is sent from a webhook's page: it arrives signed, and the page shows it", async () => {
    const { id, secret } = await endpointAt(world, scene.receiver, "/tested", {
      eventTypes: ["agent.created"],
    });
    await page.go(`/settings/webhooks/${id}`);
    await page.sees("No deliveries yet");
    await page.press("Send a test");
    await page.sees("Answered 204");
    const delivered = deliveredTo(scene.receiver, "/tested", secret);
    expect(delivered.map(({ type }) => type)).to.deep.equal(["agent.created"]);
    expect(await page.sees("(test)")).to.match(/agent\.created dlv_\w+ \(test\) succeeded 204/i);
    await expectNoBarriers();
  });

  it("the transactions are downloaded as CSV from their page, by the user who is signed in there", async () => {
    await agent.pay({ merchant: "Shop of the file" });
    const folder = await mkdtemp(join(tmpdir(), "downloads-"));
    const cdp = await page.page.createCDPSession();
    const browserContextId = page.page.browserContext().id;
    if (browserContextId === undefined) throw new Error("the page has a context of its own");
    const options = { browserContextId, downloadPath: folder, eventsEnabled: true };
    await cdp.send("Browser.setDownloadBehavior", { behavior: "allowAndName", ...options });
    await page.go("/transactions");
    await page.sees("Shop of the file");
    const download = nextDownload(cdp);
    await page.press("Export CSV", "link");
    const { guid, suggestedFilename } = await download;
    expect(suggestedFilename).to.match(/\.csv$/);
    const csv = await readFile(join(folder, guid), "utf8");
    expect(csv).to.include("Shop of the file").and.include("Waiting Shop");
    expect(csv.trim().split("\n")).to.have.lengthOf(3);
    await cdp.detach();
    await rm(folder, { recursive: true });
  });

  it("a payment's drawer and the page of a hold are accessible", async () => {
    const { transaction } = await agent.pay();
    await page.go(`/transactions?open=${transaction.id}`);
    await page.page.waitForSelector('[role="dialog"]');
    await page.waitFor("document.querySelector('.mantine-Skeleton-root') === null");
    await expectNoBarriers();
    const { approvalId } = await agent.hold({ amountCents: 600 });
    await page.go(`/approvals/${approvalId}`);
    await page.sees("Approve $6.00");
    await expectNoBarriers();
    await world.api.ok("approveApproval", 200, { token: world.token, id: approvalId });
  });

  it("a hold that is undecided in time leaves the inbox by itself", async () => {
    await page.go("/approvals");
    await page.sees("Nothing waits for approval");
    const { transactionId } = await agent.hold({ amountCents: 700 });
    await page.sees("Approve $7.00");
    await page.page.evaluate("globalThis.isNotReloaded = true");
    await page.sees("Nothing waits for approval");
    expect(await page.page.evaluate("globalThis.isNotReloaded")).to.equal(true);
    const read = await world.api.ok("getPayment", 200, { token: agent.key, id: transactionId });
    expect(read.transaction.status).to.equal("expired");
  });
});
