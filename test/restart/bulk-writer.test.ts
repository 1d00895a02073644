import { expect } from "chai";
import type { Db, MongoClient } from "mongodb";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { BulkWriter } from "../../src/store/bulk-writer.ts";
import { connectMongo } from "../../src/store/connections.ts";

/** A line to the run's MongoDB that can be cut. */
class Line {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: URL) {
    this.#server = createServer((near) => {
      const far = connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
      }
      near.pipe(far).pipe(near);
    });
  }

  async open(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
    return address.port;
  }

  /** Ends every connection, and there are no new ones. */
  async cut(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

describe("Combined writes", () => {
  let line: Line;
  let mongo: MongoClient;
  let db: Db;

  before(async () => {
    const uri = new URL(process.env["TEST_MONGODB_URI"] ?? "");
    line = new Line(new URL(uri));
    uri.port = String(await line.open());
    uri.search = "?directConnection=true&authSource=admin";
    ({ db, mongo } = await connectMongo(uri.toString()));
  });
  after(() => mongo.close());

  it("fail when MongoDB is lost: an error that names no failed write is not taken for success", async () => {
    const ledger = db.collection<{ _id: string }>("ledger");
    const writer = new BulkWriter(ledger);
    const lost = once(mongo, "serverHeartbeatFailed");
    await line.cut();
    await lost;
    const outcomes = await Promise.allSettled([
      writer.write({ insertOne: { document: { _id: "capture/1" } } }),
      writer.write({ updateOne: { filter: { _id: "2" }, update: { $set: { status: "approved" } } } }),
    ]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
  });
});
