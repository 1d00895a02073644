import type { Collection, Db } from "mongodb";
import type { RailBooks } from "../../domain/ledger/books.ts";
import type { Payment, RailOutcome, StoredPayment } from "../../domain/ledger/payment.ts";
import { mcOf, MC_PER_CENT, usedCents } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { TimedEffect } from "../../messages/rail-network.ts";
import { BulkWriter } from "../../store/bulk-writer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type {
  ChangedPayment,
  ChangeFeed,
  Clock,
  Detachment,
  FencedPlace,
  RailBalance,
  RailNetwork,
  RailPort,
  SendOutcome,
} from "../../payments/ports.ts";
import {
  DECLINES,
  LOSES_CONNECTION,
  type NetworkEffect,
  scriptOf,
  SETTLES_SLOWLY,
  SLOW_SETTLEMENT_SECONDS,
} from "./merchants.ts";
import { booksIn, type CardLedgerDocument, historyIn } from "./network-books.ts";
import { CardPlaces, type Entry, isEffect, isFence, isIssued, isWithheld, placeOf } from "./places.ts";

/** The processor accepted the call, and the connection broke before it answered. */
export class ProcessorConnectionLost extends Error {
  override readonly name = "ProcessorConnectionLost";
}

const DECLINED = {
  status: "failed",
  code: "CARD_DECLINED",
  reason: "The card issuer declined the payment.",
} as const;

/** Plays the network's effects on a payment after its authorization, each at its time. */
export interface CardScripts {
  /** Starts the effects. Repeatable, and allowed before the payment is sent. */
  begin(profile: AgentProfile, transactionId: string, effects: readonly TimedEffect[]): Promise<void>;
}

/**
 * The sandbox's card processor: a real counterpart with its own books in MongoDB. A charge is idempotent by transaction
 * id: its entry's id is derived from it, and the journaled insert is the effect. A decline makes no entry.
 */
export class CardSandbox implements RailPort, RailNetwork {
  readonly capabilities = { finality: "instant" } as const;
  readonly network = this;
  readonly #ledger: Collection<Entry>;
  readonly #writes: BulkWriter<Entry>;
  readonly #places: CardPlaces;
  readonly #clock: Clock;
  readonly #scripts: CardScripts;

  constructor(db: Db, clock: Clock, scripts: CardScripts) {
    this.#ledger = db.collection<Entry>(COLLECTIONS.sandboxCardLedger);
    this.#writes = new BulkWriter(this.#ledger);
    this.#places = new CardPlaces(db);
    this.#clock = clock;
    this.#scripts = scripts;
  }

  async send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const { transactionId, recipient: merchant } = payment.request;
    if (merchant === DECLINES) return DECLINED;
    const { effects } = scriptOf(merchant);
    if (effects.length > 0) await this.#scripts.begin(profile, transactionId, effects);
    const entry = this.#firstEntry(profile, payment);
    if (!(await this.#places.put(entry, permit))) return (await this.query(payment)) ?? { status: "fenced" };
    if (merchant === LOSES_CONNECTION) throw new ProcessorConnectionLost(transactionId);
    return this.#outcome(entry, payment);
  }

  async query(payment: StoredPayment): Promise<RailOutcome | null> {
    const { transactionId, amountMc } = payment.request;
    const entry = await this.#places.of(transactionId);
    if (entry === null || isFence(entry) || isIssued(entry)) return null;
    if (isWithheld(entry)) return { status: "withheld" };
    if (entry.authorizedMc !== amountMc) throw new Error(`${transactionId} was recorded with another amount`);
    return this.#outcome(entry, payment);
  }

  /** The processor settles by itself, so its state is only queried. */
  settle(_profile: AgentProfile, payment: Payment): Promise<RailOutcome | null> {
    return this.query(payment);
  }

  /** Inserts the refusal in the capture's place, so that exactly one of the two exists, whichever comes first. */
  async withhold(_profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    // A declined payment has no entry.
    if (payment.request.recipient === DECLINES) return DECLINED;
    const { transactionId } = payment.request;
    if (await this.#places.withhold(transactionId, this.#clock())) return { status: "withheld" };
    return (await this.query(payment)) ?? unreachable(transactionId);
  }

  fence(places: readonly FencedPlace[]): Promise<void> {
    return this.#places.fence(places, this.#clock());
  }

  async booksOf(transactionId: string): Promise<readonly RailBooks[]> {
    return historyIn(await this.#entriesOf(transactionId));
  }

  /** Yields only effects after the first entry, which the sender has booked. */
  async *changedSince(since: Date): AsyncIterable<ChangedPayment> {
    const changed = this.#ledger
      .find<CardLedgerDocument>({ changedAt: { $gte: since, $type: "date" } })
      .sort({ changedAt: 1 });
    for await (const { changedAt = since, transactionId } of changed) yield { transactionId, changedAt };
  }

  /** Yields the payments that `keepUnbooked` keeps. */
  async *feeds(): AsyncIterable<ChangeFeed> {
    yield this.#places.unbooked(this.#clock);
  }

  keepUnbooked(transactionId: string): Promise<void> {
    return this.#places.keepUnbooked(transactionId, this.#clock());
  }

  async play(transactionId: string, number: number): Promise<"played" | "not_yet" | "never"> {
    const first = await this.#places.of(transactionId);
    if (first === null || isFence(first)) return "not_yet";
    const effect = isEffect(first) ? scriptOf(first.merchant).effects[number] : undefined;
    if (effect === undefined) return "never";
    await this.apply(transactionId, number, effect);
    return "played";
  }

  /** Adds an effect of the network to a payment that was sent, once per number. */
  async apply(
    transactionId: string,
    number: number,
    effect: Omit<NetworkEffect, "afterSeconds">,
  ): Promise<void> {
    const first = await this.#places.of(transactionId);
    if (first === null || !isEffect(first)) throw new Error(`${transactionId} was never sent`);
    const amountMc = portion(first.authorizedMc ?? 0, effect.percent);
    const changedAt = this.#clock();
    const { authorizedMc: _granted, isOpen: _isOpen, ...common } = first;
    const document: CardLedgerDocument = {
      ...common,
      _id: `${effect.kind}/${transactionId}/${String(number)}`,
      amountMc,
      amountCents: usedCents(amountMc),
      status: effect.kind,
      createdAt: changedAt,
      settlesAt: null,
      changedAt,
    };
    await this.#writes.write({ insertOne: { document } });
  }

  balance(): Promise<RailBalance> {
    return Promise.resolve({ kind: "none" });
  }

  /** The card is the organization's; an agent has no right of its own to it. */
  detach(): Promise<Detachment> {
    return Promise.resolve("detached");
  }

  async #entriesOf(transactionId: string): Promise<CardLedgerDocument[]> {
    const later = { transactionId, changedAt: { $type: "date" } } as const;
    const entries = await this.#ledger.find({ $or: [{ _id: placeOf(transactionId) }, later] }).toArray();
    return entries.filter(isEffect);
  }

  #firstEntry(profile: AgentProfile, payment: Payment): CardLedgerDocument {
    const { transactionId, recipient: merchant, amountMc: authorizedMc } = payment.request;
    const { capturedPercent, isOpen } = scriptOf(merchant);
    const now = this.#clock();
    const amountMc = portion(authorizedMc, capturedPercent);
    return {
      _id: placeOf(transactionId),
      organizationId: profile.organizationId,
      transactionId,
      merchant,
      authorizedMc,
      isOpen,
      amountMc,
      amountCents: usedCents(amountMc),
      status: capturedPercent === 0 ? "authorized" : "captured",
      createdAt: now,
      settlesAt:
        merchant === SETTLES_SLOWLY ? new Date(now.getTime() + SLOW_SETTLEMENT_SECONDS * 1_000) : null,
    };
  }

  /** Returns the outcome as first charged by the network, whenever it is queried. */
  #outcome(first: CardLedgerDocument, { request }: StoredPayment): RailOutcome {
    if (first.settlesAt !== null && first.settlesAt > this.#clock()) return { status: "pending" };
    const isPlain = first.amountMc === request.amountMc && first.isOpen !== true;
    return isPlain ? { status: "settled" } : { status: "charged", books: booksIn([first]) };
  }
}

/** Returns a percentage in whole cents, rounded down; for 100 percent, the exact amount. */
const portion = (mc: number, percent: number): number =>
  percent === 100 ? mc : mcOf(Math.floor((mc * percent) / 100 / MC_PER_CENT));

function unreachable(transactionId: string): never {
  throw new Error(`the ledger has lost its entry of ${transactionId}`);
}
