import { randomUUID } from "node:crypto";
import { get, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { z } from "zod";

import { collectionsOf } from "../../src/store/collections.ts";
import { EXPORTED_AT_ONCE } from "../../server/handlers/export-pieces.ts";
import { transactionOf } from "../support/payments-in-place.ts";
import { startTestService, type TestService } from "../support/service.ts";
import { newWorld, times, until, type World } from "../support/world.ts";

const ROWS = 5_000;
/** What reading the whole file takes of MongoDB. */
const READS = ROWS / EXPORTED_AT_ONCE;
/** With it a row is some 8 KB, so that the file is far larger than all that sockets and streams hold. */
const LONG = "x".repeat(8_000);

/** Of the file, from one look at the memory to the next. */
const HELD_EVERY_BYTES = 8_000_000;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Memory in use after a collection; the second one waits for the buffers that the first one frees beside it. */
function heldBytes(): number {
  collect();
  collect();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const top = z.object({ totals: z.record(z.string(), z.unknown()) });
const counted = z.object({ queries: z.object({ count: z.number() }) });

/** A number once it does not change any more for a while. */
async function settled(read: () => Promise<number>): Promise<number> {
  let last = await read();
  return until("nothing more is read", async () => {
    await sleep(300);
    const next = await read();
    const isSettled = next === last;
    last = next;
    return isSettled ? next : null;
  });
}

describe("the export of many transactions", () => {
  let service: TestService;
  let world: World;
  before(async () => {
    service = await startTestService({ worker: false });
    world = await newWorld(service);
    const place = { ...world.organization, agentId: randomUUID() };
    const { transactions } = collectionsOf(service.db);
    for (let written = 0; written < ROWS; written += 1_000) {
      await transactions.insertMany(
        times(1_000, (index) =>
          transactionOf(world.organization.organizationId, place, {
            purpose: LONG,
            // Forty of each instant.
            createdAt: new Date(Date.UTC(2026, 0, 1) + Math.floor((written + index) / 40)),
          }),
        ),
      );
    }
  });
  after(() => service.stop());

  /** An export of which nothing is taken but what the reader asks for. */
  function begun(method = "GET"): Promise<IncomingMessage> {
    const url = new URL("/v1/transactions/export", service.baseUrl);
    const headers = { authorization: `Bearer ${world.token}`, "x-forwarded-for": "10.9.8.7" };
    return new Promise((resolve, reject) => {
      get(url, { method, headers, agent: false }, resolve).on("error", reject).end();
    });
  }

  /** Reads of the collection so far, by MongoDB's own count, which asking for it does not add to. */
  async function reads(): Promise<number> {
    const { totals } = top.parse(await service.connections.mongo.db("admin").command({ top: 1 }));
    return counted.parse(totals[`${service.db.databaseName}.transactions`]).queries.count;
  }

  /** Cursors that are open on this database, used or not. */
  async function openCursors(): Promise<number> {
    const admin = service.connections.mongo.db("admin");
    const ns = `${service.db.databaseName}.transactions`;
    const found = await admin
      .aggregate([
        { $currentOp: { allUsers: true, idleCursors: true } },
        { $match: { ns, "cursor.cursorId": { $exists: true } } },
      ])
      .toArray();
    return found.length;
  }

  it("a client that does not read makes the service read nothing more, and hold no more of it", async () => {
    const before = await reads();
    const response = await begun();
    const taken = (await settled(reads)) - before;
    expect(taken).to.be.within(1, READS / 2);
    expect(await openCursors()).to.equal(0);
    const held: number[] = [];
    const rows: string[] = [];
    let [bytes, left] = [0, ""];
    for await (const piece of response.setEncoding("utf8") as AsyncIterable<string>) {
      if (bytes >= held.length * HELD_EVERY_BYTES) held.push(heldBytes());
      bytes += piece.length;
      const lines = (left + piece).split("\r\n");
      left = lines.pop() ?? "";
      for (const line of lines) {
        const [id = "", createdAt = ""] = line.split(",", 2);
        // A copy, which keeps no line in memory.
        rows.push(Buffer.from(`${createdAt} ${id}`).toString());
      }
    }
    expect(bytes).to.be.greaterThan(ROWS * LONG.length);
    expect(response.complete).to.equal(true);
    expect(held.length).to.be.at.least(5);
    // A service that kept what it sent would hold 20 MB of the file and more in every look of the second half.
    const grown = Math.min(...held.slice(Math.ceil(held.length / 2))) - (held[0] ?? 0);
    expect(grown, "bytes that are held beyond those at its beginning").to.be.lessThan(16 * 2 ** 20);
    // Every payment once, newest first, though forty share each instant.
    const listed = rows.slice(1);
    expect(new Set(listed).size).to.equal(ROWS);
    expect(listed).to.deep.equal(listed.toSorted().toReversed());
  });

  it("a client that goes away frees everything: nothing more is read, no cursor is open", async () => {
    const before = await reads();
    const response = await begun();
    await new Promise((resolve) => response.once("data", resolve));
    response.destroy();
    const taken = (await settled(reads)) - before;
    expect(taken).to.be.lessThan(READS);
    expect(await openCursors()).to.equal(0);
  });

  it("an error midway cuts the connection: what has come does not pass for the whole", async () => {
    const { transactions } = collectionsOf(service.db);
    const response = await begun();
    await settled(reads);
    // The next read names an index that is gone.
    const key = { organizationId: 1, rail: 1, createdAt: -1, _id: -1 } as const;
    await transactions.dropIndex("organizationId_1_rail_1_createdAt_-1__id_-1");
    try {
      let bytes = 0;
      const error = await (async () => {
        for await (const piece of response as AsyncIterable<Buffer>) bytes += piece.length;
      })().then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).to.be.an("error");
      expect(response.complete).to.equal(false);
      expect(bytes).to.be.within(1, ROWS * LONG.length);
    } finally {
      await transactions.createIndex(key);
    }
  });

  it("HEAD is answered with the file's headers and none of it", async () => {
    const before = await reads();
    const response = await begun("HEAD");
    expect(response.statusCode).to.equal(200);
    expect(response.headers["content-type"]).to.equal("text/csv; charset=utf-8");
    expect(response.headers["content-disposition"]).to.match(/^attachment/);
    response.resume();
    await new Promise((resolve) => response.once("end", resolve));
    expect((await settled(reads)) - before).to.be.lessThan(4);
  });
});
