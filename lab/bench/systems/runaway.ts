import { LoadClient } from "../load/client.ts";
import type { PayingAgent } from "./payments-agents.ts";

const AT_ONCE = 200;

/** One agent that sends as much as it can, so many payments at a time, from when it is started until it is stopped. */
export class Runaway {
  readonly #port: number;
  readonly #order: Readonly<Record<string, unknown>>;
  readonly #agents: readonly PayingAgent[];
  #running: Promise<unknown> | null = null;
  #isStopping = false;
  #paid = 0;

  constructor(port: number, order: Readonly<Record<string, unknown>>, agents: readonly PayingAgent[]) {
    this.#port = port;
    this.#order = order;
    this.#agents = agents;
  }

  /** Its payments that were answered with success. */
  get paid(): number {
    return this.#paid;
  }

  start(): Promise<void> {
    if (this.#running !== null) return Promise.resolve();
    this.#isStopping = false;
    const client = new LoadClient(this.#port, AT_ONCE);
    const sending = Array.from({ length: AT_ONCE }, (_none, index) => this.#send(client, index));
    this.#running = Promise.all(sending).finally(() => client.close());
    return Promise.resolve();
  }

  /** Done when all that it has sent was answered. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
    this.#running = null;
  }

  async #send(client: LoadClient, index: number): Promise<void> {
    const agent = this.#agents[index % this.#agents.length];
    if (agent === undefined) throw new Error("no agent to run away");
    const headers = { authorization: `Bearer ${agent.apiKey}` };
    while (!this.#isStopping) {
      // A refusal for too much at once is no payment.
      const error = await client.send({ path: "/v1/payments", headers, body: this.#order });
      if (error === null) this.#paid += 1;
    }
  }
}
