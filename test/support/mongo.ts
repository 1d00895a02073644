import { randomBytes } from "node:crypto";
import { MongoClient, type Db } from "mongodb";

export interface TestDatabase {
  readonly db: Db;
  readonly client: MongoClient;
  /** Drops the database and closes the connection. */
  readonly close: () => Promise<void>;
}

const CONNECT_TIMEOUT_MILLISECONDS = 5_000;

/** A database of its own, empty, on the replica set that the test harness has named in TEST_MONGODB_URI. */
export async function testDatabase(): Promise<TestDatabase> {
  const uri = process.env["TEST_MONGODB_URI"];
  if (uri === undefined || uri === "") {
    throw new Error("TEST_MONGODB_URI is not set: it names the mongod (a replica set) that the tests use.");
  }
  const client = await new MongoClient(uri, {
    serverSelectionTimeoutMS: CONNECT_TIMEOUT_MILLISECONDS,
  }).connect();
  const db = client.db(`test_${randomBytes(8).toString("hex")}`);
  const close = async (): Promise<void> => {
    await db.dropDatabase();
    await client.close();
  };
  return { db, client, close };
}
