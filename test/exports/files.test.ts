import { EventEmitter, once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import { expect } from "chai";
import express from "express";
import { exportPieces } from "../../server/handlers/export-pieces.ts";
import { oneAtATime } from "../../server/http/connection-limits.ts";
import { FileSender } from "../../server/http/file.ts";

const PIECE = "x".repeat(1_000_000);
const STALLED_MS = 300;

async function* endless(freed: () => void): AsyncGenerator<string> {
  try {
    for (;;) yield PIECE;
  } finally {
    freed();
  }
}

async function* slow(): AsyncGenerator<string> {
  for (let piece = 0; piece < 2; piece += 1) {
    await new Promise((resolve) => setTimeout(resolve, STALLED_MS * 2.5));
    yield "piece\n";
  }
}

async function* broken(): AsyncGenerator<string> {
  yield "a beginning\n";
  await new Promise((resolve) => setImmediate(resolve));
  throw new Error("no more of it can be had");
}

async function* unreadable(): AsyncGenerator<readonly number[], void> {
  yield await Promise.reject(new Error("out of reach"));
}

/** How files are sent, apart from what is in them. */
describe("sending a file", () => {
  let server: Server | null = null;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  /** A server that sends these pieces, and says how it ended. */
  async function serving(pieces: () => AsyncIterable<string>, stalledMs = STALLED_MS) {
    const ended: string[] = [];
    const app = express();
    const files = new FileSender();
    app.get("/:of", async (request, response) => {
      const file = { contentType: "text/plain", fileName: "a.txt", pieces: pieces() };
      try {
        const full = await files.send(response, file, request.params.of);
        if (full !== null) response.status(429).end();
        ended.push(full === null ? "sent" : "refused");
      } catch {
        ended.push("failed");
      }
    });
    server = createServer(oneAtATime(app, { stalledMs, wholeMs: 60_000 })).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("a server has a port");
    const begin = (of = "any"): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        const to = { host: "127.0.0.1", port: address.port, path: `/${of}`, agent: false };
        get(to, resolve).on("error", reject);
      });
    return { begin, ended };
  }

  it("a reader that takes nothing for too long is cut off, and its source is closed", async () => {
    const isFree = new EventEmitter();
    const freed = once(isFree, "freed");
    const { begin } = await serving(() => endless(() => isFree.emit("freed")));
    const response = await begin();
    response.on("error", () => undefined).pause();
    await freed;
    expect(response.complete).to.equal(false);
  });

  it("a reader who takes what there is is not, however long the file takes", async () => {
    const { begin, ended } = await serving(slow);
    const response = await begin();
    let text = "";
    for await (const piece of response.setEncoding("utf8") as AsyncIterable<string>) text += piece;
    expect([text, response.complete, ended]).to.deep.equal(["piece\n".repeat(2), true, ["sent"]]);
  });

  it("an organization that reads many slowly keeps no other's from being sent", async () => {
    // None is cut off meanwhile.
    const { begin } = await serving(() => endless(() => undefined), 60_000);
    const slowly = await Promise.all(Array.from({ length: 8 }, () => begin("one")));
    for (const response of slowly) response.on("error", () => undefined).pause();
    expect((await begin("one")).statusCode).to.equal(429);
    const other = await begin("other");
    other.on("error", () => undefined).pause();
    expect(other.statusCode).to.equal(200);
  });

  it("where a piece can't be had the connection is cut, without a last chunk", async () => {
    const { begin, ended } = await serving(broken);
    const response = await begin();
    const reading = (async () => {
      for await (const _piece of response) continue;
    })();
    const error: unknown = await reading.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.an("error");
    expect([response.complete, ended]).to.deep.equal([false, ["failed"]]);
  });

  it("the first batch is read before anything is answered; one further than was taken, no more", async () => {
    let read = 0;
    async function* batches(): AsyncGenerator<readonly number[], void> {
      for (; read < 10;) yield [(read += 1)];
    }
    const made = await exportPieces(batches(), (line) => `${String(line)}\n`, "head\n");
    const pieces = made[Symbol.asyncIterator]();
    expect(read).to.equal(1);
    expect((await pieces.next()).value).to.equal("head\n");
    expect((await pieces.next()).value).to.equal("1\n");
    await new Promise((resolve) => setImmediate(resolve));
    expect(read).to.equal(2);
    const refused: unknown = await exportPieces(unreadable(), String).catch((error: unknown) => error);
    expect(refused).to.be.an("error");
  });
});
