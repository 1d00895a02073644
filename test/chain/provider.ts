import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

/** An endpoint's way with a batch above its bound. */
export type BatchRefusal =
  "error object" | "array of one error" | "HTTP 400" | "HTTP 413" | "HTTP 500" | "cut" | "first ones";

export interface ProviderOptions {
  /** Calls that it takes in one array; 0: it takes no arrays. */
  readonly batchMax?: number;
  readonly batchRefusal?: BatchRefusal;
  /** Blocks whose states it keeps, as a node that prunes. */
  readonly statesKept?: number;
  /** Time that it takes for each broadcast. It drops the rest of a request whose client has gone. */
  readonly broadcastMs?: number;
  /** Decides by its body whether a request is answered with HTTP 429. */
  readonly isTooMany?: (body: string) => boolean;
}

export interface Provider {
  readonly url: string;
  /** Calls that asked for a state which was dropped. */
  readonly missed: readonly string[];
  close(): Promise<void>;
}

/** The endpoint's answer to a batch above its bound. */
export const TOO_LARGE = "batch too large, upgrade your plan";

const call = z.object({
  jsonrpc: z.string(),
  id: z.number(),
  method: z.string(),
  params: z.array(z.unknown()).optional(),
});
type Call = z.infer<typeof call>;

/** An RPC endpoint in front of a chain, with the bounds that providers set. */
export async function startProvider(target: string, options: ProviderOptions = {}): Promise<Provider> {
  const {
    batchMax = Infinity,
    batchRefusal = "error object",
    broadcastMs = 0,
    isTooMany = () => false,
    statesKept,
  } = options;
  const missed: string[] = [];

  async function forward(some: readonly Call[]): Promise<unknown[]> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(target, { method: "POST", headers, body: JSON.stringify(some) });
    return z.array(z.unknown()).parse(await answer.json());
  }

  async function answersTo(some: readonly Call[]): Promise<unknown[]> {
    if (statesKept === undefined) return forward(some);
    const [head] = await forward([{ jsonrpc: "2.0", id: 0, method: "eth_blockNumber" }]);
    const oldest = Number(z.object({ result: z.string() }).parse(head).result) - statesKept + 1;
    const isMissed = (each: Call): boolean => (stateOf(each) ?? oldest) < oldest;
    missed.push(...some.filter(isMissed).map(({ method }) => method));
    const kept = some.filter((each) => !isMissed(each));
    const answers = kept.length === 0 ? [] : await forward(kept);
    const error = { code: -32000, message: "missing trie node 1f3a (path )" };
    return some.map((each) => (isMissed(each) ? { jsonrpc: "2.0", id: each.id, error } : answers.shift()));
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const text = Buffer.concat(chunks).toString("utf8");
    const body: unknown = JSON.parse(text);
    const reply = (status: number, content: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(content));
    };
    if (isTooMany(text)) return reply(429, { error: "slow down" });
    if (broadcastMs > 0 && JSON.stringify(body).includes("eth_sendRawTransaction")) {
      const answers: unknown[] = [];
      for (const each of z.array(call).parse([body].flat())) {
        await sleep(broadcastMs);
        if (response.destroyed) return;
        answers.push(...(await forward([each])));
      }
      return reply(200, Array.isArray(body) ? answers : answers[0]);
    }
    if (!Array.isArray(body)) return reply(200, (await answersTo([call.parse(body)]))[0]);
    const batch = z.array(call).parse(body);
    if (batch.length <= batchMax) return reply(200, await answersTo(batch));
    const error = {
      jsonrpc: "2.0",
      id: null,
      error: { code: -32600, message: `${TOO_LARGE} ${request.url ?? ""}` },
    };
    switch (batchRefusal) {
      case "error object":
        return reply(200, error);
      case "array of one error":
        return reply(200, [error]);
      case "HTTP 400":
      case "HTTP 413":
      case "HTTP 500":
        return reply(Number(batchRefusal.slice("HTTP ".length)), error);
      case "cut":
        return void response.destroy();
      case "first ones":
        return reply(200, await answersTo(batch.slice(0, batchMax)));
    }
  }

  const server = createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server has a port");
  return {
    url: `http://127.0.0.1:${String(address.port)}`,
    missed,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The block whose state a call reads; null: the newest, or it reads none. */
function stateOf({ method, params = [] }: Call): number | null {
  const reads = ["eth_getTransactionCount", "eth_call", "eth_getBalance", "eth_getCode"];
  const block = params[1];
  return reads.includes(method) && typeof block === "string" && block.startsWith("0x") ? Number(block) : null;
}
