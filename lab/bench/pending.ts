import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { z } from "zod";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { type Collections, collectionsOf } from "../../src/store/collections.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { LoadClient } from "./load/client.ts";
import { payAndDie, type PayerOf } from "./pending/lost-server.ts";
import { Blocks, DATABASE, ready, startPendingService } from "./pending/service.ts";
import { median } from "./statistics.ts";
import { callTo, createAgents, type PayingAgent, postTo, signIn } from "./systems/payments-agents.ts";
import { BUDGET_CENTS, databaseOf, ORDER, type Site, TRANSFER } from "./systems/system.ts";
import { prepareWallets } from "./systems/wallets.ts";

/** Processes that must go on while wallet payments wait for their chain. */
export const RECOVERIES = ["approval", "sweep", "expiry"] as const;
export type Recovery = (typeof RECOVERIES)[number];

export interface PendingFigures {
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

export interface PendingPhase {
  /** Wallet payments that were pending all the while. */
  readonly pending: number;
  readonly figures: Readonly<Record<Recovery, PendingFigures>>;
}

export interface PendingResult {
  readonly phases: readonly PendingPhase[];
  /** Seconds until all of them were final, once the chain had them. */
  readonly settledSeconds: number;
}

const WALLETS = 10;
const PENDING = 1_000;
/** Each call waits some seconds before it is answered as pending. */
const SENDING_CONNECTIONS = 150;
/** A payment answered 503 may have been sent or not. */
const SENDINGS_MAX = 40;
/** Of each kind, one after another in a phase. */
const SAMPLES = 60;
const BETWEEN_MS = 500;
const ENDED_MS = 60_000;
const SETTLED_MS = 240_000;

interface Scene {
  readonly site: Site;
  readonly db: Db;
  readonly port: number;
  readonly token: string;
  readonly wallets: readonly PayingAgent[];
  readonly asking: PayingAgent;
  readonly lost: PayerOf;
}

export interface PendingOptions {
  readonly site: Site;
  /** Without, with, and at the end without again. */
  readonly rounds: number;
  readonly onProgress: (line: string) => void;
  readonly undo: (step: () => Promise<unknown>) => void;
}

/**
 * Measures the same service with nothing pending and with a thousand wallet payments at 12 confirmations, in turn.
 */
export async function measurePending({
  onProgress,
  rounds,
  site,
  undo,
}: PendingOptions): Promise<PendingResult> {
  const { db, mongo } = await connectMongo(databaseOf(site.mongodbUri, DATABASE));
  undo(() => mongo.close());
  const scene = await prepare(site, db, undo);
  const blocks = new Blocks(site, db);
  await blocks.slow();
  const phases: PendingPhase[] = [];
  let settledSeconds = 0;
  const measure = async (): Promise<void> => {
    const phase = await measurePhase(scene);
    phases.push(phase);
    onProgress(phaseText(phase));
  };
  // First calls take longer.
  await measurePhase(scene, SAMPLES / 10);
  for (let round = 0; round < rounds; round += 1) {
    await measure();
    await sendAll(scene);
    await measure();
    await blocks.confirm();
    settledSeconds = Math.max(settledSeconds, await settled(scene));
    onProgress(`pending: all were final after ${settledSeconds.toFixed(1)} s`);
  }
  await measure();
  return { phases, settledSeconds };
}

const created = z.object({
  agent: z.object({ id: z.string(), key: z.object({ id: z.string() }) }),
  apiKey: z.string(),
});

async function prepare(site: Site, db: Db, undo: PendingOptions["undo"]): Promise<Scene> {
  const sandbox = await startPendingService(site, "sandbox", db);
  undo(() => sandbox.stop());
  const owner = { email: "owner@example.com", password: "correct horse battery staple" };
  const env = { MONGODB_URI: databaseOf(site.mongodbUri, DATABASE), TEMPORAL_ADDRESS: site.temporalAddress };
  const place = await createOrganization(
    { ...env, TEMPORAL_NAMESPACE: site.temporalNamespace, TEMPORAL_TASK_QUEUE: "bench-pending" },
    {
      name: "Bench",
      ownerEmail: owner.email,
      ownerPassword: owner.password,
      plan: "enterprise",
      restPerMinute: 1_000_000,
    },
  );
  const { organizationId, projectId, teamId } = place;
  const prepared = await ready(sandbox);
  const made = await createAgents({ port: prepared, owner, teamIds: [teamId], count: WALLETS });
  await prepareWallets(made.agents, prepared, made.token);
  const agent = async (name: string, autoApprovalThresholdCents: number | null) => {
    const body = { name, teamId, budgetCents: BUDGET_CENTS, autoApprovalThresholdCents };
    return created.parse(await postTo(prepared, "/v1/agents", body, made.token));
  };
  const [asking, lost] = [await agent("Asks", 0), await agent("Lost", null)];
  await sandbox.stop();
  const service = await startPendingService(site, "chain", db);
  undo(() => service.stop());
  const port = await ready(service);
  return {
    site,
    db,
    port,
    token: await signIn(port, owner),
    wallets: made.agents,
    asking: { id: asking.agent.id, apiKey: asking.apiKey },
    lost: { organizationId, projectId, agentId: lost.agent.id, keyId: lost.agent.key.id },
  };
}

/** Each is sent to the chain, and answered as pending. */
async function sendAll({ db, port, wallets }: Scene): Promise<void> {
  const client = new LoadClient(port, SENDING_CONNECTIONS);
  const collections = collectionsOf(db);
  const send = (index: number) => {
    const apiKey = wallets[index % wallets.length]?.apiKey ?? "";
    const headers = { authorization: `Bearer ${apiKey}` };
    return client.send({ path: "/v1/payments", headers, body: TRANSFER });
  };
  let pending = 0;
  for (let sending = 0; sending < SENDINGS_MAX && pending < PENDING; sending += 1) {
    await Promise.all(Array.from({ length: PENDING - pending }, (_none, index) => send(index)));
    pending = await pendingIn(collections);
  }
  client.close();
  if (pending < PENDING) throw new Error(`only ${String(pending)} payments are pending`);
}

const pendingIn = ({ transactions }: Collections): Promise<number> =>
  transactions.countDocuments({ rail: "wallet", status: "pending" });

/** Seconds until none of them is pending. */
async function settled({ db }: Scene): Promise<number> {
  const began = performance.now();
  while ((await pendingIn(collectionsOf(db))) > 0) {
    if (performance.now() - began > SETTLED_MS) throw new Error("wallet payments do not become final");
    await sleep(100);
  }
  return (performance.now() - began) / 1_000;
}

const held = z.object({ transaction: z.object({ id: z.string() }), approval: z.object({ id: z.string() }) });
const approved = z.object({ approval: z.object({ resolution: z.string() }) });

/** Approvals one after another, beside payments whose server is gone and others that stay undecided. */
async function measurePhase(scene: Scene, samples = SAMPLES): Promise<PendingPhase> {
  const { asking, db, lost, port, site, token } = scene;
  const collections = collectionsOf(db);
  const before = await pendingIn(collections);
  const approvalMs: number[] = [];
  const swept: string[] = [];
  const expiring: string[] = [];
  const hold = async () => {
    const order = { ...ORDER, idempotencyKey: randomUUID() };
    return held.parse(await postTo(port, "/v1/payments", order, asking.apiKey));
  };
  for (let sample = 0; sample < samples; sample += 1) {
    const began = performance.now();
    swept.push(await payAndDie(site.temporal, lost));
    expiring.push((await hold()).transaction.id);
    const { approval } = await hold();
    const askedAt = performance.now();
    let answer = await callTo(port, "POST", `/v1/approvals/${approval.id}/approve`, undefined, token);
    // Work beyond the time of a request goes on after its answer.
    while (approved.parse(answer).approval.resolution === "executing") {
      await sleep(20);
      answer = await callTo(port, "GET", `/v1/approvals/${approval.id}`, undefined, token);
    }
    approvalMs.push(performance.now() - askedAt);
    const { resolution } = approved.parse(answer).approval;
    if (resolution !== "approved") throw new Error(`an approved payment is ${resolution}`);
    await sleep(Math.max(0, BETWEEN_MS - (performance.now() - began)));
  }
  const figures = {
    approval: figuresOf(approvalMs),
    sweep: figuresOf(await endedAfterMs(collections, swept, "approved")),
    expiry: figuresOf(await endedAfterMs(collections, expiring, "expired")),
  };
  return { pending: Math.min(before, await pendingIn(collections)), figures };
}

/** From a payment's decision to the record of its end. */
async function endedAfterMs(
  { transactions }: Collections,
  ids: readonly string[],
  status: "approved" | "expired",
): Promise<readonly number[]> {
  const until = performance.now() + ENDED_MS;
  for (;;) {
    const ended = await transactions.find({ _id: { $in: [...ids] }, status }).toArray();
    if (ended.length === ids.length)
      return ended.map(
        ({ createdAt, recordedAt }) => (recordedAt ?? createdAt).getTime() - createdAt.getTime(),
      );
    if (performance.now() > until)
      throw new Error(`of ${String(ids.length)} payments ${String(ended.length)} are ${status}`);
    await sleep(200);
  }
}

function figuresOf(ms: readonly number[]): PendingFigures {
  const sorted = ms.toSorted((one, other) => one - other);
  const p95Ms = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))] ?? Number.NaN;
  return { count: ms.length, p50Ms: median(ms), p95Ms };
}

/** The median of the phases with pending payments to the median of those without, by a kind's p50. */
export function ratioOf({ phases }: PendingResult, recovery: Recovery): number {
  const p50 = (isBeside: boolean) =>
    median(
      phases.filter(({ pending }) => pending > 0 === isBeside).map(({ figures }) => figures[recovery].p50Ms),
    );
  return p50(true) / p50(false);
}

const phaseText = ({ figures, pending }: PendingPhase): string =>
  `pending: ${String(pending)} · ${RECOVERIES.map((each) => {
    const { p50Ms, p95Ms } = figures[each];
    return `${each} p50 ${p50Ms.toFixed(1)} ms, p95 ${p95Ms.toFixed(1)} ms`;
  }).join("; ")}`;
