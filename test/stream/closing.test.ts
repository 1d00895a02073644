import { expect } from "chai";
import type { ChangeStream, Db } from "mongodb";
import { ChangeFeed } from "../../src/changes/feed.ts";
import { testDatabase } from "../support/mongo.ts";
import { shortOrSoak } from "../support/soak.ts";
import { until } from "../support/world.ts";

/** A loop that goes on asking would let no timer of the test run any more. */
const CALLS_MAX = 1_000;
const ROUNDS = shortOrSoak(6, 60);

interface Watched {
  readonly db: Db;
  /** How often its change streams were asked in all. */
  readonly calls: () => number;
}

function watched(db: Db): Watched {
  let calls = 0;
  const asked = new Proxy(db, {
    get(target, name) {
      if (name === "watch") {
        return (...options: Parameters<Db["watch"]>): ChangeStream => {
          const stream = target.watch(...options);
          const tryNext = stream.tryNext.bind(stream);
          stream.tryNext = () => {
            calls += 1;
            if (calls > CALLS_MAX) throw new Error("a closed stream is asked without end");
            return tryNext();
          };
          return stream;
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { db: asked, calls: () => calls };
}

async function opened() {
  const database = await testDatabase();
  const told: string[] = [];
  const errors: unknown[] = [];
  const listener = {
    begun: () => void told.push("begun"),
    changed: () => undefined,
    peopleChanged: () => void told.push("people"),
    interrupted: () => void told.push("interrupted"),
  };
  const { calls, db } = watched(database.db);
  const feed = new ChangeFeed(db, listener, (error) => void errors.push(error));
  await database.db.collection("users").insertOne({ name: "before" });
  await feed.open();
  await feed.caughtUp();
  return { calls, database, errors, feed, told };
}

describe("the feed of changes, whose stream ends", () => {
  it("by the feed itself, while MongoDB answers: the process goes on", async () => {
    const { calls, database, feed } = await opened();
    for (let round = 0; round < ROUNDS; round += 1) {
      await feed.open();
      await feed.caughtUp();
      // The answer is on its way when the stream is closed.
      const written = database.db.collection("users").updateOne({ name: "before" }, { $inc: { round: 1 } });
      if (round % 2 === 0) await written;
      await feed.close();
      await written;
      expect(calls(), `in round ${String(round)}`).to.be.below(CALLS_MAX);
    }
    await database.close();
  });

  it("by a client that is closed: the process goes on, and the feed closes", async () => {
    const { calls, database, feed } = await opened();
    await database.client.close();
    await feed.close();
    expect(calls()).to.be.below(CALLS_MAX);
  });

  it("by a database that is dropped: it is opened again, and tells of what comes then", async () => {
    const { calls, database, errors, feed, told } = await opened();
    const { db } = database;
    await db.dropDatabase();
    await until("it goes on", () => Promise.resolve(told.includes("interrupted") ? true : null));
    await db.collection<{ _id: string; name: string }>("users").insertOne({ _id: "usr", name: "one" });
    await until("a change is told", async () => {
      await db
        .collection<{ _id: string; name: string }>("users")
        .updateOne({ _id: "usr" }, [{ $set: { name: { $concat: ["$name", "."] } } }]);
      return told.includes("people") ? true : null;
    });
    expect([...new Set(errors.map(String))]).to.deep.equal(["Error: MongoDB ended the stream of changes"]);
    expect(calls()).to.be.below(CALLS_MAX);
    await feed.close();
    await database.close();
  });
});
