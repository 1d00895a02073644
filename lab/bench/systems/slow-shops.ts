import { createServer, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { LoadClient } from "../load/client.ts";
import type { PayingAgent } from "./payments-agents.ts";

/** Shops, by their paths: every second one is silent, the others send a body that never ends. */
const SHOPS = 1_000;
/** Calls at a time: as many exchanges as one organization may have. */
const CALLS_AT_ONCE = 64;
const PIECE = Buffer.alloc(1_024, "a");
const PIECE_MS = 200;
const AGAIN_MS = 1_000;

/** Agents that ask at shops which never finish, from when they are started until they are stopped. */
export class SlowShops {
  readonly #port: number;
  readonly #agents: readonly PayingAgent[];
  #server: Server | null = null;
  #asking: Promise<unknown> = Promise.resolve();
  #isStopping = false;
  #next = 0;

  constructor(port: number, agents: readonly PayingAgent[]) {
    this.#port = port;
    this.#agents = agents;
  }

  /** None of the shops asks for money. */
  get paid(): number {
    return 0;
  }

  async start(): Promise<void> {
    if (this.#server !== null) return;
    this.#isStopping = false;
    const server = createServer((request, response) => {
      if (Number(request.url?.slice(1)) % 2 === 0) return;
      response.writeHead(200);
      void dribble(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#server = server;
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
    const client = new LoadClient(this.#port, CALLS_AT_ONCE);
    const asking = Array.from({ length: CALLS_AT_ONCE }, (_none, index) =>
      this.#ask(client, `http://127.0.0.1:${String(address.port)}`, index),
    );
    this.#asking = Promise.all(asking).finally(() => client.close());
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#server?.closeAllConnections();
    this.#server?.close();
    this.#server = null;
    await this.#asking;
  }

  async #ask(client: LoadClient, url: string, index: number): Promise<void> {
    const { apiKey = "" } = this.#agents[index % this.#agents.length] ?? {};
    const headers = { authorization: `Bearer ${apiKey}` };
    while (!this.#isStopping) {
      const body = { url: `${url}/${String(this.#next++ % SHOPS)}`, maxAmountCents: 1, purpose: "slow" };
      const error = await client.send({ path: "/v1/payments/x402", headers, body });
      if (error?.startsWith("503") === true) await sleep(AGAIN_MS);
    }
  }
}

async function dribble(response: ServerResponse): Promise<void> {
  while (!response.destroyed) {
    response.write(PIECE);
    await sleep(PIECE_MS);
  }
}
