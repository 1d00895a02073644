import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Client, Connection } from "@temporalio/client";
import { MongoClient } from "mongodb";
import { z } from "zod";
import { agent, madePayment } from "../../src/contract/records.ts";
import { verifyWebhook, type Verified } from "../../src/webhooks/verify-webhook.ts";
import { newAuthority } from "../../test/support/certificates/authority.ts";
import { payWithCard } from "./cards.ts";
import { AgentClient, Owner } from "./clients.ts";
import { buyFromShop } from "./shop.ts";
import { dollars, expectStep, type OwnService, type Stage, StepDiffers, tell } from "./stage.ts";

const AMOUNT_CENTS = 7_500;
const ARRIVED_MS = 20_000;

const organization = z.object({ teamId: z.string() });
const session = z.object({ token: z.string() });
const created = z.object({ agent, apiKey: z.string() });
const endpoint = z.object({ endpoint: z.object({ id: z.string() }), secret: z.string() });

interface Delivery {
  readonly rawBody: Buffer;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** An HTTPS receiver on this machine, whose certificate is made for the occasion. */
class Receiver {
  readonly #waiting: ((delivery: Delivery) => void)[] = [];
  readonly #arrived: Delivery[] = [];
  readonly #authority = newAuthority();
  readonly #server = createServer(this.#authority.issue(["127.0.0.1"]), (request, response) => {
    this.#take(request, response).catch(() => response.destroy());
  });

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const delivery = { rawBody: await buffer(request), headers: request.headers };
    const next = this.#waiting.shift();
    if (next === undefined) this.#arrived.push(delivery);
    else next(delivery);
    response.writeHead(204).end();
  }

  /** Answers its address. */
  async open(caFile: string): Promise<string> {
    await writeFile(caFile, this.#authority.caPem);
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hooks`;
  }

  /** The next delivery, in the order in which they come. */
  next(): Promise<Delivery> {
    const [first] = this.#arrived.splice(0, 1);
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new StepDiffers("no webhook has arrived")), ARRIVED_MS);
      this.#waiting.push((delivery) => {
        clearTimeout(timer);
        resolve(delivery);
      });
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/**
 * An approval that arrives signed, a purchase, and a card. A service calls nothing on its own machine unless its settings allow it, so
 * this part has a server and a worker of its own beside the running ones.
 */
export async function receiveApproval(stage: Stage): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "spending-control-demo-"));
  const name = `demo_${randomBytes(4).toString("hex")}`;
  const receiver = new Receiver();
  try {
    const caFile = join(folder, "ca.pem");
    const url = await receiver.open(caFile);
    const networkUrl = await stage.cardNetwork();
    const settings = {
      CARD_NETWORK_URL: networkUrl,
      WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32",
      WEBHOOK_CA_FILE: caFile,
      X402_ALLOW_CIDRS: "127.0.0.1/32",
      EVM_RPC_URL: stage.chainUrl,
    };
    const service = await stage.ownService(name, folder, settings);
    tell("operator", "started a second service, which may call receivers and shops on this machine");
    const { mcp, owner } = await watchApproval(stage, service, receiver, url);
    await payWithCard(networkUrl, owner, mcp);
    await mcp.close();
  } finally {
    await stage.close();
    receiver.close();
    await forget(stage, name);
    await rm(folder, { recursive: true, force: true });
  }
}

async function watchApproval(stage: Stage, { baseUrl, env }: OwnService, receiver: Receiver, url: string) {
  const owner = new Owner(baseUrl);
  const email = "owner@example.com";
  const password = randomBytes(18).toString("base64url");
  const options = { name: "Demo", "owner-email": email };
  const { teamId } = organization.parse(
    await stage.admin("create-organization", options, { env, input: password }),
  );
  owner.signedInWith((await owner.call(session, "POST", "/v1/auth/sign-in", { email, password })).token);
  const eventTypes = ["approval.requested", "approval.completed"];
  const body = { name: "Demo receiver", url, eventTypes };
  const { secret } = await owner.call(endpoint, "POST", "/v1/webhooks", body);
  tell("owner", `has approvals pushed to ${url}`);

  const bot = await owner.call(created, "POST", "/v1/agents", {
    name: "Shopping agent",
    teamId,
    budgetCents: 20_000,
    autoApprovalThresholdCents: 5_000,
  });
  const mcp = await AgentClient.connect(`${baseUrl}/mcp`, bot.apiKey);
  const { approval } = await mcp.pay(madePayment, AMOUNT_CENTS, "Conference Inc", "A second ticket");
  await buyFromShop(stage.chainUrl, owner, mcp, bot.agent.id);
  if (approval === null) throw new StepDiffers("the payment was not put on hold");
  const asked = await receiver.next();
  expectStep("the first webhook", typeOf(asked, secret), "approval.requested");
  tell(
    "receiver",
    `got \`approval.requested\`, its signature is good: ${dollars(AMOUNT_CENTS)} wait for a person`,
  );
  await owner.call(z.unknown(), "POST", `/v1/approvals/${approval.id}/approve`);
  const completed = await receiver.next();
  expectStep("the second webhook", typeOf(completed, secret), "approval.completed");
  tell("receiver", "got `approval.completed` once the owner had approved");
  const forged = { ...completed, rawBody: Buffer.from(completed.rawBody.toString().replace("7500", "7501")) };
  expectStep("a copy with another amount", typeOf(forged, secret), "bad_signature");
  tell("receiver", "refused a copy of it in which one digit differs");
  return { mcp, owner };
}

/** The event's type, or why it is refused. */
function typeOf(delivery: Delivery, secret: string): string {
  const verified: Verified = verifyWebhook({ ...delivery, secret });
  return verified.ok ? verified.event.type : verified.reason;
}

/** Nothing of it stays, in the database and in the operators' lists. */
async function forget({ runtime }: Stage, name: string): Promise<void> {
  const { address, namespace } = runtime.temporal;
  const connection = await Connection.connect({ address });
  const { workflow } = new Client({ connection, namespace });
  const own = workflow.list({ query: `TaskQueue = "${name}" AND ExecutionStatus = "Running"` });
  for await (const { workflowId } of own) {
    // It may have ended meanwhile.
    await workflow
      .getHandle(workflowId)
      .terminate("the demo is over")
      .catch(() => undefined);
  }
  await connection.close();
  const mongo = await MongoClient.connect(runtime.mongodb.uri);
  await mongo.db(name).dropDatabase();
  await mongo.close();
}
