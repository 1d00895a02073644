import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { promisify } from "node:util";
import proto from "@temporalio/proto";
import { expect } from "chai";
import { z } from "zod";
import { cookieNames } from "../../src/contract/cookies.ts";
import { TemporalCalls } from "../../src/actors/calls.ts";
import { TemporalDeliveryKeys } from "../../src/actors/delivery-keys.ts";
import { REASONS } from "../../src/lib/guarded-fetch/reasons.ts";
import { approvalWorkflowId } from "../../src/messages/approval.ts";
import { ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { SETTLES_SLOWLY } from "../../src/rails/card/merchants.ts";
import { engineEnvironment } from "../engines/support/binaries.ts";
import { toBase64 } from "../replay/histories.ts";
import { chromiumOrPending } from "../support/chromium.ts";
import { freshRecipient, fundedAgent, payFromWallet, walletPayment } from "../support/chain.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { send } from "../support/wire.ts";
import { demote, newEndpoint, newWorld, until, type World } from "../support/world.ts";

const TOKEN = "a-codec-token-of-the-tests-1234567890";
const UI = "https://temporal.example.com";
const PATH = "/codec/decode";
const NAME = "Perdita Oakes";
const [MERCHANT, PURPOSE, FEEDBACK] = ["Obsidian Florists", "Peonies for Titania", "Too many peonies"];
const [HELD_CENTS, WALLET_CENTS] = [87_654_321, 4_567];
/** Types of the workflows that the scene is certain to start. */
const TYPES = ["agent", "agentDeliveryKey", "approval", "delivery", "ledger", "settlement"];

const run = promisify(execFile);
const { History } = proto.temporal.api.history.v1;
const { DescribeWorkflowExecutionResponse } = proto.temporal.api.workflowservice.v1;

const textIn = (body: unknown): string => {
  const [payload] = Object(body).payloads ?? [];
  return Buffer.from(String(Object(payload).data), "base64").toString();
};

interface Pages {
  readonly origin: string;
  close(): Promise<void>;
}

/** An origin with an empty page. */
async function openPages(): Promise<Pages> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>A page</title>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return {
    origin: `http://127.0.0.1:${String(port)}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("payloads that are encrypted in Temporal", () => {
  let service: TestService;
  let world: World;
  let approvalId = "";
  let uiPages: Pages;
  let otherPages: Pages;
  const secrets: string[] = [];

  before(async () => {
    [uiPages, otherPages] = await Promise.all([openPages(), openPages()]);
    service = await startTestService({
      settings: {
        TEMPORAL_PAYLOAD_ENCRYPTION: "true",
        TEMPORAL_CODEC_TOKEN: TOKEN,
        TEMPORAL_CODEC_ORIGINS: `${UI},${uiPages.origin}`,
      },
    });
    world = await newWorld(service);
    await newEndpoint(world, { name: "Endpoint", eventTypes: ["*"] });
    const agent = await world.agent({ name: NAME, budgetCents: 300_000_000, autoApprovalThresholdCents: 0 });
    const order = { merchant: MERCHANT, purpose: PURPOSE, amountCents: HELD_CENTS };
    const denied = await agent.hold(order);
    ({ approvalId } = await agent.hold(order));
    const { token } = world;
    await world.api.ok("approveApproval", 200, { token, id: approvalId });
    await world.api.ok("denyApproval", 200, { token, id: denied.approvalId, body: { feedback: FEEDBACK } });
    const slow = await world.agent({ name: NAME });
    await slow.pay({ merchant: SETTLES_SLOWLY, purpose: PURPOSE });
    const deliveryKeys = new TemporalDeliveryKeys(
      new TemporalCalls(service.connections.temporal, service.connections.addresses.taskQueue),
    );
    secrets.push(slow.key, (await deliveryKeys.obtain(slow.id)).toString("base64url"));
    const payer = await fundedAgent(world, 10_000);
    const recipient = freshRecipient();
    await payFromWallet(world, payer, walletPayment(recipient, { amountCents: WALLET_CENTS }));
    secrets.push(agent.key, payer.key, recipient, recipient.toLowerCase());
    secrets.push(NAME, MERCHANT, PURPOSE, FEEDBACK, String(HELD_CENTS), "876,543.21", "876543.21");
    // Nobody listens at the endpoint.
    secrets.push(REASONS.refused);
  });
  after(async () => {
    await service.stop();
    await Promise.all([uiPages.close(), otherPages.close()]);
  });

  const workflows = () => service.connections.temporal.workflow;

  /** Every event of every workflow of the service, its memo and its activities' last failures, as Temporal has them. */
  async function histories(): Promise<ReadonlyMap<string, Buffer> | null> {
    const found = new Map<string, Buffer>();
    let isFailing = false;
    const query = `TaskQueue = "${service.connections.addresses.taskQueue}"`;
    for await (const { runId, type, workflowId } of workflows().list({ query })) {
      const handle = workflows().getHandle(workflowId, runId);
      const { raw } = await handle.describe();
      isFailing ||= raw.pendingActivities?.some(({ lastFailure }) => lastFailure) ?? false;
      const parts = [
        History.encode(History.fromObject(await handle.fetchHistory())).finish(),
        DescribeWorkflowExecutionResponse.encode(DescribeWorkflowExecutionResponse.fromObject(raw)).finish(),
      ];
      found.set(type, Buffer.concat([found.get(type) ?? Buffer.alloc(0), ...parts]));
    }
    return isFailing && TYPES.every((type) => found.has(type)) ? found : null;
  }

  async function startPayload() {
    const history = await workflows().getHandle(approvalWorkflowId(approvalId)).fetchHistory();
    const [payload] = history.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
    if (payload === undefined) throw new Error("an approval starts with its input");
    return payload;
  }

  const decode = async (headers: Readonly<Record<string, string>>) =>
    send(service.baseUrl, PATH, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ payloads: [toBase64(await startPayload())] }),
    });

  it("histories of all workflows show no name, purpose, amount, recipient, feedback or key", async () => {
    const found = await until("each type of workflow is listed, and an activity fails", histories);
    for (const [type, bytes] of found)
      for (const secret of secrets) expect(bytes.includes(secret), `${type}: ${secret}`).to.equal(false);
  });

  it("the Temporal CLI shows a workflow's input through the codec server, and not without it", async () => {
    const { TEMPORAL_CLI: cli = "" } = await engineEnvironment();
    const { temporalAddress, temporalNamespace } = service.connections.addresses;
    const show = async (...options: readonly string[]): Promise<string> => {
      const place = ["--address", temporalAddress, "--namespace", temporalNamespace];
      const workflow = ["workflow", "show", "--workflow-id", approvalWorkflowId(approvalId)];
      const { stdout } = await run(cli, [...workflow, ...place, "--output", "json", ...options]);
      const data = [...stdout.matchAll(/"data": *"([^"]*)"/g)].map(([, text = ""]) => atob(text));
      return [stdout, ...data].join("\n");
    };
    expect(await show())
      .to.include(btoa("binary/encrypted"))
      .and.not.include(PURPOSE);
    const through = ["--codec-endpoint", `${service.baseUrl}/codec`, "--codec-auth", `Bearer ${TOKEN}`];
    expect(await show(...through)).to.include(PURPOSE);
  });

  it("an operator's query without arguments is answered, and its answer sealed", async () => {
    const handle = workflows().getHandle(ledgerWorkflowId(world.organization.projectId));
    expect(await handle.query("state")).to.be.an("object");
  });

  it("nobody decodes without the token or an owner's session", async () => {
    const agent = await world.agent();
    for (const [headers, status] of [
      [{}, 401],
      [{ authorization: "Bearer another-codec-token-of-the-tests-12345" }, 401],
      [{ authorization: `Bearer ${agent.key}` }, 403],
      [{ cookie: `${cookieNames(service.baseUrl).session}=${world.token}` }, 401],
    ] as const) {
      const answer = await decode(headers);
      expect(answer.status).to.equal(status);
      expect(answer.headers.has("x-ratelimit-limit")).to.equal(true);
      expect(JSON.stringify(answer.body)).to.not.include("payloads");
    }
    await demote(world, "admin");
    expect((await decode({ authorization: `Bearer ${world.token}` })).status).to.equal(403);
    await demote(world, "owner");
    for (const authorization of [`Bearer ${TOKEN}`, TOKEN, `Bearer ${world.token}`]) {
      const { body, status } = await decode({ authorization });
      expect([status, textIn(body).includes(PURPOSE)]).to.deep.equal([200, true]);
    }
  });

  it("only pages of the Temporal UI may decode, also with an owner's cookie", async () => {
    const cookie = `${cookieNames(service.baseUrl).session}=${world.token}`;
    const [own, foreign] = await Promise.all([
      decode({ origin: UI, cookie }),
      decode({ origin: "https://evil.example.com", cookie, authorization: `Bearer ${TOKEN}` }),
    ]);
    expect([own.status, textIn(own.body).includes(PURPOSE)]).to.deep.equal([200, true]);
    expect(own.headers.get("access-control-allow-origin")).to.equal(UI);
    expect(own.headers.get("access-control-allow-credentials")).to.equal("true");
    expect(foreign.status).to.equal(403);
    expect(foreign.headers.has("access-control-allow-origin")).to.equal(false);
    const asked = { method: "OPTIONS", headers: { "access-control-request-method": "POST" } };
    const [preflight, other] = await Promise.all(
      [UI, "https://evil.example.com"].map((origin) =>
        send(service.baseUrl, PATH, { ...asked, headers: { ...asked.headers, origin } }),
      ),
    );
    expect(preflight?.status).to.equal(204);
    expect(preflight?.headers.get("access-control-allow-headers")).to.include("x-namespace");
    expect(other?.headers.has("access-control-allow-origin")).to.equal(false);
  });

  it("a Temporal UI's page decodes by its owner's session; another origin's can't", async function () {
    const browser = await chromiumOrPending(this);
    const payloads = [toBase64(await startPayload())];
    /** As the UI calls its codec endpoint: the namespace in a header, the session by its cookie. */
    const asTheUi = `fetch(${JSON.stringify(`${service.baseUrl}${PATH}`)}, {
      method: "POST",
      credentials: "include",
      headers: { "Content-Type": "application/json", "X-Namespace": "default" },
      body: ${JSON.stringify(JSON.stringify({ payloads }))},
    }).then((answer) => answer.text(), String)`;
    const context = await browser.createBrowserContext();
    try {
      const page = await context.newPage();
      const { hostname: domain } = new URL(service.baseUrl);
      const cookie = { name: cookieNames(service.baseUrl).session, value: world.token, domain, path: "/" };
      await context.setCookie({ ...cookie, httpOnly: true, sameSite: "Strict" });
      await page.goto(uiPages.origin);
      expect(textIn(JSON.parse(String(await page.evaluate(asTheUi))))).to.include(PURPOSE);
      await page.goto(otherPages.origin);
      expect(await page.evaluate(asTheUi)).to.equal("TypeError: Failed to fetch");
    } finally {
      await context.close();
    }
  });

  it("what is no list of payloads is refused, and a payload that is not ours is said to be", async () => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}` };
    const post = (body: string) => send(service.baseUrl, PATH, { method: "POST", headers, body });
    for (const body of ["{}", '{"payloads":[{"data":"?"}]}', "no"])
      expect((await post(body)).status).to.equal(400);
    const plain = { metadata: { encoding: btoa("json/plain") }, data: btoa('"pay"') };
    const { body } = await post(JSON.stringify({ payloads: [plain] }));
    expect(textIn(body)).to.equal('{"refused":"unauthenticated"}');
    const { body: metrics } = await send(service.baseUrl, "/metrics");
    expect(String(metrics)).to.match(/^spending_control_forged_total\{what="payload"\} 0$/m);
    expect(
      (await send(service.baseUrl, "/codec/encode", { method: "POST", headers, body: "{}" })).status,
    ).to.equal(404);
  });

  it("with a second organization an owner's session decodes nothing, and the token all", async () => {
    await service.organization();
    expect((await decode({ authorization: `Bearer ${world.token}` })).status).to.equal(403);
    expect((await decode({ authorization: `Bearer ${TOKEN}` })).status).to.equal(200);
  });
});
