import { once } from "node:events";
import { Agent, get, type ServerResponse } from "node:http";
import { expect } from "chai";
import { readConfig } from "../../server/config.ts";
import { type HttpServer, listen } from "../../server/http/server.ts";
import { inTime } from "../support/in-time.ts";

describe("a listener", () => {
  const open: ServerResponse[] = [];
  let http: HttpServer;
  let agent: Agent;

  beforeEach(async () => {
    agent = new Agent({ keepAlive: true });
    http = await listen("127.0.0.1", 0, readConfig({}, "127.0.0.1"));
    http.serve((request, response) => {
      open.push(response);
      if (request.url === "/now") response.end("answered");
    });
  });
  afterEach(() => agent.destroy());

  /** Resolves to the answer's header `connection`, or to how the connection ended. */
  const asked = async (path: string) => {
    const request = get({ agent, port: http.port, host: "127.0.0.1", path });
    try {
      const [response] = await once(request, "response");
      response.resume();
      await once(response, "end");
      return response.headers;
    } catch (error) {
      return String(error);
    }
  };
  const received = async (count: number) => {
    while (open.length < count) await new Promise((resolve) => setImmediate(resolve));
  };

  it("keeps idle connections longer than proxies do", async () => {
    expect(await asked("/now")).to.include({ connection: "keep-alive", "keep-alive": "timeout=75" });
    expect(await inTime("a drain with an idle connection", http.drain(), 1_000)).to.equal(0);
  });

  it("that drains answers what is under way, says that the connection closes, and closes it", async () => {
    const before = open.length;
    const answer = asked("/later");
    await received(before + 1);
    const drained = http.drain();
    open[before]?.end("answered");
    expect(await answer).to.include({ connection: "close" });
    expect(await inTime("the drain", drained, 1_000)).to.equal(0);
  });

  it("that drains closes the connection also of an answer that had begun before", async () => {
    const before = open.length;
    const answer = asked("/later");
    await received(before + 1);
    open[before]?.writeHead(200).flushHeaders();
    const drained = http.drain();
    open[before]?.end("answered");
    expect(await answer).to.include({ connection: "keep-alive" });
    expect(await inTime("the drain", drained, 1_000)).to.equal(0);
  });

  it("that drains cuts off what outlasts its bound, and counts it", async () => {
    const before = open.length;
    const answers = Promise.all([asked("/later"), asked("/later")]);
    await received(before + 2);
    expect(await inTime("the drain", http.drain(50), 1_000)).to.equal(2);
    for (const answer of await answers) expect(answer).to.include("socket hang up");
  });
});
