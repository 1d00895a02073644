import { decodeTime } from "ulid";
import type { RailBooks } from "../../domain/ledger/books.ts";
import type { GuardedFetch } from "../../lib/guarded-fetch/guarded-fetch.ts";
import type {
  CardDispute,
  CardElements,
  CardIssuer,
  CardIssuerKind,
  CardOrder,
  CardView,
  ChangedCard,
  Incoming,
  IssuedCard,
  IssuerAccount,
  IssuerAnswer,
  IssuerObjects,
  IssuerResult,
  NetworkRequest,
  RawMessage,
  SetUp,
  Trial,
} from "../../payments/card-issuer.ts";
import { booksFrom } from "./books.ts";
import { spendingCategories } from "./categories.ts";
import { changedCards } from "./changes.ts";
import { StripeClient } from "./client.ts";
import { disputeCard, disputesOf } from "./disputes.ts";
import { answerTo, readMessage } from "./messages.ts";
import {
  authorizationObject,
  balanceObject,
  cardObject,
  ephemeralKeyObject,
  transactionObject,
} from "./objects.ts";
import { removeEndpoint, setUpAccount } from "./set-up.ts";
import { trialWords } from "./trial-words.ts";

export const STRIPE_URL = "https://api.stripe.com";

export const STRIPE_ELEMENTS: CardElements = {
  scriptUrl: "https://js.stripe.com/v3/",
  scripts: ["https://js.stripe.com", "https://*.js.stripe.com"],
  frames: ["https://js.stripe.com", "https://*.js.stripe.com", "https://hooks.stripe.com"],
  calls: [STRIPE_URL],
};

export const simulatedElements = (url: string): CardElements => ({
  scriptUrl: `${url}/v3/`,
  scripts: [url],
  frames: [url],
  calls: [],
});

export interface StripeOptions {
  readonly name: string;
  /** `STRIPE_URL`, or a simulator's URL. */
  readonly baseUrl: string;
  readonly elements: CardElements;
  readonly fetch: Pick<GuardedFetch, "fetch">;
}

export const stripeIssuer = ({ baseUrl, elements, fetch, name }: StripeOptions): CardIssuerKind => ({
  name,
  elements,
  open: (account) => new StripeIssuer(account, new StripeClient({ apiKey: account.apiKey, baseUrl, fetch })),
});

const DAY_MS = 86_400_000;

/** Stripe's reason of a decision that it made by the account's time-out setting. */
const TIMED_OUT = "webhook_timeout";

class StripeIssuer implements CardIssuer {
  readonly #account: IssuerAccount;
  readonly #client: StripeClient;

  constructor(account: IssuerAccount, client: StripeClient) {
    this.#account = account;
    this.#client = client;
  }

  async arm(order: CardOrder): Promise<IssuerResult<IssuedCard>> {
    const cardholder = this.#made().cardholderId;
    const known = order.isRepeated ? await this.#cardOf(cardholder, order.transactionId) : null;
    if (known !== null) return { ok: true, value: known };
    const made = await this.#client.call(
      {
        method: "POST",
        path: "issuing/cards",
        idempotencyKey: order.transactionId,
        params: {
          cardholder,
          currency: "usd",
          type: "virtual",
          status: "active",
          spending_controls: {
            spending_limits: [{ amount: order.amountCents, interval: "all_time" }],
            ...spendingCategories(order.categories),
          },
          metadata: { transaction: order.transactionId, agent: order.agentId },
        },
      },
      cardObject,
    );
    return made.ok ? { ok: true, value: issued(made.value) } : made;
  }

  async disarm(cardRef: string): Promise<IssuerResult<null>> {
    const path = `issuing/cards/${cardRef}`;
    const canceled = await this.#client.call(
      { method: "POST", path, params: { status: "canceled" } },
      cardObject,
    );
    if (canceled.ok) return { ok: true, value: null };
    // Stripe refuses to cancel a card twice.
    const found = await this.#client.call({ method: "GET", path }, cardObject);
    return found.ok && found.value.status === "canceled" ? { ok: true, value: null } : canceled;
  }

  read(raw: RawMessage, now: Date): Incoming {
    const { authorizationSecret, made } = this.#account;
    const secrets = [authorizationSecret, made?.eventSecret].filter((secret) => typeof secret === "string");
    return readMessage(raw, { secrets, accountId: made?.accountId ?? null }, now);
  }

  answer(request: NetworkRequest, refusal: string | null): IssuerAnswer {
    return answerTo(request, refusal);
  }

  async booksOf(cardRef: string): Promise<readonly RailBooks[]> {
    const of = { card: cardRef };
    const authorizations = await all(this.#client.list("issuing/authorizations", of, authorizationObject));
    const transactions = await all(this.#client.list("issuing/transactions", of, transactionObject));
    const disputes = await disputesOf(this.#client, transactions);
    return booksFrom({ authorizations, transactions, disputes });
  }

  changedSince(since: Date, until?: Date): AsyncIterable<ChangedCard> {
    return changedCards(this.#client, since, until);
  }

  async cardView(cardRef: string, nonce: string): Promise<IssuerResult<CardView>> {
    const key = await this.#client.call(
      { method: "POST", path: "ephemeral_keys", params: { issuing_card: cardRef, nonce } },
      ephemeralKeyObject,
    );
    if (!key.ok) return key;
    const { expires, secret } = key.value;
    return { ok: true, value: { cardRef, ephemeralKey: secret, expiresAt: new Date(expires * 1_000) } };
  }

  async dispute(cardRef: string, dispute: CardDispute): Promise<IssuerResult<null>> {
    const captures = { card: cardRef, type: "capture" };
    const transactions = await all(this.#client.list("issuing/transactions", captures, transactionObject));
    return disputeCard(this.#client, cardRef, transactions, dispute);
  }

  async balance(): Promise<IssuerResult<number>> {
    const found = await this.#client.call({ method: "GET", path: "balance" }, balanceObject);
    if (!found.ok) return found;
    const inDollars = (found.value.issuing?.available ?? []).filter(({ currency }) => currency === "usd");
    return { ok: true, value: inDollars.reduce((total, { amount }) => total + amount, 0) };
  }

  setUp(given: SetUp): Promise<IssuerResult<IssuerObjects>> {
    return setUpAccount(this.#client, this.#account.made, given);
  }

  async tryAuthorization(cardRef: string, amountCents: number): Promise<IssuerResult<Trial>> {
    const tried = await this.#client.call(
      {
        method: "POST",
        path: "test_helpers/issuing/authorizations",
        params: { card: cardRef, amount: amountCents, currency: "usd", merchant_data: { name: "Check" } },
      },
      authorizationObject,
    );
    if (!tried.ok) return tried;
    const { approved, request_history } = tried.value;
    const reason = request_history.at(-1)?.reason ?? "";
    return {
      ok: true,
      value: { isApproved: approved, isTimedOut: reason === TIMED_OUT, reason: trialWords(reason) },
    };
  }

  async tearDown(): Promise<IssuerResult<null>> {
    const { made } = this.#account;
    return made === null ? { ok: true, value: null } : removeEndpoint(this.#client, made.eventEndpointId);
  }

  #made(): IssuerObjects {
    const { made } = this.#account;
    if (made === null) throw new Error("the account is not set up");
    return made;
  }

  /** Returns the card of an earlier order. Lists only cards from a day before the order on, so few are read. */
  async #cardOf(cardholder: string, transactionId: string): Promise<IssuedCard | null> {
    const since = madeAtOf(transactionId);
    const created = since === null ? {} : { created: { gte: Math.floor((since - DAY_MS) / 1_000) } };
    for await (const card of this.#client.list("issuing/cards", { cardholder, ...created }, cardObject))
      if (card.metadata["transaction"] === transactionId) return issued(card);
    return null;
  }
}

const issued = ({ id, last4 }: { id: string; last4: string }): IssuedCard => ({ cardRef: id, last4 });

/** Collects a list, oldest first. */
async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found.toReversed();
}

/** Returns the time in an id of the service, in epoch milliseconds; null if there is none. */
function madeAtOf(transactionId: string): number | null {
  try {
    return decodeTime(transactionId.slice(transactionId.indexOf("_") + 1));
  } catch {
    return null;
  }
}
