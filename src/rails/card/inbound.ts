import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Refusal } from "../../domain/errors.ts";
import type { AuthorizationRefusal } from "../../domain/ledger/books.ts";
import type { Payment } from "../../domain/ledger/payment.ts";
import { mcOf } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import { BoundedWork } from "../../lib/bounded-work.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { Limits } from "../../limits/limits.ts";
import type { IssuerAnswer, NetworkRequest, RawMessage } from "../../payments/card-issuer.ts";
import type { Bookings } from "../../payments/bookings.ts";
import type { PaymentEffects } from "../../payments/effects.ts";
import type { BatchingLedgers, Clock, Projections } from "../../payments/ports.ts";
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
  readonly effects: Pick<PaymentEffects, "publish" | "record">;
  readonly journal: Pick<EventJournal, "organizationEvent">;
  readonly ledgers: BatchingLedgers;
  readonly limits: Pick<Limits, "ofCardMessage">;
  readonly onFailed: (what: string, error: unknown) => void;
  readonly projections: Pick<Projections, "paymentOf">;
  readonly rulings: Pick<PaymentRulings, "forget" | "restrictionsOn">;
}

/** Outcome of a message. After `forged` and `over`, nothing was done. */
export type Received =
  | { readonly kind: "unknown" | "forged" | "done" }
  /** The connection is above its share. */
  | { readonly kind: "over"; readonly refusal: Refusal }
  | { readonly kind: "answered"; readonly answer: IssuerAnswer };

/** Timeout of an answer, from the request's arrival; later means declined. Networks wait 2 seconds. */
const ANSWER_TIMEOUT_MS = 1_500;
/** Latest time at which the ledger grants a request, so that the grant still reaches the network. */
const GRANT_CUTOFF_MS = 1_200;
/** Latest time at which a request's decision begins. Others are declined then. */
const TURN_CUTOFF_MS = 900;
/**
 * Requests being decided. More at once would make each of them slower, until none is decided in time. A silent ledger
 * occupies only its organization's share.
 */
const DECISIONS = {
  atOnceMax: 256,
  waitingMax: 4_000,
  waitMs: TURN_CUTOFF_MS,
  share: { atOnceMax: 64, waitingMax: 2_000 },
};

/** Maximum judgements of one request; each repetition uses newer restrictions. */
const JUDGED_MAX = 3;
/** Minimum interval between updates of a connection's last message times. */
const NOTE_INTERVAL_MS = 60_000;

/**
 * Reads of issuers' books. They yield to requests, since networks wait for the answers to those. Several of an
 * organization at once share the ledger's updates, and stay below issuers' limits, such as 100 calls a second.
 */
const READS = {
  atOnceMax: 32,
  waitingMax: 1_000,
  waitMs: 8_000,
  share: { atOnceMax: 8, waitingMax: 500 },
};

/** Records of answered requests. They wait less than the ledger's sweep does, and yield to requests unless many wait. */
const RECORDS = {
  atOnceMax: 64,
  waitingMax: 2_000,
  waitMs: 8_000,
  share: { atOnceMax: 32, waitingMax: 1_000 },
};
const YIELDING_RECORDS_MAX = 500;

/** Maximum connections whose last message times are known to be recorded; others may be updated more often. */
const NOTED_MAX = 1_000;

const MERCHANT_CHARACTERS_MAX = 100;
const AUTHORIZATION_CHARACTERS_MAX = 100;

/** Maximum amount of a check's authorization that is approved. */
export const CHECK_CENTS = 100;
/** Amount of the authorization by which a check finds out what the network does without an answer. */
export const UNANSWERED_CENTS = CHECK_CENTS + 2;
/** Delay of that authorization's answer; longer than networks wait, which is up to 6 seconds. */
const UNANSWERED_MS = 7_000;

/** Why a network's request is declined: by the ledger, or because the ledger could not be asked. */
type Decline = AuthorizationRefusal | "UNAVAILABLE" | "RATE_LIMITED";

interface Judged {
  readonly request: NetworkRequest;
  readonly arrivedAt: Date;
  /** Ends the announcement of the request's command. */
  readonly release: () => void;
}

/** Handles issuers' messages: requests, answered in time by the ledger, and hints, which cause a read of the books. */
export class CardMessages {
  readonly #dependencies: CardMessagesDependencies;
  readonly #decisions = new BoundedWork(DECISIONS);
  readonly #reads = new BoundedWork({ ...READS, isYielding: () => this.#deciding > 0 });
  readonly #records = new BoundedWork({
    ...RECORDS,
    isYielding: () => this.#deciding > 0 && this.#records.waiting < YIELDING_RECORDS_MAX,
  });
  /** Requests that networks wait for, including those whose turn has not come. */
  #deciding = 0;
  /** Last message times, as recorded, in epoch milliseconds. */
  readonly #noted = new LRUCache<string, number>({ max: NOTED_MAX });
  /** Reads that have not begun, by connection and card. */
  readonly #unread = new Map<string, Promise<unknown>>();

  constructor(dependencies: CardMessagesDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Answers a request to authorize that arrived at `arrivedMs` by `performance.now()`. Never throws once its signature
   * is verified: declines what can't be decided in time, as soon as that is known.
   */
  async authorization(connectionId: string, raw: RawMessage, arrivedMs: number): Promise<Received> {
    const left = (boundMs: number): number => arrivedMs + boundMs - performance.now();
    const arrivedAt = new Date(this.#dependencies.clock().getTime() + left(0));
    const connection = await this.#dependencies.connections.byId(connectionId);
    if (connection === null) return { kind: "unknown" };
    const message = connection.issuer.read(raw, arrivedAt);
    if (message.kind === "forged") return { kind: "forged" };
    if (message.kind !== "request") return { kind: "done" };
    // An issuer may approve in place of a refusal, or of no answer.
    if ((await this.#dependencies.limits.ofCardMessage("authorizations", connectionId)) !== null)
      return {
        kind: "answered",
        answer: connection.issuer.answer(message, "RATE_LIMITED" satisfies Decline),
      };
    this.#note(connection, "lastRequestAt", arrivedAt);
    this.#deciding += 1;
    const decide = () => withTimeout(left(ANSWER_TIMEOUT_MS), this.#decided(connection, message, arrivedAt));
    const refusal = await this.#decisions
      .run(decide, connection.organizationId, left(TURN_CUTOFF_MS))
      .catch((error: unknown): Decline => {
        this.#dependencies.onFailed("a network's request was declined, since it could not be decided", error);
        return "UNAVAILABLE";
      })
      .finally(() => (this.#deciding -= 1));
    if (refusal === "ABOVE_PAYMENT" && (await this.#isLeftUnanswered(connection, message, left)))
      await sleep(UNANSWERED_MS, undefined, { ref: false });
    return { kind: "answered", answer: connection.issuer.answer(message, refusal) };
  }

  /**
   * Handles an event. The card's books are read before the event is acknowledged; otherwise the issuer sends it again.
   */
  async event(connectionId: string, raw: RawMessage): Promise<Received> {
    const { clock, connections, journal, limits } = this.#dependencies;
    const now = clock();
    const connection = await connections.byId(connectionId);
    if (connection === null) return { kind: "unknown" };
    const message = connection.issuer.read(raw, now);
    if (message.kind === "forged") return { kind: "forged" };
    const share = message.kind === "deposit" ? "deposits" : "events";
    const over = await limits.ofCardMessage(share, connectionId);
    if (over !== null) return { kind: "over", refusal: over };
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
    if (message.kind === "hint") await this.#read(connection, message.cardRef);
    return { kind: "done" };
  }

  /** Books what the network has done with a payment's card. Hints share a read that has not begun. */
  #read(connection: CardConnection, cardRef: string): Promise<unknown> {
    const key = `${connection.id}/${cardRef}`;
    const waiting = this.#unread.get(key);
    if (waiting !== undefined) return waiting;
    let isBegun = false;
    const begin = (): void => {
      isBegun = true;
      this.#unread.delete(key);
    };
    const reading = this.#reads
      .run(() => {
        begin();
        return this.#book(connection, cardRef);
      }, connection.organizationId)
      .finally(() => {
        if (!isBegun) begin();
      });
    if (!isBegun) this.#unread.set(key, reading);
    return reading;
  }

  async #book(connection: CardConnection, cardRef: string): Promise<void> {
    const { bookings, cards } = this.#dependencies;
    const card = await cards.byRef(connection, cardRef);
    if (card !== null && !isCheck(card)) await bookings.book(card.transactionId);
  }

  async #decided(
    connection: CardConnection,
    request: NetworkRequest,
    arrivedAt: Date,
  ): Promise<Decline | null> {
    const { cards, ledgers, projections } = this.#dependencies;
    if (request.currency !== "USD" || request.authorization.length > AUTHORIZATION_CHARACTERS_MAX)
      return "CLOSED";
    const card = await cards.byRef(connection, request.cardRef);
    if (card === null) return "CLOSED";
    if (isCheck(card)) return request.amountMc <= mcOf(CHECK_CENTS) ? null : "ABOVE_PAYMENT";
    const noted = cards.noteAsked(card, arrivedAt);
    const [found] = await Promise.all([projections.paymentOf(card.transactionId), noted]);
    if (found === null) return "CLOSED";
    const { payment, profile } = found;
    // Requests that were read together are also decided together.
    const release = ledgers.announceCommand(profile);
    try {
      return await this.#judged(profile, payment, { request, arrivedAt, release });
    } finally {
      release();
    }
  }

  /** Whether a declined request is the one of a connection check that the network must decide by itself. */
  async #isLeftUnanswered(
    connection: CardConnection,
    { amountMc, cardRef }: NetworkRequest,
    left: (boundMs: number) => number,
  ): Promise<boolean> {
    if (amountMc !== mcOf(UNANSWERED_CENTS)) return false;
    const reading = this.#dependencies.cards.byRef(connection, cardRef);
    const card = await withTimeout(left(ANSWER_TIMEOUT_MS), reading).catch(() => null);
    return card !== null && isCheck(card);
  }

  async #judged(
    profile: AgentProfile,
    { request: paid }: Payment,
    { arrivedAt, release, request: { amountMc, authorization, merchant, position } }: Judged,
  ): Promise<Decline | null> {
    const { clock, ledgers, rulings } = this.#dependencies;
    const { agentId } = profile;
    const { transactionId } = paid;
    const answerBy = arrivedAt.getTime() + GRANT_CUTOFF_MS;
    const options = { texts: paid, isAwaited: () => clock().getTime() <= answerBy };
    const asked = { ...paid, merchantCategory: merchant.category ?? paid.merchantCategory };
    const name = shownName(merchant.name);
    for (let judged = 0; judged < JUDGED_MAX; judged += 1) {
      const { forbidden, versions } = await rulings.restrictionsOn(profile, asked, [name]);
      const command = {
        kind: "authorize",
        agentId,
        transactionId,
        authorization,
        position,
        amountMc,
        merchant: name,
        answerBy,
        ...(forbidden === undefined ? {} : { forbidden }),
        ...(versions === undefined ? {} : { rulesVersions: versions }),
      } as const;
      const submitting = ledgers.submit(profile, command, options);
      release();
      const reply = await submitting;
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
      await effects.record(profile, payment);
      const confirmation = { kind: "confirm", agentId, transactionId, revision, outcome: null } as const;
      ledgers.confirmLater(profile, confirmation, effects.publish(profile, payment, "soon"));
    };
    void this.#records
      .run(record, profile.organizationId)
      .catch((error: unknown) => onFailed("recording an authorization is left to the sweep", error));
  }

  #note(connection: CardConnection, what: "lastEventAt" | "lastRequestAt", at: Date): void {
    const { connections, onFailed } = this.#dependencies;
    const key = `${connection.id} ${what}`;
    const noted = this.#noted.get(key) ?? connection.record[what]?.getTime() ?? 0;
    if (at.getTime() - noted < NOTE_INTERVAL_MS) return;
    this.#noted.set(key, at.getTime());
    void connections
      .note(connection, { [what]: at })
      .catch((error: unknown) => onFailed("the time of an issuer's message was not recorded", error));
  }
}

/** Returns a merchant's name without control characters, since it comes from a terminal. */
const shownName = (name: string): string =>
  name.slice(0, MERCHANT_CHARACTERS_MAX).replaceAll(/\p{C}/gu, " ").trim();
