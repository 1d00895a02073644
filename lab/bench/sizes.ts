import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { z } from "zod";
import { ledgerWorkflowId } from "../../src/messages/ledger.ts";
import { connectMongo } from "../../src/store/connections.ts";
import { type AgentDocument, COLLECTIONS } from "../../src/store/documents.ts";
import { Histories } from "./histories.ts";
import { type OneService, onOneService, say } from "./standalone.ts";
import { type PayingAgent, postTo } from "./systems/payments-agents.ts";
import { ORDER } from "./systems/system.ts";

/**
 * Bytes that card payments of 50 agents in one project leave behind, by collection and in Temporal, where many are made at once and where
 * each comes alone: `node dist/lab/bench/sizes.js [payments]`. Payloads in Temporal are not encrypted.
 */
const PAYMENTS = 6_000;
/** A tenth of them comes alone: histories do not depend on their number. */
const ALONE_PART = 10;
const AT_ONCE = 50;
/** The ledger has confirmed everything when its history has not grown for so long. */
const REST_MS = 12_000;
const REST_TIMEOUT_MS = 90_000;
const TRIES_MAX = 10;
const TRY_AGAIN_MS = 1_000;

const manager = z.object({ "file bytes available for reuse": z.number() });
const sized = z.object({
  storageStats: z.object({
    count: z.number(),
    size: z.number(),
    storageSize: z.number(),
    freeStorageSize: z.number(),
    totalIndexSize: z.number(),
    indexDetails: z.record(z.string(), z.object({ "block-manager": manager })),
  }),
});

interface Size {
  readonly documents: number;
  /** Of the documents, uncompressed. */
  readonly bsonBytes: number;
  /** On disk, without what files have reserved. */
  readonly dataBytes: number;
  readonly indexBytes: number;
}

const NOTHING: Size = { documents: 0, bsonBytes: 0, dataBytes: 0, indexBytes: 0 };

await onOneService("sizes", {}, (service) => measure(service, Number(process.argv[2] ?? PAYMENTS)));

async function measure({ agents, env, port, site, undo }: OneService, count: number): Promise<void> {
  const { db, mongo } = await connectMongo(String(env["MONGODB_URI"]));
  undo.add(() => mongo.close());
  const record = await db.collection<AgentDocument>(COLLECTIONS.agents).findOne({});
  const ledgerId = ledgerWorkflowId(record?.projectId ?? "");
  const histories = new Histories(site.temporal);

  const course = () => histories.courseOf([ledgerId]);
  async function rest(): Promise<void> {
    const until = performance.now() + REST_TIMEOUT_MS;
    for (let before = await course(); ;) {
      await sleep(REST_MS);
      const after = await course();
      if (after.events === before.events) return;
      if (performance.now() > until) throw new Error("the ledger does not come to rest");
      before = after;
    }
  }
  async function pay(payments: number, atOnce: number): Promise<number> {
    const before = await course();
    let left = payments;
    const client = async (): Promise<void> => {
      for (; left > 0;) {
        left -= 1;
        const agent = agents[left % agents.length];
        if (agent !== undefined) await pays(port, agent);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, client));
    await rest();
    return ((await course()).bytes - before.bytes) / payments;
  }

  const files = join(site.dataDir, "temporal");
  await pay(count / ALONE_PART, AT_ONCE);
  const [before, filesBefore] = [await sizesOf(db), await bytesIn(files)];
  const together = await pay(count, AT_ONCE);
  const after = await sizesOf(db);
  const grown = ((await bytesIn(files)) - filesBefore) / count;
  const alone = await pay(count / ALONE_PART, 1);

  say(`per payment of ${String(count)}, in bytes:`);
  const rows = [...after].map(
    ([name, size]) => [name, difference(size, before.get(name) ?? NOTHING)] as const,
  );
  const total = rows.reduce((sum, [, size]) => added(sum, size), NOTHING);
  for (const [name, size] of [...rows, ["in all", total] as const]) {
    if (size.documents < count / 2) continue;
    const each = (bytes: number): string => (bytes / count).toFixed(0);
    say(
      `  ${name.padEnd(18)} documents ${(size.documents / count).toFixed(2)}, BSON ${each(size.bsonBytes)}, on disk ${each(size.dataBytes)}, indexes ${each(size.indexBytes)}`,
    );
  }
  say(`  Temporal's history ${together.toFixed(0)} of ${String(AT_ONCE)} at once, ${alone.toFixed(0)} alone`);
  say(`  Temporal's files   ${grown.toFixed(0)} (embedded, SQLite)`);
}

/** Makes one payment under one key, tried again where a busy service asks for it. */
async function pays(port: number, { apiKey }: PayingAgent): Promise<void> {
  const order = { ...ORDER, idempotencyKey: randomUUID() };
  for (let tries = 1; ; tries += 1) {
    try {
      await postTo(port, "/v1/payments", order, apiKey);
      return;
    } catch (error) {
      if (tries === TRIES_MAX) throw error;
      await sleep(TRY_AGAIN_MS);
    }
  }
}

/** Sizes of all collections, once everything is on disk. */
async function sizesOf(db: Db): Promise<ReadonlyMap<string, Size>> {
  await db.admin().command({ fsync: 1 });
  const names = (await db.listCollections({ type: "collection" }, { nameOnly: true }).toArray()).map(
    ({ name }) => name,
  );
  const sizes = names.map(async (name) => {
    const [found] = await db
      .collection(name)
      .aggregate([{ $collStats: { storageStats: {} } }])
      .toArray();
    const stats = sized.parse(found).storageStats;
    const free = Object.values(stats.indexDetails).map(
      ({ "block-manager": file }) => file["file bytes available for reuse"],
    );
    const size: Size = {
      documents: stats.count,
      bsonBytes: stats.size,
      dataBytes: stats.storageSize - stats.freeStorageSize,
      indexBytes: stats.totalIndexSize - free.reduce((sum, bytes) => sum + bytes, 0),
    };
    return [name, size] as const;
  });
  return new Map(await Promise.all(sizes));
}

const added = (a: Size, b: Size): Size => ({
  documents: a.documents + b.documents,
  bsonBytes: a.bsonBytes + b.bsonBytes,
  dataBytes: a.dataBytes + b.dataBytes,
  indexBytes: a.indexBytes + b.indexBytes,
});
const difference = (after: Size, before: Size): Size =>
  added(after, {
    documents: -before.documents,
    bsonBytes: -before.bsonBytes,
    dataBytes: -before.dataBytes,
    indexBytes: -before.indexBytes,
  });

async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(({ name, parentPath }) => stat(join(parentPath, name))));
  return sizes.reduce((sum, { size }) => sum + size, 0);
}
