import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { refusedOf } from "../../../src/client/answers.ts";
import { pause, pauseBefore } from "../../../src/client/retries.ts";
import { gate } from "../../../test/workflows/support/doubles.ts";
import { LoadClient } from "../load/client.ts";
import type { PayingAgent } from "./payments-agents.ts";

/** Shops, by their paths. Every second one is silent, the others send a body that never ends. */
const SHOPS = 1_000;
const PIECE = Buffer.alloc(1_024, "a");
const PIECE_MS = 200;
/** Time over which the first calls arrive, evenly: callers are independent of each other. */
const ARRIVAL_MS = 10_000;
/** Step of an even sequence of fractions without an order. */
const GOLDEN = 0.618_034;

/**
 * Callers' answer to a refusal. `client`: the published client's, which keeps to `retry-after` and gives up after some
 * attempts. `loop`: the same call at once, however often it is refused.
 */
export type Patience = "client" | "loop";

/**
 * 1,000 callers, each with one purchase under way at a shop that never finishes, from their start until they are
 * stopped. A caller whose purchase has ended begins another one. A first pause is cut to a fraction, as if the caller
 * had been refused before: the crowd is met as it is after minutes.
 */
export class SlowShops {
  readonly #port: number;
  readonly #agents: readonly PayingAgent[];
  readonly #patience: Patience;
  #server: Server | null = null;
  #calling: Promise<unknown> = Promise.resolve();
  #stopping = new AbortController();

  constructor(port: number, agents: readonly PayingAgent[], patience: Patience) {
    this.#port = port;
    this.#agents = agents;
    this.#patience = patience;
  }

  /** None of the shops asks for money. */
  get paid(): number {
    return 0;
  }

  /** Resolves once each caller has reached its shop or was told to come again. */
  async start(): Promise<void> {
    if (this.#server !== null) return;
    this.#stopping = new AbortController();
    setMaxListeners(SHOPS, this.#stopping.signal);
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
    const calling = Array.from({ length: SHOPS }, (_none, index) =>
      this.#call(client, `http://127.0.0.1:${String(address.port)}`, index, see),
    );
    this.#calling = Promise.all(calling).finally(() => client.close());
    await begun.opened;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#server?.closeAllConnections();
    this.#server?.close();
    this.#server = null;
    await this.#calling;
  }

  async #call(client: LoadClient, url: string, index: number, onRefused: () => void): Promise<void> {
    const { apiKey = "" } = this.#agents[index % this.#agents.length] ?? {};
    const { signal } = this.#stopping;
    const request = { path: "/v1/payments/x402", headers: { authorization: `Bearer ${apiKey}` } };
    const about = { url: `${url}/${String(index)}`, maxAmountCents: 1, purpose: "slow" };
    let share = (index * GOLDEN) % 1;
    await pause((index / SHOPS) * ARRIVAL_MS, signal);
    while (!signal.aborted) {
      const body = { ...about, idempotencyKey: randomUUID() };
      for (let tries = 1; !signal.aborted; tries += 1) {
        const error = await client.send({ ...request, body });
        const pauseMs = pauseAfter(error, tries);
        if (pauseMs === null) break;
        onRefused();
        await pause(this.#patience === "loop" ? 0 : pauseMs * share, signal);
        share = 1;
      }
    }
  }
}

/** Pause of the published client before it repeats a call; null if it does not. */
function pauseAfter(error: string | null, tries: number): number | null {
  const [, status, text] = /^(\d{3}) (.*)$/s.exec(error ?? "") ?? [];
  if (status === undefined || text === undefined) return null;
  const refused = refusedOf(Number(status), new Headers(), JSON.parse(text));
  return pauseBefore({ method: "POST" }, true, refused, tries);
}

async function dribble(response: ServerResponse): Promise<void> {
  while (!response.destroyed) {
    response.write(PIECE);
    await sleep(PIECE_MS);
  }
}
