import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { connectionsMax, endIfSilent, oneAtATime } from "../../server/http/connections.ts";
import { inTime } from "../support/in-time.ts";
import { sharedService } from "../support/service.ts";
import { times } from "../support/world.ts";

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
    const sockets = times(4, () => connect(Number(port), hostname));
    try {
      for (const socket of sockets) {
        socket.on("error", () => undefined);
        socket.pause();
        socket.write(get(script).repeat(60));
      }
      const { status } = await inTime("/healthz", api.call("GET", "/healthz"), 1_000);
      expect(status).to.equal(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it("a connection that says nothing is ended, one that has begun a request is not", async () => {
    const server = createServer((_request, response) => void response.end());
    server.on("connection", (socket) => endIfSilent(socket, 50));
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

  it("fewer connections than files that may be open are taken", () => {
    expect(connectionsMax()).to.be.within(1, 10_000);
  });
});
