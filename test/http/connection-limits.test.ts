import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import express from "express";
import type { TrustedProxies } from "../../server/config-values.ts";
import { trustedProxy } from "../../server/http/app.ts";
import { connectionsMax, endIfSilent, oneAtATime } from "../../server/http/connection-limits.ts";
import { listen } from "../../server/http/server.ts";
import { inTime } from "../support/in-time.ts";
import { sharedService } from "../support/service.ts";
import { times, until } from "../support/world.ts";

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

describe("requests that a connection sends ahead", () => {
  it("begin one after another, each once the one before it is answered, in their order", async () => {
    const begun: string[] = [];
    const open: ServerResponse[] = [];
    const server = createServer(
      oneAtATime((request, response) => {
        begun.push(request.url ?? "");
        open.push(response);
        server.emit("begun");
      }),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, "127.0.0.1");
    const paths = times(5, (index) => `/${index}`);
    const first = once(server, "begun");
    socket.write(paths.map(get).join(""));
    await first;
    for (const index of paths.keys()) {
      expect(begun).to.deep.equal(paths.slice(0, index + 1));
      const next = index + 1 < paths.length ? once(server, "begun") : null;
      open[index]?.end(`answer ${index}`);
      await next;
    }
    socket.end();
    const answers = (await text(socket)).match(/answer \d/g);
    expect(answers).to.deep.equal(paths.map((_path, index) => `answer ${index}`));
    server.close();
  });

  it("are cut where they go on without end", async () => {
    const server = createServer(oneAtATime(() => undefined));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(get("/").repeat(200));
    await once(socket, "close");
    server.close();
  });

  it("hundreds for the largest file, never read: everybody else is answered meanwhile", async () => {
    const { api, baseUrl } = await sharedService();
    const page = await (await fetch(`${baseUrl}/docs`)).text();
    const [script = ""] = /\/assets\/[0-9a-f]+\/swagger-ui-bundle\.js/.exec(page) ?? [];
    expect(script).not.to.equal("");
    const { hostname, port } = new URL(baseUrl);
    const sockets = times(50, () => connect(Number(port), hostname));
    try {
      for (const socket of sockets) {
        socket.on("error", () => undefined);
        socket.pause();
        socket.write(get(script).repeat(5));
      }
      const { status } = await inTime("/healthz", api.call("GET", "/healthz"), 1_000);
      expect(status).to.equal(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  for (const [how, bounds, takes] of [
    ["nothing", { stalledMs: 200, wholeMs: 60_000 }, false],
    ["it drop by drop", { stalledMs: 60_000, wholeMs: 500 }, true],
  ] as const) {
    it(`one that takes ${how} of an answer is cut, with what it has sent ahead`, async () => {
      let begun = 0;
      const large = Buffer.alloc(64 * 1024 * 1024);
      const server = createServer(
        oneAtATime((_request, response) => {
          begun += 1;
          response.end(large);
        }, bounds),
      );
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const connected = once(server, "connection");
      const socket = connect(port, "127.0.0.1").pause();
      socket.on("error", () => undefined);
      const [own] = (await connected) as [Socket];
      const cut = once(own, "close");
      socket.write(get("/").repeat(3));
      const drops = setInterval(() => (takes ? socket.read(1_000) : null), 20);
      await cut;
      clearInterval(drops);
      expect(begun).to.equal(1);
      socket.destroy();
      server.close();
    });
  }

  it("one that never ends its request, nor closes what is refused, is closed all the same", async () => {
    const { baseUrl } = await sharedService();
    const { hostname, port } = new URL(baseUrl);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    socket.on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    // The server gives it up after some ten seconds.
    socket.write("GET / HTTP/1.1\r\n");
    let said = "";
    socket.setEncoding("utf8").on("data", (piece: string) => (said += piece));
    await once(socket, "end");
    expect(said).to.match(/^HTTP\/1\.1 400 /);
    // Its own half stays open: what it sends meets a connection that is gone.
    const dripping = setInterval(() => socket.write("x"), 100);
    await closed;
    clearInterval(dripping);
  });

  it("a connection that says nothing is ended, one that has begun a request is not", async () => {
    const server = createServer((_request, response) => void response.end());
    // Far longer than a busy machine takes from a connection to its first byte.
    server.on("connection", (socket) => endIfSilent(socket, 1_000));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const [silent, begun] = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
    begun.write("GET / HTTP/1.1\r\n");
    await once(silent, "close");
    expect(begun.destroyed).to.equal(false);
    begun.write("Host: localhost\r\nConnection: close\r\n\r\n");
    expect(await text(begun)).to.match(/^HTTP\/1\.1 200 /);
    server.close();
  });

  it("an address has its share of them, and another address what is left", async () => {
    const refused: string[] = [];
    const http = await listen("127.0.0.1", 0);
    const share = { ofAddressMax: 3, isProxy: (address: string) => address.endsWith("127.0.0.9") };
    http.serve((_request, response) => void response.end("answered"), {
      ...share,
      onRefused: (address) => refused.push(address),
    });
    const open: Socket[] = [];
    const from = async (localAddress: string) => {
      const socket = connect({ port: http.port, host: "127.0.0.1", localAddress });
      open.push(socket.on("error", () => undefined));
      await once(socket, "connect");
      socket.write(get("/"));
      return await Promise.race([
        once(socket, "data").then(() => true),
        once(socket, "close").then(() => false),
      ]);
    };
    for (const _index of times(3, () => null)) expect(await from("127.0.0.2")).to.equal(true);
    expect(await from("127.0.0.2"), "the fourth").to.equal(false);
    expect(await from("127.0.0.2"), "the fifth").to.equal(false);
    expect(refused, "once a minute").to.deep.equal(["127.0.0.2"]);
    expect(await from("127.0.0.3")).to.equal(true);
    for (const _index of times(5, () => null)) expect(await from("127.0.0.9"), "a proxy").to.equal(true);
    const [first] = open;
    first?.destroy();
    await until("its place is free", async () => (await from("127.0.0.2")) || null);
    for (const socket of open) socket.destroy();
    await http.drain();
  });

  it("localhost is IPv4 and IPv6, and no other program may have its port at either", async function () {
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    if (!addresses.some(({ address }) => address === "::1")) this.skip();
    const http = await listen("localhost", 0);
    http.serve((_request, response) => void response.end("answered"));
    for (const host of ["127.0.0.1", "[::1]"]) {
      expect(await (await fetch(`http://${host}:${http.port}/`)).text(), host).to.equal("answered");
    }
    const { port } = http;
    await http.drain();
    const other = createServer().listen(port, "::1");
    await once(other, "listening");
    expect(await listen("localhost", port).then(() => "listens", String)).to.include(
      `Port ${port} on ::1 is taken`,
    );
    const both = createServer().listen(port, "127.0.0.1");
    await once(both, "listening");
    for (const server of [other, both]) server.close();
  });

  const PROXIES: readonly (readonly [TrustedProxies, boolean])[] = [
    [false, false],
    [1, true],
    [["10.0.0.0/8"], true],
    [["loopback"], false],
  ];
  for (const [trusted, isProxy] of PROXIES) {
    it(`are a proxy's: ${String(isProxy)}, where ${JSON.stringify(trusted)} is trusted`, () => {
      const app = express().set("trust proxy", trusted);
      expect(trustedProxy(app)("10.1.2.3")).to.equal(isProxy);
    });
  }

  it("fewer connections than files that may be open are taken", () => {
    expect(connectionsMax()).to.be.within(1, 10_000);
  });
});
