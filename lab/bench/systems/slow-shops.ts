import { createServer, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { gate } from "../../../test/workflows/support/doubles.ts";
import { LoadClient } from "../load/client.ts";
import type { PayingAgent } from "./payments-agents.ts";

/**
 * Shops, by their paths, each with a call of its own, which comes again when it is told to. Every second shop is silent,
 * the others send a body that never ends.
 */
const SHOPS = 1_000;
const PIECE = Buffer.alloc(1_024, "a");
const PIECE_MS = 200;
const refused = z.object({ retry_after_seconds: z.number() });

/** Agents that ask at shops which never finish, from when they are started until they are stopped. */
export class SlowShops {
  readonly #port: number;
  readonly #agents: readonly PayingAgent[];
  #server: Server | null = null;
  #asking: Promise<unknown> = Promise.resolve();
  #stopping = new AbortController();

  constructor(port: number, agents: readonly PayingAgent[]) {
    this.#port = port;
    this.#agents = agents;
  }

  /** None of the shops asks for money. */
  get paid(): number {
    return 0;
  }

  /** Resolves once each call has reached its shop or was told to come again. */
  async start(): Promise<void> {
    if (this.#server !== null) return;
    this.#stopping = new AbortController();
    let seen = 0;
    const begun = gate();
    const see = (): void => {
      seen += 1;
      if (seen === SHOPS) begun.open();
    };
    const server = createServer((request, response) => {
      see();
      if (Number(request.url?.slice(1)) % 2 === 0) return;
      response.writeHead(200);
      void dribble(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#server = server;
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
    const client = new LoadClient(this.#port, SHOPS);
    const asking = Array.from({ length: SHOPS }, (_none, index) =>
      this.#ask(client, `http://127.0.0.1:${String(address.port)}`, index, see),
    );
    this.#asking = Promise.all(asking).finally(() => client.close());
    await begun.opened;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#server?.closeAllConnections();
    this.#server?.close();
    this.#server = null;
    await this.#asking;
  }

  async #ask(client: LoadClient, url: string, index: number, onAnswered: () => void): Promise<void> {
    const { apiKey = "" } = this.#agents[index % this.#agents.length] ?? {};
    const { signal } = this.#stopping;
    const headers = { authorization: `Bearer ${apiKey}` };
    const body = { url: `${url}/${String(index)}`, maxAmountCents: 1, purpose: "slow" };
    while (!signal.aborted) {
      const error = await client.send({ path: "/v1/payments/x402", headers, body });
      onAnswered();
      const seconds = retryAfterSeconds(error);
      // Spread, since clients do not come again at the same moment.
      if (seconds > 0)
        await sleep(seconds * 1_000 * (0.5 + index / SHOPS), undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Time after which a call that was answered 503 is to be repeated; 0 for other answers. */
function retryAfterSeconds(error: string | null): number {
  if (error?.startsWith("503 ") !== true) return 0;
  return refused.parse(JSON.parse(error.slice("503 ".length))).retry_after_seconds;
}

async function dribble(response: ServerResponse): Promise<void> {
  while (!response.destroyed) {
    response.write(PIECE);
    await sleep(PIECE_MS);
  }
}
