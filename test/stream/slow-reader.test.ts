import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { expect } from "chai";
import express from "express";
import type { StreamConnection } from "../../src/changes/streams.ts";
import { sendEvents } from "../../server/http/events.ts";
import { ok } from "../../src/domain/result.ts";
import { times, until } from "../support/world.ts";

describe("a stream's line", () => {
  it("a reader who takes nothing is cut off, before what lies ready for it grows", async () => {
    const lines: StreamConnection[] = [];
    let isClosed = false;
    const app = express();
    const stream = {
      open(line: StreamConnection) {
        lines.push(line);
        return ok(() => {
          isClosed = true;
        });
      },
    };
    app.get("/", (_request, response) => {
      sendEvents(
        response,
        stream,
        () => Promise.resolve(null),
        () => undefined,
      );
    });
    const server = createServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no port");
    const socket = connect(address.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    socket.pause();
    const line = await until("the stream is open", () => Promise.resolve(lines[0] ?? null));
    const piece = "x".repeat(64 * 1024);
    let sent = 0;
    await until("it is cut off", () => {
      for (const _index of times(32, (index) => index)) line.send(piece);
      sent += 32 * piece.length;
      return Promise.resolve(isClosed ? true : null);
    });
    // What the kernel takes, and half a megabyte of ours.
    expect(sent).to.be.below(32 * 1024 * 1024);
    socket.destroy();
    server.close();
  });
});
