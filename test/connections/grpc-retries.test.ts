import { once } from "node:events";
import { createServer, type Http2Server } from "node:http2";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { expect } from "chai";
import { GrpcRetries } from "../../src/lib/grpc-retries.ts";

const TOO_MANY = "limit on number of concurrent in-flight updates has been reached (10)";
const RESOURCE_EXHAUSTED = "8";
const REFUSALS = 5;
/** The client's own backoff waits longer before the first retry alone. */
const RETRIED_WITHIN_MS = 1_000;

const bytes = (value: Buffer) => value;

describe("an update that Temporal has no slot for", () => {
  let server: Http2Server;
  let client: Client;
  let refusals = 0;

  before(async () => {
    server = createServer();
    server.on("stream", (stream) => {
      const headers = { ":status": 200, "content-type": "application/grpc" };
      refusals -= 1;
      if (refusals >= 0) {
        const refused = { "grpc-status": RESOURCE_EXHAUSTED, "grpc-message": TOO_MANY };
        return stream.respond({ ...headers, ...refused }, { endStream: true });
      }
      stream.respond(headers, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.alloc(5));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("it has no port");
    client = new Client(`127.0.0.1:${String(address.port)}`, credentials.createInsecure(), {
      interceptors: [new GrpcRetries().interceptor],
    });
  });
  after(() => {
    client.close();
    server.close();
  });

  const call = (withinMs: number) =>
    new Promise<ServiceError | null>((resolve) => {
      const options = { deadline: Date.now() + withinMs };
      client.makeUnaryRequest("/update", bytes, bytes, Buffer.alloc(0), options, (error) => resolve(error));
    });

  it("is retried within milliseconds, each time", async () => {
    refusals = REFUSALS;
    const sentMs = performance.now();
    expect(await call(10_000)).to.equal(null);
    expect(performance.now() - sentMs).to.be.below(RETRIED_WITHIN_MS);
  });

  it("and no longer than the call may take", async () => {
    refusals = Infinity;
    const sentMs = performance.now();
    expect((await call(100))?.code).to.be.oneOf([4, 8]);
    expect(performance.now() - sentMs).to.be.below(RETRIED_WITHIN_MS);
  });
});
