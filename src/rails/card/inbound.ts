import type { AuthorizationRefusal } from "../../domain/ledger/books.ts";
import type { Payment } from "../../domain/ledger/payment.ts";
import { mcOf } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { BoundedWork } from "../../lib/bounded-work.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { IssuerAnswer, NetworkRequest, RawMessage } from "../../payments/card-issuer.ts";
import type { Bookings } from "../../payments/bookings.ts";
import type { PaymentEffects } from "../../payments/effects.ts";
import type { Clock, LedgerGateway, Projections } from "../../payments/ports.ts";
import type { PaymentRulings } from "../../payments/rules/payment-rules.ts";
import type { EventJournal } from "../../store/journal.ts";
import type { CardConnection, CardConnections } from "./connections.ts";
import type { IssuedCards } from "./issued.ts";
import { isCheck } from "./places.ts";

export interface CardMessagesDependencies {
  readonly bookings: Pick<Bookings, "book">;
  readonly cards: IssuedCards;
  readonly clock: Clock;
  readonly connections: CardConnections;
  readonly effects: Pick<PaymentEffects, "recordAndPublish">;
  readonly journal: Pick<EventJournal, "organizationEvent">;
  readonly ledgers: LedgerGateway;
  readonly onFailed: (what: string, error: unknown) => void;
  readonly projections: Pick<Projections, "paymentOf">;
  readonly rulings: Pick<PaymentRulings, "forget" | "restrictionsOn">;
}

/** Outcome of a message. After `forged`, nothing was done. */
export type Received =
  | { readonly kind: "unknown" | "forged" | "done" }
  | { readonly kind: "answered"; readonly answer: IssuerAnswer };

/** Timeout of an answer; later means declined. Networks wait 2 seconds. */
const ANSWER_TIMEOUT_MS = 1_500;
/** Latest time at which the ledger grants a request, so that the grant still reaches the network. */
const GRANT_CUTOFF_MS = 1_200;
/** Maximum judgements of one request; each repetition uses newer restrictions. */
const JUDGED_MAX = 3;
/** Minimum interval between updates of a connection's last message times. */
const NOTE_INTERVAL_MS = 60_000;

/** Reads of issuers' books: few in flight, so that they do not delay requests that networks wait for. */
const READS = {
  atOnceMax: 4,
  waitingMax: 1_000,
  waitMs: 8_000,
  share: { atOnceMax: 2, waitingMax: 500 },
};

const MERCHANT_CHARACTERS_MAX = 100;
const AUTHORIZATION_CHARACTERS_MAX = 100;

/** Maximum amount of a check's authorization that is approved. */
export const CHECK_CENTS = 100;

/** Why a network's request is declined: by the ledger, or because the ledger could not be asked. */
type Refusal = AuthorizationRefusal | "UNAVAILABLE";

/** Handles issuers' messages: requests, answered in time by the ledger, and hints, which cause a read of the books. */
export class CardMessages {
  readonly #dependencies: CardMessagesDependencies;
  readonly #reads = new BoundedWork(READS);
  /** Reads that have not begun, by payment. */
  readonly #unread = new Map<string, Promise<unknown>>();

  constructor(dependencies: CardMessagesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Answers a request to authorize. Never throws once its signature is verified: declines what can't be decided. */
  async authorization(connectionId: string, raw: RawMessage): Promise<Received> {
    const arrivedAt = this.#dependencies.clock();
    const connection = await this.#dependencies.connections.byId(connectionId);
    if (connection === null) return { kind: "unknown" };
    const message = connection.issuer.read(raw, arrivedAt);
    if (message.kind === "forged") return { kind: "forged" };
    if (message.kind !== "request") return { kind: "done" };
    this.#note(connection, "lastRequestAt", arrivedAt);
    const deciding = this.#decided(connection, message, arrivedAt);
    const refusal = await withTimeout(ANSWER_TIMEOUT_MS, deciding).catch((error: unknown): Refusal => {
      this.#dependencies.onFailed("a network's request was declined, since it could not be decided", error);
      return "UNAVAILABLE";
    });
    return { kind: "answered", answer: connection.issuer.answer(message, refusal) };
  }

  /**
   * Handles an event. The card's books are read before the event is acknowledged; otherwise the issuer sends it again.
   */
  async event(connectionId: string, raw: RawMessage): Promise<Received> {
    const { cards, clock, connections, journal } = this.#dependencies;
    const now = clock();
    const connection = await connections.byId(connectionId);
    if (connection === null) return { kind: "unknown" };
    const message = connection.issuer.read(raw, now);
    if (message.kind === "forged") return { kind: "forged" };
    this.#note(connection, "lastEventAt", now);
    if (message.kind === "deposit") {
      const { amountCents, depositId: id } = message;
      const place = { address: null, onChainTxHash: null, chainCaip2: null };
      await journal.organizationEvent(connection.organizationId, {
        // An owner may sign any deposit's id: it must not take the place of another organization's event.
        _id: `evt_${connection.id}_${id}_funding.deposited`,
        type: "funding.deposited",
        createdAt: now,
        data: { deposit: { id, amountCents, currency: "USD", ...place, settledAt: now } },
      });
    }
    if (message.kind === "hint") {
      const card = await cards.byRef(connection, message.cardRef);
      if (card !== null && !isCheck(card)) await this.#read(connection.organizationId, card.transactionId);
    }
    return { kind: "done" };
  }

  /** Books what the network has done with a payment's card. Hints share a read that has not begun. */
  #read(organizationId: string, transactionId: string): Promise<unknown> {
    const waiting = this.#unread.get(transactionId);
    if (waiting !== undefined) return waiting;
    let isBegun = false;
    const begin = (): void => {
      isBegun = true;
      this.#unread.delete(transactionId);
    };
    const reading = this.#reads
      .run(() => {
        begin();
        return this.#dependencies.bookings.book(transactionId);
      }, organizationId)
      .finally(() => {
        if (!isBegun) begin();
      });
    if (!isBegun) this.#unread.set(transactionId, reading);
    return reading;
  }

  async #decided(
    connection: CardConnection,
    request: NetworkRequest,
    arrivedAt: Date,
  ): Promise<Refusal | null> {
    const { cards, projections } = this.#dependencies;
    if (request.currency !== "USD" || request.authorization.length > AUTHORIZATION_CHARACTERS_MAX)
      return "CLOSED";
    const card = await cards.byRef(connection, request.cardRef);
    if (card === null) return "CLOSED";
    if (isCheck(card)) return request.amountMc <= mcOf(CHECK_CENTS) ? null : "ABOVE_PAYMENT";
    const [found] = await Promise.all([
      projections.paymentOf(card.transactionId),
      cards.noteAsked(card, arrivedAt),
    ]);
    return found === null ? "CLOSED" : this.#judged(found.profile, found.payment, request, arrivedAt);
  }

  async #judged(
    profile: AgentProfile,
    { request: paid }: Payment,
    { amountMc, authorization, merchant, position }: NetworkRequest,
    arrivedAt: Date,
  ): Promise<Refusal | null> {
    const { ledgers, rulings } = this.#dependencies;
    const { agentId } = profile;
    const { transactionId } = paid;
    const asked = { ...paid, merchantCategory: merchant.category ?? paid.merchantCategory };
    for (let judged = 0; judged < JUDGED_MAX; judged += 1) {
      const { forbidden, versions } = await rulings.restrictionsOn(profile, asked);
      const reply = await ledgers.submit(profile, {
        kind: "authorize",
        agentId,
        transactionId,
        authorization,
        position,
        amountMc,
        merchant: shownName(merchant.name),
        answerBy: arrivedAt.getTime() + GRANT_CUTOFF_MS,
        ...(forbidden === undefined ? {} : { forbidden }),
        ...(versions === undefined ? {} : { rulesVersions: versions }),
      });
      if (reply.kind === "stale_rules") rulings.forget(profile);
      else if (reply.kind !== "authorization")
        throw new Error(`a ledger answered ${reply.kind} to a network's request`);
      else {
        if (reply.payment !== null) this.#record(profile, reply.payment);
        return reply.refusal;
      }
    }
    return "UNAVAILABLE";
  }

  /** Records the payment after the answer. A failure is left to the ledger's sweep. */
  #record(profile: AgentProfile, payment: Payment): void {
    const { effects, ledgers, onFailed } = this.#dependencies;
    const { agentId } = profile;
    const { revision } = payment;
    const { transactionId } = payment.request;
    const record = async (): Promise<void> => {
      await effects.recordAndPublish(profile, payment);
      await ledgers.submit(profile, { kind: "confirm", agentId, transactionId, revision, outcome: null });
    };
    void record().catch((error: unknown) =>
      onFailed("recording an authorization is left to the sweep", error),
    );
  }

  #note(connection: CardConnection, what: "lastEventAt" | "lastRequestAt", at: Date): void {
    const { connections, onFailed } = this.#dependencies;
    if (at.getTime() - (connection.record[what]?.getTime() ?? 0) < NOTE_INTERVAL_MS) return;
    void connections
      .note(connection, { [what]: at })
      .catch((error: unknown) => onFailed("the time of an issuer's message was not recorded", error));
  }
}

/** Returns a merchant's name without control characters, since it comes from a terminal. */
const shownName = (name: string): string =>
  name.replaceAll(/\p{C}/gu, " ").trim().slice(0, MERCHANT_CHARACTERS_MAX);
