import { AccessProofs } from "../../../src/secrets/access-proofs.ts";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@temporalio/client";
import type { Db } from "mongodb";
import { createOrganization } from "../../../server/admin/create-organization.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { connectMongo } from "../../../src/store/connections.ts";
import { newId } from "../../../src/lib/ids.ts";
import { apiKeyHashes } from "../../../src/secrets/api-key-hash.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { formatApiKey, last4 } from "../../../src/domain/api-key.ts";
import { Child } from "../child.ts";
import type { ServiceConfig } from "../processes/service.ts";
import type { Site, System } from "./system.ts";
import { BUDGET_CENTS, MASTER_KEY, portOf, serviceEnvironment } from "./system.ts";

/** A key creates at most 1,000 agents a UTC day: the next one takes over in time, also where a request was repeated. */
const CREATES_PER_KEY = 900;
const DAILY_CREATE_LIMIT = 1_000;

/** Enough for the longest load. */
const KEYS_PER_LOAD = 20;

/** Maximum lag of Temporal's list of workflows. */
const LISTED_MS = 10_000;
const LISTED_POLL_MS = 200;

/**
 * Creates of agents over REST by a key of the organization, each under an idempotency key of its own: as an orchestrator
 * does. All requests of a load use the same key, until the next takes over, since an orchestrator has one.
 */
export async function startCreates(site: Site): Promise<System> {
  const env = serviceEnvironment(site, "bench_creates");
  const config: ServiceConfig = { env, logFile: join(site.dataDir, "logs", "creates.log") };
  const child = await Child.start({
    entry: "processes/payments.ts",
    config,
    profileDir: site.profileDir,
  });
  const { organizationId, teamId } = await createOrganization(env, {
    name: "Bench",
    ownerEmail: "owner@example.com",
    ownerPassword: "correct horse battery staple",
    plan: "enterprise",
    restPerMinute: 1_000_000,
  });
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));
  const body = { name: "Created", teamId, budgetCents: BUDGET_CENTS, autoApprovalThresholdCents: null };

  return {
    port: portOf(child.port),
    pid: child.pid,
    // New keys each time: a load begins on a day without creates.
    async templates() {
      const keys = await mintKeys(db, organizationId);
      return keys.flatMap((key) => {
        const template = { path: "/v1/agents", headers: { authorization: `Bearer ${key}` }, body };
        return Array.from({ length: CREATES_PER_KEY }, () => template);
      });
    },
    settle: () => Promise.resolve(),
    course: () => Promise.resolve(null),
    audit: (answered) => audit(db, site.temporal, String(env["TEMPORAL_TASK_QUEUE"]), answered),
    async stop() {
      await mongo.close();
      await child.stop();
    },
  };
}

/** Straight into the database: over REST the owner mints 30 a minute at the most. */
async function mintKeys(db: Db, organizationId: string): Promise<readonly string[]> {
  const masterKey = MasterKey.parse(MASTER_KEY, "the bench");
  const accessProofs = new AccessProofs(masterKey.macs("access-proofs"));
  const keys = Array.from({ length: KEYS_PER_LOAD }, () => formatApiKey("organization", randomBytes));
  await collectionsOf(db).organizationKeys.insertMany(
    keys.map((value) => {
      const _id = newId("okey");
      return accessProofs.proven("organizationKey", {
        _id,
        organizationId,
        name: "bench",
        scopes: ["agents:write"],
        binding: { type: "organization" },
        dailyCreateLimit: DAILY_CREATE_LIMIT,
        hash: apiKeyHashes(masterKey).make(value),
        last4: last4(value),
        lineageId: _id,
        createdBy: { type: "user", id: "bench" },
        createdAt: new Date(),
        lastUsedAt: null,
        rotatedAt: null,
        revokedAt: null,
      });
    }),
  );
  return keys;
}

/** Each create that was answered, and nothing else, is one record, key delivery, event, place of a day, and actor. */
async function audit(db: Db, temporal: Client, taskQueue: string, answered: number): Promise<string[]> {
  const { agents, creates, dailyCreates, events, keyDeliveries } = collectionsOf(db);
  const [places] = await dailyCreates
    .aggregate<{ count: number }>([
      { $unwind: "$places" },
      { $match: { "places.committed": true } },
      { $count: "count" },
    ])
    .toArray();
  const counts = {
    agents: await agents.countDocuments(),
    reservations: await creates.countDocuments(),
    "keys that can be delivered again": await keyDeliveries.countDocuments({
      state: "open",
      sealed: { $ne: null },
    }),
    events: await events.countDocuments({ type: "agent.created" }),
    places: places?.count ?? 0,
    actors: await actorsListed(temporal, taskQueue, answered),
  };
  if (Object.values(counts).every((count) => count === answered)) return [];
  const listed = Object.entries(counts).map(([name, count]) => `${String(count)} ${name}`);
  return [`creates: ${String(answered)} answered, ${listed.join(", ")}`];
}

async function actorsListed(temporal: Client, taskQueue: string, expected: number): Promise<number> {
  const query = `WorkflowType = "agent" AND TaskQueue = "${taskQueue}" AND ExecutionStatus = "Running"`;
  const deadline = Date.now() + LISTED_MS;
  for (;;) {
    const { count } = await temporal.workflow.count(query);
    if (count === expected || Date.now() > deadline) return count;
    await sleep(LISTED_POLL_MS);
  }
}
