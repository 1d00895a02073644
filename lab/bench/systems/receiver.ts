import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { z } from "zod";
import { webhookCollections } from "../../../src/store/webhook-documents.ts";
import { newAuthority } from "../../../test/support/certificates/authority.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { Child } from "../child.ts";
import type { EventsAt, Receipts, ReceiverConfig, ReceiverRequest } from "../processes/receiver.ts";
import { callTo, type PayingAgent, postTo } from "./payments-agents.ts";
import { portOf, type Site } from "./system.ts";

const HOST = "127.0.0.1";
const ANSWER_MS = 10_000;
/** Many more than a load leaves behind. */
const DELIVERED_MS = 120_000;
const POLL_MS = 200;

/** Deliveries that hang: each of the endpoints has as many of them as there are events. */
const STUCK_ENDPOINTS = 5;
const STUCK_EVENTS = 100;
/** Timed-out deliveries are due again at once, so that there are as many at the run's end as at its beginning. */
const DUE_AT_ONCE = Array.from({ length: 10 }, () => "1").join(",");

const created = z.object({ endpoint: z.object({ id: z.string() }), secret: z.string() });

/** An HTTPS server in a process of its own, with a certificate that only the service trusts which is configured to. */
export class Receiver {
  readonly #child: Child;
  readonly #name: string;
  /** For the service that is to reach it. */
  readonly settings: NodeJS.ProcessEnv;

  private constructor(child: Child, name: string, settings: NodeJS.ProcessEnv) {
    this.#child = child;
    this.#name = name;
    this.settings = settings;
  }

  static async start(site: Site, name: string, behaviour: ReceiverConfig["behaviour"]): Promise<Receiver> {
    const authority = newAuthority();
    const caFile = join(site.dataDir, `${name}-ca.pem`);
    await writeFile(caFile, authority.caPem);
    const config: ReceiverConfig = { identity: authority.issue([HOST]), behaviour };
    const child = await Child.start({ entry: "processes/receiver.ts", config, profileDir: site.profileDir });
    return new Receiver(child, name, {
      WEBHOOK_ALLOW_CIDRS: `${HOST}/32`,
      WEBHOOK_CA_FILE: caFile,
      ...(behaviour === "hangs" ? { WEBHOOK_BACKOFF_SECONDS: DUE_AT_ONCE } : {}),
    });
  }

  get pid(): number | null {
    return this.#child.pid;
  }

  /** Has the service send events of these types here; the endpoint's id. */
  async subscribe(port: number, token: string, eventTypes: readonly string[]): Promise<string> {
    const url = `https://${HOST}:${String(portOf(this.#child.port))}/hooks`;
    const body = { name: this.#name, url, eventTypes };
    const { endpoint, secret } = created.parse(await postTo(port, "/v1/webhooks", body, token));
    await this.#ask({ kind: "trust", secret });
    return endpoint.id;
  }

  /** A port where a request is an event: answered once its delivery has come. */
  async takeEvents(at: EventsAt): Promise<number> {
    const { port } = await this.#ask<{ readonly port: number }>({ kind: "events", at });
    return port;
  }

  receipts(): Promise<Receipts> {
    return this.#ask({ kind: "receipts" });
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  #ask<T>(request: ReceiverRequest): Promise<T> {
    return this.#child.request<T>(request, ANSWER_MS);
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DELIVERED_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: that takes too long`);
    await sleep(POLL_MS);
  }
}

/** Each event that was published has its deliveries, and each of them has ended. */
export const allDelivered = (db: Db): Promise<void> =>
  until("the last deliveries", async () => {
    const pending = await collectionsOf(db).events.countDocuments({ isPending: true });
    return pending + (await webhookCollections(db).deliveries.countDocuments({ status: "pending" })) === 0;
  });

/** Returns payments by the deliveries' records and by the receiver; both must agree with what was paid. */
export async function deliveredPayments(
  db: Db,
  receiver: Receiver,
): Promise<Readonly<Record<string, number>>> {
  await allDelivered(db);
  const eventType = "transaction.completed";
  const { deliveries } = webhookCollections(db);
  const { forged, received } = await receiver.receipts();
  return {
    "payments delivered": await deliveries.countDocuments({ eventType, status: "succeeded" }),
    // One that does not verify is one too few.
    "payments received": (received[eventType] ?? 0) - forged,
  };
}

/** Has an agent paused and resumed until so many deliveries are on their way to nowhere. */
export async function strand(
  receiver: Receiver,
  {
    agents,
    db,
    port,
    token,
  }: Readonly<{ agents: readonly PayingAgent[]; db: Db; port: number; token: string }>,
): Promise<void> {
  for (let count = 0; count < STUCK_ENDPOINTS; count += 1)
    await receiver.subscribe(port, token, ["agent.paused", "agent.resumed"]);
  const [agent] = agents;
  for (let published = 0; published < STUCK_EVENTS; published += 2) {
    for (const action of ["pause", "resume"])
      await callTo(port, "POST", `/v1/agents/${String(agent?.id)}/${action}`, undefined, token);
  }
  const { deliveries } = webhookCollections(db);
  await until("deliveries that hang", async () => {
    const stuck = await deliveries.countDocuments({ status: "pending", pendingAction: { $exists: false } });
    return stuck === STUCK_ENDPOINTS * STUCK_EVENTS;
  });
}
