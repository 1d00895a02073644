import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import proto from "@temporalio/proto";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { connectMongo } from "../../src/store/connections.ts";
import type { Roles } from "../../server/roles.ts";
import { Child } from "./child.ts";
import { readCpu } from "./cpu.ts";
import { LoadClient } from "./load/client.ts";
import type { ServiceConfig, ServiceStatus } from "./processes/service.ts";
import { median } from "./statistics.ts";
import { makeIdleAgents } from "./systems/idle-agents.ts";
import { createAgents, type PayingAgent } from "./systems/payments-agents.ts";
import { ORDER, portOf, serviceEnvironment, type Site } from "./systems/system.ts";

const { TaskQueueType } = proto.temporal.api.enums.v1;

/** Cost of many idle agents for their one worker, and the time until they pay again. */
export interface IdleResult {
  readonly asked: number;
  readonly agents: number;
  readonly madeSeconds: number;
  /** Actors in the worker's memory, once all agents were made. */
  readonly cached: number;
  /** The worker's resident memory, before there were any of them and after. */
  readonly residentBytes: { readonly before: number; readonly after: number };
  readonly warm: Payments;
  /** First payments of agents whose actors were in the worker's memory. */
  readonly firstOfCached: Payments;
  /** Payments of agents that the worker had evicted and rebuilds from their history; null: there were not enough. */
  readonly firstOfEvicted: Payments | null;
}

export interface Payments {
  readonly count: number;
  readonly p50Ms: number;
  readonly maxMs: number;
  /** To the warm agent's payment just after it, the median. */
  readonly toWarm: number;
}

/** With what goes before and comes after it stays at some 3 minutes. */
const MAKING_MS = 90_000;
const IDLE_WAIT_MS = 240_000;
const IDLE_CPU_SHARE = 0.1;
const POLL_MS = 1_000;
const ANSWER_MS = 10_000;

const WARM_AGENTS = 10;
const WARM_UP_PAYMENTS = 200;
const SAMPLES = 40;
/** From one sample to the next in the order in which the agents were made; the ends of it are certain, not the middle. */
const STEP = 5;

export interface IdleOptions {
  readonly site: Site;
  readonly count: number;
  readonly onProgress: (line: string) => void;
  readonly undo: (step: () => Promise<unknown>) => void;
}

/** Server and worker are processes of their own here: the memory is the worker's alone. */
export async function measureIdle({ count, onProgress, site, undo }: IdleOptions): Promise<IdleResult> {
  const env = serviceEnvironment(site, "bench_idle");
  const start = async (name: string, roles: Roles): Promise<Child> => {
    const logFile = join(site.dataDir, "logs", `idle-${name}.log`);
    const config: ServiceConfig = { env, logFile, roles };
    const child = await Child.start({
      entry: "processes/payments.ts",
      config,
      profileDir: site.profileDir,
    });
    undo(() => child.stop());
    return child;
  };
  onProgress("idle: starting a worker and a server");
  const worker = await start("worker", { server: false, worker: true });
  const server = await start("server", { server: true, worker: false });
  const port = portOf(server.port);
  const owner = { email: "owner@example.com", password: "correct horse battery staple" };
  const place = await createOrganization(env, {
    name: "Bench",
    ownerEmail: owner.email,
    ownerPassword: owner.password,
    plan: "enterprise",
    restPerMinute: 1_000_000,
  });
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));
  undo(() => mongo.close());
  const { teamId } = place;
  const { agents: warm } = await createAgents({ port, owner, teamIds: [teamId], count: WARM_AGENTS });
  const payer = new Payer(port, warm);
  undo(() => Promise.resolve(payer.close()));
  for (let payment = 0; payment < WARM_UP_PAYMENTS; payment += 1) await payer.warmMs();
  const taskQueue = String(env["TEMPORAL_TASK_QUEUE"]);
  const waiting = () => tasksWaiting(site, taskQueue);
  const before = await calm(worker, waiting);
  const startedAt = performance.now();
  const idle = await makeIdleAgents({
    db,
    temporal: site.temporal,
    taskQueue,
    place: { organizationId: place.organizationId, projectId: place.projectId, teamId },
    count,
    withinMs: MAKING_MS,
  });
  const madeSeconds = (performance.now() - startedAt) / 1_000;
  const after = await calm(worker, waiting);
  onProgress(
    `idle: ${String(idle.length)} agents made in ${madeSeconds.toFixed(0)} s, ${String(after.cachedWorkflows)} actors cached`,
  );
  const paid = await firstPayments(payer, idle, after.cachedWorkflows);
  await checkBooks(payer, db);
  return {
    asked: count,
    agents: idle.length,
    madeSeconds,
    cached: after.cachedWorkflows,
    residentBytes: { before: before.residentBytes, after: after.residentBytes },
    ...paid,
  };
}

/** Tasks of workflows that no worker has taken yet. */
async function tasksWaiting({ temporal, temporalNamespace }: Site, name: string): Promise<number> {
  const { stats } = await temporal.workflowService.describeTaskQueue({
    namespace: temporalNamespace,
    taskQueue: { name },
    taskQueueType: TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    reportStats: true,
  });
  return Number(stats?.approximateBacklogCount ?? 0);
}

/** The worker's status once it has nothing to do any more. Throws where it does not come to that. */
async function calm(worker: Child, waiting: () => Promise<number>): Promise<ServiceStatus> {
  const until = performance.now() + IDLE_WAIT_MS;
  const look = async () => {
    const { worker: ms = null } = await readCpu({ worker: worker.pid });
    return { ms, ...(await worker.request<ServiceStatus>(null, ANSWER_MS)) };
  };
  let last = await look();
  for (;;) {
    await sleep(POLL_MS);
    const next = await look();
    const used = next.ms === null || last.ms === null ? 0 : next.ms - last.ms;
    const isIdle = used < POLL_MS * IDLE_CPU_SHARE && next.cachedWorkflows === last.cachedWorkflows;
    const left = await waiting();
    if (isIdle && left === 0) return next;
    if (performance.now() > until)
      throw new Error(`the worker is not at rest, ${String(left)} tasks wait for it`);
    last = next;
  }
}

/** Pays one payment after another, and keeps count. */
class Payer {
  readonly #client: LoadClient;
  readonly #warm: readonly PayingAgent[];
  #paid = 0;

  constructor(port: number, warm: readonly PayingAgent[]) {
    this.#client = new LoadClient(port, 1);
    this.#warm = warm;
  }

  get paid(): number {
    return this.#paid;
  }

  async ms({ apiKey, id }: PayingAgent): Promise<number> {
    const headers = { authorization: `Bearer ${apiKey}` };
    const sentAt = performance.now();
    const error = await this.#client.send({ path: "/v1/payments", headers, body: ORDER });
    if (error !== null) throw new Error(`a payment of agent ${id} failed: ${error}`);
    this.#paid += 1;
    return performance.now() - sentAt;
  }

  /** A payment of the next of the agents that have been paying all along. */
  warmMs(): Promise<number> {
    const agent = this.#warm[this.#paid % this.#warm.length];
    if (agent === undefined) throw new Error("no warm agents");
    return this.ms(agent);
  }

  /** Each of them pays once, so that its actor is in the worker's memory again. */
  async warmUp(): Promise<void> {
    for (const agent of this.#warm) await this.ms(agent);
  }

  close(): void {
    this.#client.close();
  }
}

/** The worker forgets who was used the longest ago first: of agents that never paid, those that were made first. */
async function firstPayments(
  payer: Payer,
  idle: readonly PayingAgent[],
  cached: number,
): Promise<Pick<IdleResult, "warm" | "firstOfCached" | "firstOfEvicted">> {
  const every = (agents: readonly PayingAgent[]) =>
    agents.filter((_agent, index) => index % STEP === 0).slice(0, SAMPLES);
  const certain = SAMPLES * STEP;
  const ofCached = every(idle.toReversed());
  const ofEvicted = idle.length - cached >= 2 * certain ? every(idle) : [];
  await payer.warmUp();
  const warmMs: number[] = [];
  const samples = { cached: new Samples(), evicted: new Samples() };
  for (const [index, agent] of ofCached.entries()) {
    for (const [name, first] of [["cached", agent] as const, ["evicted", ofEvicted[index]] as const]) {
      if (first === undefined) continue;
      const firstMs = await payer.ms(first);
      const warm = await payer.warmMs();
      samples[name].add(firstMs, warm);
      warmMs.push(warm);
    }
  }
  return {
    warm: new Samples(warmMs, warmMs).summary,
    firstOfCached: samples.cached.summary,
    firstOfEvicted: ofEvicted.length === 0 ? null : samples.evicted.summary,
  };
}

class Samples {
  readonly #firstMs: number[];
  readonly #warmMs: number[];

  constructor(firstMs: readonly number[] = [], warmMs: readonly number[] = []) {
    this.#firstMs = [...firstMs];
    this.#warmMs = [...warmMs];
  }

  add(firstMs: number, warmMs: number): void {
    this.#firstMs.push(firstMs);
    this.#warmMs.push(warmMs);
  }

  get summary(): Payments {
    return {
      count: this.#firstMs.length,
      p50Ms: median(this.#firstMs),
      maxMs: Math.max(...this.#firstMs),
      toWarm: median(this.#firstMs.map((ms, index) => ms / (this.#warmMs[index] ?? Number.NaN))),
    };
  }
}

async function checkBooks({ paid }: Payer, db: Parameters<typeof collectionsOf>[0]): Promise<void> {
  const approved = await collectionsOf(db).transactions.countDocuments({ status: "approved" });
  if (approved !== paid) throw new Error(`${String(paid)} payments answered, ${String(approved)} approved`);
}
