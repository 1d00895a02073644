import type DataLoader from "dataloader";
import type { Collection, Db } from "mongodb";
import { type RailBooks, shortened } from "../../domain/ledger/books.ts";
import type { Payment, RailOutcome } from "../../domain/ledger/payment.ts";
import type { CategoryLists } from "../../domain/rules/restrictions.ts";
import { batchLoader } from "../../lib/batch-loader.ts";
import { usedCents } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { IssuedCard, IssuerRefusal, IssuerResult } from "../../payments/card-issuer.ts";
import type { ChangedPayment, Clock } from "../../payments/ports.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { BulkWriter } from "../../store/bulk-writer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { Indexes } from "../../store/indexes.ts";
import { type CardConnection, type CardConnections, IssuerUnusable } from "./connections.ts";
import { CardPlaces, isCheck, type IssuedDocument, isIssued, placeOf } from "./places.ts";

export interface IssuedCardsDependencies {
  readonly db: Db;
  readonly clock: Clock;
  readonly accessProofs: Pick<AccessProofs, "changed" | "genuine" | "proven">;
  readonly connections: CardConnections;
  /** Time that a card waits for its first authorization. */
  readonly readySeconds: number;
}

export const ISSUED_CARD_INDEXES: Indexes = {
  [COLLECTIONS.sandboxCardLedger]: [
    {
      key: { cardRef: 1 },
      unique: true,
      partialFilterExpression: { cardRef: { $gt: "" } },
      reader: "the payment of a card that its network names",
    },
    {
      key: { connectionId: 1, closedAt: 1 },
      partialFilterExpression: { connectionId: { $gt: "" } },
      reader: "open cards of a connection",
    },
    {
      key: { askedAt: 1 },
      partialFilterExpression: { askedAt: { $gt: new Date(0) } },
      reader: "granted requests that their network may not have counted",
    },
  ],
};

/** Overlap of consecutive reads of an issuer's books: changes arrive late, and booking some of them failed. */
const OVERLAP_MS = 86_400_000;
/** Age at which a granted request that no read shows is released; equals the domain's own limit. */
const UNSEEN_MS = 600_000;

/** A card's payment, as needed for the order. */
export interface Ordered {
  readonly organizationId: string;
  readonly agentId: string;
  readonly transactionId: string;
  readonly amountCents: number;
}

export const orderedFor = ({ agentId, organizationId }: AgentProfile, { request }: Payment): Ordered => ({
  organizationId,
  agentId,
  transactionId: request.transactionId,
  amountCents: usedCents(request.amountMc),
});

export interface OwnCard {
  readonly card: IssuedDocument;
  readonly connection: CardConnection;
}

/**
 * Cards at issuers, one per payment: ordered in the payment's place, armed, and closed when nothing more is expected.
 */
export class IssuedCards {
  readonly #dependencies: IssuedCardsDependencies;
  readonly #cards: Collection<IssuedDocument>;
  readonly #byRef: DataLoader<string, IssuedDocument | null>;
  readonly #notes: BulkWriter<IssuedDocument>;
  readonly #places: CardPlaces;

  constructor(dependencies: IssuedCardsDependencies) {
    this.#dependencies = dependencies;
    this.#cards = dependencies.db.collection(COLLECTIONS.sandboxCardLedger, { readPreference: "primary" });
    this.#byRef = batchLoader(async (refs) => {
      const found = await this.#cards.find({ cardRef: { $in: [...refs] } }).toArray();
      const cards = new Map(found.map((card) => [card.cardRef, card]));
      return refs.map((ref) => cards.get(ref) ?? null);
    });
    this.#notes = new BulkWriter(this.#cards);
    this.#places = new CardPlaces(dependencies.db);
  }

  /** Returns the order in a payment's place; null if there is none. */
  async of(transactionId: string): Promise<IssuedDocument | null> {
    const entry = await this.#places.of(transactionId);
    if (entry === null || !isIssued(entry)) return null;
    const genuine = this.#dependencies.accessProofs.genuine("issuedCard", entry);
    if (genuine === null)
      throw new IssuerUnusable(`the card of ${transactionId} is not as the service wrote it`);
    return genuine;
  }

  /** Returns the card named by a connection's network; null if it is not the service's. */
  async byRef({ id }: CardConnection, cardRef: string): Promise<IssuedDocument | null> {
    const card = await this.#byRef.load(cardRef);
    const genuine = card === null ? null : this.#dependencies.accessProofs.genuine("issuedCard", card);
    return genuine?.connectionId === id ? genuine : null;
  }

  /** Orders a payment's card in its place, unless the place is taken. */
  async order(
    { organizationId, transactionId }: Ordered,
    connection: CardConnection,
    permit: number,
    categories: CategoryLists = ALL_CATEGORIES,
  ): Promise<"ordered" | "elsewhere"> {
    const { accessProofs, clock, readySeconds } = this.#dependencies;
    const createdAt = clock();
    const order = accessProofs.proven("issuedCard", {
      _id: placeOf(transactionId),
      status: "issued" as const,
      transactionId,
      organizationOfCard: organizationId,
      connectionId: connection.id,
      cardRef: null,
      last4: null,
      readyUntil: new Date(createdAt.getTime() + readySeconds * 1_000),
      categories,
      refusal: null,
      askedAt: null,
      closedAt: null,
      createdAt,
    });
    return (await this.#places.put(order, permit)) ? "ordered" : "elsewhere";
  }

  /** Ensures that no card is ordered for the payment. False if its place is taken. */
  withhold(transactionId: string): Promise<boolean> {
    return this.#places.withhold(transactionId, this.#dependencies.clock());
  }

  /** Has the issuer make an ordered card. Repeatable: returns the same card, or the same refusal. */
  async armed(ordered: Ordered, card: IssuedDocument, isRepeated: boolean): Promise<RailOutcome> {
    const known = issuedOutcome(card);
    if (known !== null) return known;
    const { agentId, amountCents, organizationId, transactionId } = ordered;
    const { categories } = card;
    const connection = await this.#dependencies.connections.fresh(organizationId);
    const made =
      connection?.id === card.connectionId && !connection.record.isEnding
        ? await connection.issuer.arm({ transactionId, agentId, amountCents, categories, isRepeated })
        : DISCONNECTED;
    await this.#noteMade(card, made);
    const after = await this.of(transactionId);
    const outcome = after === null ? null : issuedOutcome(after);
    if (outcome === null) throw new IssuerUnusable(`the order of ${transactionId}'s card was lost`);
    return outcome;
  }

  async #noteMade(card: IssuedDocument, made: IssuerResult<IssuedCard>): Promise<void> {
    const change = made.ok ? made.value : { refusal: failureOf(made.refusal) };
    // The first answer stands.
    await this.#cards.updateOne(
      { _id: card._id, status: "issued", cardRef: null, refusal: null },
      { $set: this.#dependencies.accessProofs.changed("issuedCard", card, change) },
    );
  }

  /** Closes a card for good. A card that is only ordered is made first, so that no later call can make it. */
  async close(transactionId: string, ordered?: Ordered): Promise<void> {
    let card = await this.of(transactionId);
    if (card === null || card.closedAt !== null) return;
    if (card.cardRef === null && card.refusal === null && ordered !== undefined) {
      await this.armed(ordered, card, true);
      card = await this.of(transactionId);
    }
    if (card === null) return;
    if (card.cardRef !== null) {
      const { issuer } = await this.#connectionOf(card);
      const closed = await issuer.disarm(card.cardRef);
      if (!closed.ok) throw new IssuerUnusable(closed.refusal.reason);
    }
    await this.#cards.updateOne({ _id: card._id }, { $set: { closedAt: this.#dependencies.clock() } });
  }

  async hasOpen(connectionId: string): Promise<boolean> {
    const open = { connectionId, closedAt: null, refusal: null };
    return (await this.#cards.findOne(open, { projection: { _id: 1 } })) !== null;
  }

  async booksOf(card: IssuedDocument): Promise<readonly RailBooks[]> {
    if (card.cardRef === null) return [];
    return shortened(await (await this.#connectionOf(card)).issuer.booksOf(card.cardRef));
  }

  async ownCard(transactionId: string): Promise<OwnCard | null> {
    const card = await this.of(transactionId);
    return card === null ? null : { card, connection: await this.#connectionOf(card) };
  }

  /** Notes a request before it may be granted, so that a later read finds out its outcome. */
  async noteAsked({ _id }: IssuedDocument, at: Date): Promise<void> {
    await this.#notes.write({ updateOne: { filter: { _id }, update: { $max: { askedAt: at } } } });
  }

  /**
   * Yields payments that networks have changed since each connection was last read. An issuer that does not answer does
   * not block the others.
   */
  async *changed(): AsyncIterable<ChangedPayment> {
    const { clock, connections } = this.#dependencies;
    for await (const connection of connections.all()) {
      const began = clock();
      const since = new Date(connection.record.readThrough.getTime() - OVERLAP_MS);
      try {
        for await (const { cardRef, changedAt } of connection.issuer.changedSince(since)) {
          const card = await this.byRef(connection, cardRef);
          if (card !== null && !isCheck(card)) yield { transactionId: card.transactionId, changedAt };
        }
        yield* this.#unseen(connection, since, began);
        await connections.note(connection, { readThrough: began, fault: null });
      } catch (error) {
        await connections.note(connection, { fault: error instanceof Error ? error.message : String(error) });
      }
    }
  }

  async *#unseen({ id }: CardConnection, since: Date, now: Date): AsyncIterable<ChangedPayment> {
    const askedAt = { $gte: since, $lte: new Date(now.getTime() - UNSEEN_MS) };
    for await (const { transactionId } of this.#cards.find({ connectionId: id, askedAt }))
      yield { transactionId, changedAt: since };
  }

  async #connectionOf(card: IssuedDocument): Promise<CardConnection> {
    const { connections } = this.#dependencies;
    const found = await connections.of(card.organizationOfCard);
    if (found?.id === card.connectionId) return found;
    throw new IssuerUnusable(`the connection ${card.connectionId} of a card is gone`);
  }
}

const ALL_CATEGORIES: CategoryLists = { only: null, never: [] };

const DISCONNECTED: IssuerResult<never> = {
  ok: false,
  refusal: { code: "REFUSED", reason: "The card issuer was disconnected before the card was made." },
};

const failureOf = ({ code, reason }: IssuerRefusal): NonNullable<IssuedDocument["refusal"]> => ({
  code: code === "INSUFFICIENT_FUNDS" ? code : "CARD_NOT_ISSUED",
  reason,
});

/** Returns the outcome of an order; null if the issuer has not answered. */
export function issuedOutcome({
  cardRef,
  closedAt,
  last4,
  readyUntil,
  refusal,
}: IssuedDocument): RailOutcome | null {
  if (refusal !== null) return { status: "failed", ...refusal };
  if (closedAt !== null) return { status: "withheld" };
  if (cardRef === null || last4 === null) return null;
  return { status: "armed", card: { last4, readyUntil: readyUntil.getTime() } };
}
