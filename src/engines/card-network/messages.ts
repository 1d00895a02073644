import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Decision, Endpoint, NetworkEvent, Settings } from "./shapes.ts";

const DELIVERY_TIMEOUT_MS = 10_000;
const DELIVERIES_MAX = 6;
const BACKOFF_MS = 500;
const decisionSchema = z.object({ approved: z.boolean() });

/** Returns headers with a signature in Stripe's format over the exact body sent. */
function signed(body: string, secret: string): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1_000);
  const v1 = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  return { "content-type": "application/json", "stripe-signature": `t=${timestamp},v1=${v1}` };
}

const post = (url: string, secret: string, event: NetworkEvent, timeoutMs: number): Promise<Response> => {
  const body = JSON.stringify(event);
  const signal = AbortSignal.timeout(timeoutMs);
  return fetch(url, { method: "POST", headers: signed(body, secret), body, signal, redirect: "manual" });
};

/** The network's messages, with the configured faults. */
export class NetworkMessages {
  readonly #random: () => number;
  readonly #endpoints: () => readonly Endpoint[];
  readonly #underWay = new Set<Promise<void>>();

  constructor(random: () => number, endpoints: () => readonly Endpoint[]) {
    this.#random = random;
    this.#endpoints = endpoints;
  }

  /** Asks for a decision; the network decides itself if no usable answer arrives in time. */
  async ask(request: NetworkEvent, settings: Settings): Promise<Decision> {
    const { answerTimeoutMs, answersLost, authorizationSecret, authorizationUrl, requestsDoubled } = settings;
    if (authorizationUrl === null) return { approved: true, reason: "card_active" };
    const standIn = (reason: string): Decision => ({ approved: settings.standsIn === "approve", reason });
    const isLost = this.#happens(answersLost);
    const once = (): Promise<Response> =>
      post(authorizationUrl, authorizationSecret, request, answerTimeoutMs);
    if (this.#happens(requestsDoubled)) this.#watch(once().then(() => undefined));
    try {
      const answer = await once();
      const body: unknown = await answer.json();
      if (isLost) return standIn("webhook_timeout");
      const decision = answer.status === 200 ? decisionSchema.safeParse(body) : null;
      if (decision?.success !== true || answer.headers.get("stripe-version") === null)
        return standIn("webhook_error");
      const { approved } = decision.data;
      return { approved, reason: approved ? "webhook_approved" : "webhook_declined" };
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === "TimeoutError";
      return standIn(isLate ? "webhook_timeout" : "webhook_error");
    }
  }

  /** Delivers an event to all endpoints that listen for it; does not wait. */
  deliver(event: NetworkEvent, { delayMaxMs, doubled, lost }: Settings): void {
    const listening = this.#endpoints().filter(({ enabled_events }) =>
      enabled_events.some((type) => type === "*" || type === event.type),
    );
    for (const endpoint of listening) {
      if (this.#happens(lost)) continue;
      const times = this.#happens(doubled) ? 2 : 1;
      for (let time = 0; time < times; time += 1)
        this.#watch(this.#delivered(endpoint, event, Math.floor(this.#random() * delayMaxMs)));
    }
  }

  /** Resolves once no message is in flight. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  async #delivered({ secret, url }: Endpoint, event: NetworkEvent, delayMs: number): Promise<void> {
    if (delayMs > 0) await sleep(delayMs);
    for (let time = 1; time <= DELIVERIES_MAX; time += 1) {
      const answer = await post(url, secret, event, DELIVERY_TIMEOUT_MS).catch(() => null);
      // Cancelling the body would close the connection, and each event would open one.
      await answer?.arrayBuffer().catch(() => null);
      if (answer?.ok === true) return;
      if (time < DELIVERIES_MAX) await sleep(BACKOFF_MS * 2 ** time);
    }
  }

  #watch(work: Promise<void>): void {
    const watched = work.catch(() => undefined).finally(() => this.#underWay.delete(watched));
    this.#underWay.add(watched);
  }

  #happens(share: number): boolean {
    return share > 0 && this.#random() < share;
  }
}
