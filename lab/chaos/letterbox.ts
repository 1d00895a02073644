import { randomUUID } from "node:crypto";
import { type Received, startTlsReceiver, type TlsReceiver } from "../../test/support/tls-receiver.ts";
import { type Arrival, arrivalOf } from "./audit/delivered.ts";
import { reasonOf } from "./until.ts";

/** Short waits, so that a delivery which met a disaster arrives while its round is being settled. */
const BACKOFF_SECONDS = "1,1,2,2,3,3,5,5";

/** A webhook endpoint of an organization. */
export interface Letters {
  readonly endpointId: string;
  readonly path: string;
  readonly secret: string;
}

/** Receives the organizations' webhooks. No disaster strikes it: it stands for a customer's server. */
export class Letterbox {
  readonly #receiver: TlsReceiver;

  private constructor(receiver: TlsReceiver) {
    this.#receiver = receiver;
  }

  static async open(): Promise<Letterbox> {
    return new Letterbox(await startTlsReceiver());
  }

  /** Settings of roles that deliver to it. */
  get settings(): Readonly<Record<string, string>> {
    return {
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      WEBHOOK_CA_FILE: this.#receiver.caFile,
      WEBHOOK_BACKOFF_SECONDS: BACKOFF_SECONDS,
    };
  }

  /** A place for one endpoint alone. */
  newUrl(): URL {
    return new URL(`/${randomUUID()}`, this.#receiver.url);
  }

  get requests(): number {
    return this.#receiver.requests.length;
  }

  /** Returns the deliveries of an endpoint, and a line for each request that was not genuine. */
  read({ path, secret }: Letters): {
    readonly arrivals: readonly Arrival[];
    readonly forged: readonly string[];
  } {
    const arrivals: Arrival[] = [];
    const forged: string[] = [];
    for (const request of this.#receiver.requests) {
      if (request.path !== path) continue;
      const arrival = this.#opened(request, secret);
      if (typeof arrival === "string") forged.push(arrival);
      else arrivals.push(arrival);
    }
    return { arrivals, forged };
  }

  close(): Promise<void> {
    return this.#receiver.close();
  }

  /** It answers all requests with 204. */
  #opened(request: Received, secret: string): Arrival | string {
    try {
      return arrivalOf(request, secret, true);
    } catch (error) {
      return `${String(request.headers["svc-delivery-id"])}: ${reasonOf(error)}`;
    }
  }
}
