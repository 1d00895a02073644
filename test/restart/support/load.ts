import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { z } from "zod";
import { type Answer, type Api, REPEAT_AFTER_MS } from "../../support/api.ts";
import { until } from "../../support/process.ts";

/** One payment that a client asked for, and how that went. */
export interface Sent {
  readonly apiKey: string;
  readonly idempotencyKey: string;
  readonly merchant: string;
  readonly amountCents: number;
  readonly ms: number;
  /** Null: the line broke before there was an answer. */
  readonly status: number | null;
  readonly transactionId: string | null;
}

export interface LoadOptions {
  readonly apiKeys: readonly string[];
  readonly apis: readonly Api[];
  /** Clients that each pay one payment after another. */
  readonly clients: number;
  /** Tells one load's payments from another's. */
  readonly name: string;
  /** Clients that are told to come again do so with the same payment, instead of going on with their next one. */
  readonly comeAgain?: boolean;
  /** Every so many turns a client repeats one of the load's earlier payments instead, under its key. */
  readonly retryEvery?: number;
}

const paid = z.object({ transaction: z.object({ id: z.string(), status: z.string() }) });
const REPEATS_MAX = 20;
const PAID_MS = 150_000;
/** A prime, so that the retries go through all that was sent. */
const RETRY_STRIDE = 7_919;

/**
 * Clients that pay as fast as they are answered, each payment under a key of its own and with an amount that its
 * number gives. A client whose line breaks gives up; one that is told 503 goes on with its next payment.
 */
export class Load {
  readonly #options: LoadOptions;
  readonly #sent: Sent[] = [];
  readonly #clients: Promise<void>[];
  #number = 0;
  #turns = 0;
  #retries = 0;
  #stopped = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#clients = Array.from({ length: options.clients }, (_none, index) => this.#run(index));
    // What went wrong is told by `stop`.
    for (const client of this.#clients) client.catch(() => undefined);
  }

  async #run(client: number): Promise<void> {
    const { apiKeys, apis } = this.#options;
    const apiKey = apiKeys[client % apiKeys.length];
    const api = apis[client % apis.length];
    if (apiKey === undefined || api === undefined) throw new Error("a load needs a key and a service");
    while (!this.#stopped) {
      this.#turns += 1;
      if (this.#turns % (this.#options.retryEvery ?? Infinity) === 0) {
        await this.#retry(api);
        continue;
      }
      this.#number += 1;
      const key = `${this.#options.name}-${this.#number}`;
      const one = await this.#pay(api, apiKey, key, 1 + (this.#number % 97));
      this.#sent.push(one);
      if (one.status === null) return;
    }
  }

  async #pay(api: Api, apiKey: string, key: string, amountCents: number): Promise<Sent> {
    for (let repeats = 0; ; repeats += 1) {
      const one = await pay(api, apiKey, key, amountCents);
      const isToldToComeAgain = one.status === 503 && this.#options.comeAgain === true;
      // 200: it was made by a request that was answered 503.
      if (!isToldToComeAgain) return repeats > 0 && one.status === 200 ? { ...one, status: 201 } : one;
      if (repeats === REPEATS_MAX) return one;
      await sleep(REPEAT_AFTER_MS);
    }
  }

  /** Repeats an earlier payment: the latest, the earliest, or one in between, as the turn has it. */
  async #retry(api: Api): Promise<void> {
    const one = this.#sent[(this.#turns * RETRY_STRIDE) % this.#sent.length];
    if (one === undefined) return;
    await replay(api, [one]);
    this.#retries += 1;
  }

  /** Repeated payments, each answered as the first time. */
  get retries(): number {
    return this.#retries;
  }

  get sent(): readonly Sent[] {
    return this.#sent;
  }

  /** Waits until so many more payments were made. */
  async untilPaid(more: number, withinMs = PAID_MS): Promise<void> {
    const count = (): number => this.#sent.filter(({ transactionId }) => transactionId !== null).length;
    const wanted = count() + more;
    await until(`${more} more payments`, withinMs, () => (count() >= wanted ? true : null));
  }

  /** The clients stop after the payment at hand. */
  async stop(): Promise<readonly Sent[]> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    return this.#sent;
  }
}

export async function pay(
  api: Api,
  apiKey: string,
  idempotencyKey: string,
  amountCents: number,
  merchant = `shop ${idempotencyKey}`,
): Promise<Sent> {
  const startedAt = performance.now();
  const answer = await api.payRaw(apiKey, { idempotencyKey, merchant, amountCents }).catch(() => null);
  const ms = performance.now() - startedAt;
  const transactionId = answer === null ? null : transactionOf(answer);
  return { apiKey, idempotencyKey, merchant, amountCents, ms, status: answer?.status ?? null, transactionId };
}

function transactionOf({ status, body }: Answer): string | null {
  return status === 200 || status === 201 ? paid.parse(body).transaction.id : null;
}

const REPLAYS_AT_ONCE = 8;

/**
 * Sends every payment again under its key, as a client does that wants to know. Each must be answered as paid; one
 * that was answered before with the same transaction. Answers the transactions' ids.
 */
export async function replay(api: Api, sent: readonly Sent[]): Promise<readonly string[]> {
  const ids: string[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    for (let one = sent[next++]; one !== undefined; one = sent[next++]) {
      const ask = () => pay(api, one.apiKey, one.idempotencyKey, one.amountCents, one.merchant);
      let again = await ask();
      // On a busy machine it may be told to come again.
      for (let repeats = 0; again.status === 503 && repeats < REPEATS_MAX; repeats += 1) {
        await sleep(REPEAT_AFTER_MS);
        again = await ask();
      }
      if (again.transactionId === null) throw new Error(`${one.idempotencyKey}: replayed, ${again.status}`);
      if (one.transactionId !== null) {
        expect([again.status, again.transactionId]).to.deep.equal([200, one.transactionId]);
      }
      ids.push(again.transactionId);
    }
  };
  await Promise.all(Array.from({ length: REPLAYS_AT_ONCE }, client));
  expect(new Set(ids).size, "a transaction for each key").to.equal(sent.length);
  return ids;
}
