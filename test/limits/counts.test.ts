import { mock } from "node:test";
import { expect } from "chai";
import type { Db } from "mongodb";
import { authCollections } from "../../src/store/identity-documents.ts";
import { Organizations } from "../../src/identity/organizations.ts";
import { countedAddress } from "../../src/limits/address.ts";
import { COUNT_RETENTION_SECONDS, type Counts } from "../../src/limits/counts.ts";
import { Limits } from "../../src/limits/limits.ts";
import { MemoryCounts } from "../../src/limits/memory-counts.ts";
import { FixedWindowLimiter } from "../../src/limits/fixed-window-limiter.ts";
import { MongoCounts } from "../../src/limits/mongo-counts.ts";
import { operations } from "../../src/contract/registry.ts";
import { freshAddress } from "../support/api.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";
import { sharedService } from "../support/service.ts";
import { secondService } from "../support/own-service.ts";
import { tally, times } from "../support/world.ts";
import { from, FixedClock } from "./support.ts";

interface StoredCount {
  readonly key: string;
  readonly points: number;
  readonly expire: Date;
}

/** However busy the machine is that runs the tests: none counts for itself. */
const patient = (db: Db) => MongoCounts.on(db, 30_000);

describe("counts", () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.close());

  const inMongoDB = () => patient(database.db);

  const stores: Readonly<Record<string, () => Promise<Counts>>> = {
    "in memory": () => Promise.resolve(new MemoryCounts()),
    "in MongoDB": inMongoDB,
  };
  for (const [where, open] of Object.entries(stores)) {
    it(`${where}: of any number at once exactly the limit's number pass, in each minute anew`, async () => {
      const clock = new FixedClock();
      const limiter = new FixedWindowLimiter(await open(), clock.read);
      for (const _ of times(2, () => null)) {
        const taken = await Promise.all(times(150, () => limiter.consume("a", 100)));
        expect(tally(taken.map(({ exceeded }) => String(exceeded)))).to.deep.equal({ false: 100, true: 50 });
        expect(await limiter.consume("a", 100)).to.include({ remaining: 0, exceeded: true });
        expect(await limiter.consume("b", 100)).to.include({ remaining: 99, exceeded: false });
        clock.nextMinute();
      }
    });

    it(`${where}: looking counts nothing, several count as many`, async () => {
      const limiter = new FixedWindowLimiter(await open(), new FixedClock().read);
      expect(await limiter.peek("c", 10)).to.include({ remaining: 10, exceeded: false });
      expect(await limiter.consume("c", 10, 7)).to.include({ remaining: 3, exceeded: false });
      expect(await limiter.peek("c", 10)).to.include({ remaining: 3, exceeded: false });
      expect(await limiter.consume("c", 10, 7)).to.include({ remaining: 0, exceeded: true });
    });
  }

  for (const [where, open] of Object.entries(stores)) {
    it(`${where}: a /48 of IPv6 has ten times an address's sign-ins and registrations`, async () => {
      const clock = new FixedClock().read;
      const limits = new Limits({
        counts: await open(),
        clock,
        organizations: Organizations.in(authCollections(database.db).organizations, clock),
        devices: { read: () => null },
        onHit: () => undefined,
      });
      const isLetIn = async (address: string, id: "signIn" | "acceptInvite" = "signIn") => {
        const requester = { principal: null, caller: null, address: countedAddress(address) ?? "" };
        return (await limits.routeCaps(id, operations[id].rate, requester)) === null;
      };
      const inOf = async (addresses: readonly string[]) =>
        (await Promise.all(addresses.map((address) => isLetIn(address)))).filter(Boolean).length;
      // What one address is refused takes nothing of its network's.
      expect(await inOf(times(60, (index) => `2001:db8:48:0::${index}`))).to.equal(10);
      expect(await inOf(times(300, (index) => `2001:db8:48:${(index + 1).toString(16)}::1`))).to.equal(90);
      expect(await isLetIn("2001:db8:49:1::1")).to.equal(true);
      expect(await isLetIn("2001:db8:48:ffff::1", "acceptInvite")).to.equal(true);
      expect(await inOf(times(150, (index) => `192.0.2.${index}`))).to.equal(150);
      const registered = async (addresses: readonly string[]) => {
        const counted = addresses.map((address) => limits.ofRegistrations(countedAddress(address) ?? ""));
        return (await Promise.all(counted)).filter(({ exceeded }) => !exceeded).length;
      };
      expect(await registered(times(60, (index) => `2001:db8:48:0::${index}`))).to.equal(10);
      expect(await registered(times(300, (index) => `2001:db8:48:${(index + 1).toString(16)}::1`))).to.equal(
        90,
      );
    });
  }

  it("in memory leave it some time after their minute, however many there were", async () => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    try {
      const counts = new MemoryCounts();
      for (let index = 0; index < 10_000; index += 1) await counts.add(`key ${index}`, 1);
      mock.timers.tick(COUNT_RETENTION_SECONDS * 1_000 - 1);
      expect(counts.size).to.equal(10_000);
      mock.timers.tick(1);
      expect(counts.size).to.equal(0);
    } finally {
      mock.timers.reset();
    }
  });

  it("in MongoDB are shared: two processes' limiters at once let exactly the limit's number pass", async () => {
    const clock = new FixedClock();
    const processes = await Promise.all(
      times(2, async () => new FixedWindowLimiter(await inMongoDB(), clock.read)),
    );
    const asked = processes.flatMap((limiter) => times(75, () => limiter.consume("shared", 100)));
    const passed = (await Promise.all(asked)).filter(({ exceeded }) => !exceeded);
    expect(passed).to.have.lengthOf(100);
  });

  it("in MongoDB cost it nothing once the limit is reached, and it forgets them by itself", async () => {
    const limiter = new FixedWindowLimiter(await inMongoDB(), new FixedClock().read);
    await Promise.all(times(10, () => limiter.consume("busy", 10)));
    await Promise.all(times(50, () => limiter.consume("busy", 10)));
    const collection = database.db.collection<StoredCount>("rate_limits");
    const stored = await collection.findOne({ key: /busy$/ });
    expect(stored?.points).to.equal(10);
    expect((stored?.expire.getTime() ?? 0) - Date.now()).to.be.within(60_000, 90_000);
    const indexes = await collection.indexes();
    const expiry = indexes.find(({ key }) => "expire" in key);
    expect(expiry?.expireAfterSeconds).to.equal(0);
    expect(indexes.find(({ key }) => "key" in key)?.unique).to.equal(true);
  });

  it("in MongoDB go on in each process while it is away: no limit is lifted, no caller waits", async () => {
    const away = await testDatabase();
    const limiter = new FixedWindowLimiter(await MongoCounts.on(away.db), new FixedClock().read);
    await away.close();
    const began = performance.now();
    const taken = await Promise.all(times(150, () => limiter.consume("d", 100)));
    expect(taken.filter(({ exceeded }) => !exceeded)).to.have.lengthOf(100);
    expect(await limiter.peek("d", 100)).to.include({ remaining: 0 });
    // Each of 150 that waited for it would do so for seconds.
    expect(performance.now() - began).to.be.below(30_000);
  });

  it("of a server that has no worker, and so may be one of several, are in MongoDB", async () => {
    const first = await sharedService();
    const second = await secondService(first);
    try {
      const address = freshAddress();
      for (const api of [second.api, first.api]) await api.call("GET", "/v1/agents", from(address));
      const counted = first.db
        .collection<StoredCount>("rate_limits")
        .find({ key: new RegExp(`/${address}$`) });
      expect((await counted.toArray()).map(({ points }) => points)).to.deep.equal([1]);
    } finally {
      await second.stop();
    }
  });
});
