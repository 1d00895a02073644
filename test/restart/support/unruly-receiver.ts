import { setTimeout as sleep } from "node:timers/promises";
import { type Arrival, arrivalOf } from "../../../lab/chaos/audit/delivered.ts";
import { Random } from "../../../lab/random.ts";
import {
  type Handler,
  type Received,
  startTlsReceiver,
  type TlsReceiver,
} from "../../support/tls-receiver.ts";

/** How a receiver answers. */
const MOODS = ["fine", "slow", "error", "redirect", "hang-up", "reset"] as const;
type Mood = (typeof MOODS)[number];

/** Of the requests that are not to be well received; half of all are. */
const UNRULY_SHARE = 0.5;
/** So often a delivery fails at the most, so that each arrives before its attempts are used up. */
const FAILURES_MAX = 5;
const SLOW_MAX_MS = 700;
/** Where it redirects to. No delivery is to go there. */
export const ELSEWHERE = "/elsewhere";

/** A receiver that fails as a seed has it: a delivery's answers do not depend on what else comes when. */
export class UnrulyReceiver {
  readonly tls: TlsReceiver;
  readonly #acknowledged = new Set<Received>();
  readonly #answers = new Map<Mood, number>();

  private constructor(tls: TlsReceiver) {
    this.tls = tls;
  }

  /** Requests to one of the calm paths never fail. */
  static async start(seed: number, calm: readonly string[]): Promise<UnrulyReceiver> {
    const receiver = new UnrulyReceiver(await startTlsReceiver());
    receiver.tls.respondWith(receiver.#unruly(seed, calm));
    return receiver;
  }

  /** From now on nothing fails any more. */
  beWell(): void {
    this.tls.respondWith((request, response) => this.#answer("fine", request, response));
  }

  /** What it did with requests, for people. */
  get answers(): string {
    return [...this.#answers].map(([mood, count]) => `${String(count)} ${mood}`).join(", ");
  }

  /** As soon as one more request than by now has come: its sender knows nothing of its end, or has not written it down. */
  async nextRequest(): Promise<void> {
    await this.tls.received(this.tls.requests.length + 1);
  }

  /** What came to a path, each verified as receivers do. */
  arrivalsAt(path: string, secret: string): Arrival[] {
    return this.tls.requests
      .filter((request) => request.path === path)
      .map((request) => arrivalOf(request, secret, this.#acknowledged.has(request)));
  }

  #unruly(seed: number, calm: readonly string[]): Handler {
    const failures = new Map<string, number>();
    const requests = new Map<string, number>();
    return (request, response) => {
      const key = String(request.headers["svc-delivery-id"]);
      const random = new Random(seed).fork(`${key} ${String(counted(requests, key))}`);
      const isFine = calm.includes(request.path) || !random.chance(UNRULY_SHARE);
      const mood = isFine ? "fine" : random.pick(MOODS);
      const isFailure = mood !== "fine" && mood !== "slow";
      if (isFailure && counted(failures, key) > FAILURES_MAX) return this.#answer("fine", request, response);
      this.#answer(mood, request, response, random.between(1, SLOW_MAX_MS));
    };
  }

  #answer(mood: Mood, request: Received, response: Parameters<Handler>[1], slowMs = 0): void {
    this.#answers.set(mood, (this.#answers.get(mood) ?? 0) + 1);
    const acknowledge = (): void => {
      this.#acknowledged.add(request);
      response.writeHead(204).end();
    };
    switch (mood) {
      case "fine":
        return acknowledge();
      case "slow":
        return void sleep(slowMs).then(acknowledge);
      case "error":
        return void response.writeHead(500).end("not now");
      case "redirect":
        return void response.writeHead(307, { location: new URL(ELSEWHERE, this.tls.url).toString() }).end();
      case "hang-up":
        return void sleep(slowMs).then(() => response.destroy());
      case "reset":
        return this.tls.reset(response);
    }
  }
}

function counted(counts: Map<string, number>, key: string): number {
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  return count;
}
