import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Treatment of one request to the chain. */
export type Mishap =
  | "pass"
  /** The line breaks before the chain receives it. */
  | "cut-before"
  /** The chain does it, and the line breaks before it answers. */
  | "cut-after"
  /** It arrives twice. */
  | "twice"
  /** It arrives late; the answer comes. */
  | "late"
  /** HTTP 429. */
  | "too-many"
  /** 200, and no JSON. */
  | "garbage"
  /** Well-formed JSON that is no answer. */
  | "nonsense"
  /** Nothing, ever. */
  | "silence";

export interface ChainProxy {
  readonly url: string;
  /** Requests so far, by method, those of batches included. */
  readonly calls: ReadonlyMap<string, number>;
  /** Decides each request from now on, by its body. */
  behave(choose: (body: string) => Mishap): void;
  close(): Promise<void>;
}

const LATE_MS = 400;

const undisturbed = (): Mishap => "pass";

/** A proxy between the service and its chain, which does to requests what networks and providers do. */
export async function startChainProxy(target: string): Promise<ChainProxy> {
  let choose: (body: string) => Mishap = undisturbed;
  const calls = new Map<string, number>();
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });
  const forward = async (body: string): Promise<string> => {
    const headers = { "content-type": "application/json" };
    return (await fetch(target, { method: "POST", headers, body })).text();
  };
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString("utf8");
    for (const [, method = ""] of body.matchAll(/"method":"(\w+)"/g)) {
      calls.set(method, (calls.get(method) ?? 0) + 1);
    }
    const reply = (status: number, text: string): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(text);
    };
    switch (choose(body)) {
      case "cut-before":
        return void response.destroy();
      case "cut-after":
        await forward(body);
        return void response.destroy();
      case "twice":
        await forward(body);
        break;
      case "late":
        await sleep(LATE_MS);
        break;
      case "too-many":
        return reply(429, '{"error":"slow down"}');
      case "garbage":
        return reply(200, "<html>welcome</html>");
      case "nonsense":
        return reply(200, '{"jsonrpc":"2.0","id":1,"result":{"not":"it"}}');
      case "silence":
        return;
      case "pass":
        break;
    }
    reply(200, await forward(body));
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a proxy has a port");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    calls,
    behave(next) {
      choose = next;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
