import { expect } from "chai";
import { MongoDriverError, MongoInvalidArgumentError, MongoNetworkError, MongoServerError } from "mongodb";
import { connectedToMongo, plainlyOf } from "../../server/admin/connecting.ts";
import { startMongoProxy } from "../chain/mongo-proxy.ts";
import { PlainError, shownOf } from "../../src/lib/plain-error.ts";

const address = "127.0.0.1:27017";
const grpcError = (code: number, details: string) =>
  Object.assign(new Error(`${code}: ${details}`), { code, details, metadata: {} });

describe("an engine that fails during an admin command", () => {
  it("is named in one line with what to do, and no stack trace", () => {
    const failures = {
      MONGODB_URI: [
        new MongoNetworkError(`connection 3 to ${address} closed`),
        new MongoDriverError("Timed out while checking out a connection from connection pool"),
        new MongoServerError({ message: "not primary", errorLabels: ["RetryableWriteError"] }),
      ],
      TEMPORAL_ADDRESS: [grpcError(14, "No connection established")],
    };
    for (const [setting, errors] of Object.entries(failures))
      for (const error of errors)
        expect(shownOf(plainlyOf(error)))
          .to.match(/^[^\n]+ failed midway: [^\n]+; once it answers, run this again\.$/)
          .and.include(setting);
  });

  it("a defect keeps its stack trace, and a refusal its own line", () => {
    const wrong = new MongoServerError({ message: "unknown operator: $nonsense" });
    const misused = new MongoInvalidArgumentError("an option is wrong");
    for (const error of [
      new TypeError("a defect"),
      wrong,
      misused,
      new PlainError("a refusal"),
      grpcError(3, "bad"),
    ])
      expect(plainlyOf(error)).to.equal(error);
  });

  it("a command on a connection that broke fails so", async () => {
    const proxy = await startMongoProxy(process.env["TEST_MONGODB_URI"] ?? "", "any");
    const failed = connectedToMongo({ MONGODB_URI: proxy.uri }, async ({ db }) => {
      await proxy.close();
      await db.collection("any").findOne();
    });
    expect(await failed.catch(shownOf)).to.match(/^MongoDB \(MONGODB_URI\) failed midway: /);
  });
});
