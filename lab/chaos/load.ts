import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { codeOf, isPassing } from "./http.ts";
import { newOrder, plainOrder } from "./orders.ts";
import type { Random } from "../random.ts";
import type { Shop } from "./shop.ts";
import type { PayingAgent, Tenant } from "./tenant.ts";
import type { Ticket, Tickets } from "./tickets.ts";

/** Payments under way at the same time at the most, of an organization. */
export const CLIENTS = 8;
/** Of all turns, those in which a client asks again for a payment that it was answered before. */
const REPLAY_SHARE = 0.12;
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 1_000;
/** Between two looks of the owner at what waits. */
const POLL_MS = 300;
const APPROVED_SHARE = 0.45;
const DENIED_SHARE = 0.2;
/** Of what is put on hold, what its agent takes back soon after. */
const CANCELLED_SHARE = 0.25;
/** Approvals that the owner decides at a look. */
const DECIDED_MAX = 4;

const approvals = z.object({ approvals: z.array(z.object({ id: z.string() })) });

export interface LoadOptions {
  readonly tenant: Tenant;
  /** Agents that pay. */
  readonly agents: readonly PayingAgent[];
  readonly shop: Shop;
  readonly tickets: Tickets;
  readonly random: Random;
  /** Begins the keys of its payments. */
  readonly name: string;
  readonly clients: number;
  /** Whether the services' clocks stay right. */
  readonly areClocksCorrect: boolean;
  /** Whether they pay by card without anybody's consent, and once each. */
  readonly isPlain: boolean;
}

/**
 * Clients that pay one payment after another and repeat a request under its key until it is answered, and an owner who
 * decides some of what waits and leaves the rest to expire.
 */
export class Load {
  readonly #options: LoadOptions;
  readonly #stopping = new AbortController();
  readonly #working: Promise<unknown>;
  readonly #decided = new Set<string>();
  #number = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    const clients = Array.from({ length: options.clients }, (_none, index) => this.#pay(index));
    this.#working = Promise.all(options.isPlain ? clients : [...clients, this.#decide()]);
    // `stop` reports what went wrong.
    this.#working.catch(() => undefined);
  }

  /** The clients stop after the request at hand; what has no answer then is left to `finish`. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #pay(client: number): Promise<void> {
    const { agents, areClocksCorrect, isPlain, name, shop, tickets } = this.#options;
    const random = this.#options.random.fork(`client ${String(client)}`);
    while (!this.#stopping.signal.aborted) {
      const known = tickets.all;
      if (!isPlain && known.length > 0 && random.chance(REPLAY_SHARE)) {
        await tickets.send(random.pick(known));
        continue;
      }
      this.#number += 1;
      const key = `${name}-${String(this.#number)}`;
      const options = { random, agents, shop, key, areClocksCorrect };
      const ticket = tickets.open(isPlain ? plainOrder(options) : newOrder(options));
      await this.#see(ticket);
      if (random.chance(CANCELLED_SHARE)) await this.#cancel(ticket);
    }
  }

  /** Sends a payment until it is answered. */
  async #see(ticket: Ticket): Promise<void> {
    const { signal } = this.#stopping;
    for (let pauseMs = RETRY_MIN_MS; !signal.aborted; pauseMs = Math.min(RETRY_MAX_MS, pauseMs * 2)) {
      const answer = await this.#options.tickets.send(ticket);
      const isPaused = codeOf(answer) === "AGENT_PAUSED";
      if (!isPassing(answer) && !isPaused) return;
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Its agent takes a payment on hold back; that it may not, or that there is no answer, is no matter. */
  async #cancel({ isHeld, order, transactionId }: Ticket): Promise<void> {
    if (!isHeld || transactionId === null) return;
    const path = `/v1/payments/${transactionId}/cancel`;
    await this.#options.tenant.service.ask({ method: "POST", path, token: order.agent.apiKey });
  }

  async #decide(): Promise<void> {
    const { tenant } = this.#options;
    const { signal } = this.#stopping;
    const random = this.#options.random.fork("owner");
    while (!signal.aborted) {
      const answer = await tenant.owner.ask({ method: "GET", path: "/v1/approvals/pending" });
      const listed = answer.status === 200 ? approvals.parse(answer.body).approvals : [];
      const fresh = listed.filter(({ id }) => !this.#decided.has(id)).slice(0, DECIDED_MAX);
      await Promise.all(fresh.map(({ id }) => this.#decideOne(id, random)));
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Decides one approval. An unanswered decision stays undecided for the owner until a later look. */
  async #decideOne(id: string, random: Random): Promise<void> {
    const chosen = random.next();
    const path = `/v1/approvals/${id}`;
    if (chosen < APPROVED_SHARE + DENIED_SHARE) {
      const answer =
        chosen < APPROVED_SHARE
          ? await this.#options.tenant.owner.ask({ method: "POST", path: `${path}/approve` })
          : await this.#options.tenant.owner.ask({
              method: "POST",
              path: `${path}/deny`,
              body: { feedback: "no" },
            });
      if (isPassing(answer)) return;
    }
    this.#decided.add(id);
  }
}

/**
 * Repeats every unanswered request once the service is back, and those of open purchases, several at a time. Returns the number of
 * unanswered ones that are left.
 */
export async function finish(tickets: Tickets): Promise<number> {
  const left = [...tickets.unanswered(), ...tickets.unbought()];
  const client = async (): Promise<void> => {
    for (let ticket = left.pop(); ticket !== undefined; ticket = left.pop()) await tickets.send(ticket);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return tickets.unanswered().length;
}
