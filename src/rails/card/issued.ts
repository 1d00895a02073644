import type DataLoader from "dataloader";
import type { Collection, Db } from "mongodb";
import { type RailBooks, shortened } from "../../domain/ledger/books.ts";
import type { Payment, RailOutcome } from "../../domain/ledger/payment.ts";
import type { CategoryLists } from "../../domain/rules/restrictions.ts";
import { batchLoader } from "../../lib/batch-loader.ts";
import { usedCents } from "../../domain/money.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type { IssuedCard, IssuerRefusal, IssuerResult } from "../../payments/card-issuer.ts";
import type { ChangeFeed, Clock } from "../../payments/ports.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import { BulkWriter } from "../../store/bulk-writer.ts";
import { COLLECTIONS } from "../../store/documents.ts";
import type { Indexes } from "../../store/indexes.ts";
import { type CardConnection, type CardConnections, IssuerUnusable } from "./connections.ts";
import { CardPlaces, CHECK_IDS, isCheck, type IssuedDocument, isIssued, placeOf } from "./places.ts";

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
      key: { connectionId: 1, askedAt: 1 },
      partialFilterExpression: { askedAt: { $gt: new Date(0) } },
      reader: "granted requests that their network may not have counted",
    },
  ],
};

/** Overlap of consecutive reads of an issuer's books, since changes arrive late. */
const OVERLAP_MS = 3_600_000;
/** Longest period of an issuer's books that is read as one page. */
const PAGE_MS = 3_600_000;
/** Time after which the rest of a connection's books is left to the next read. */
const FEED_MS = 600_000;
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
      connection?.id === card.connectionId && connection.record.ending === null
        ? await connection.issuer.arm({ transactionId, agentId, amountCents, categories, isRepeated })
        : DISCONNECTED;
    await this.#noteMade(card, made);
    const after = await this.of(transactionId);
    const outcome = after === null ? null : issuedOutcome(after);
    if (outcome === null) throw new IssuerUnusable(`the order of ${transactionId}'s card was lost`);
    return outcome;
  }

  /** Records the issuer's answer to an order. The first answer stands. */
  async #noteMade(ordered: IssuedDocument, made: IssuerResult<IssuedCard>): Promise<void> {
    const change = made.ok ? made.value : { refusal: failureOf(made.refusal) };
    let card: IssuedDocument | null = ordered;
    while (card?.cardRef === null && card.refusal === null) {
      if (await this.#change(card, change)) return;
      card = await this.of(card.transactionId);
    }
  }

  /** Changes a card with its proof. False if it has changed since it was read. */
  async #change(card: IssuedDocument, change: Partial<IssuedDocument>): Promise<boolean> {
    const { _id, proof } = card;
    const $set = this.#dependencies.accessProofs.changed("issuedCard", card, change);
    return (await this.#cards.updateOne({ _id, proof }, { $set })).matchedCount === 1;
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
    if (!(await this.#change(card, { closedAt: this.#dependencies.clock() })))
      return this.close(transactionId, ordered);
  }

  /** Whether payments of a connection have open cards. A trial card of a check that was cut short stays open. */
  async hasOpen(connectionId: string): Promise<boolean> {
    const open = { connectionId, closedAt: null, refusal: null, transactionId: { $not: CHECK_IDS } };
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

  /** Yields a feed of each connection with what its network has changed since it was last read. */
  async *feeds(): AsyncIterable<ChangeFeed> {
    for (const id of await this.#dependencies.connections.ids()) yield this.#feedOf(id);
  }

  async *#feedOf(connectionId: string): ChangeFeed {
    const { clock, connections } = this.#dependencies;
    const began = clock();
    const connection = await connections.opened(connectionId);
    if (connection === null) return;
    const { readThrough } = connection.record;
    let from = new Date(readThrough.getTime() - OVERLAP_MS);
    try {
      while (from < began) {
        const to = new Date(Math.min(from.getTime() + PAGE_MS, began.getTime()));
        yield await this.#changedBetween(connection, from, to);
        if (to > readThrough) {
          await connections.note(connection, { readThrough: to, fault: null });
          if (clock().getTime() - began.getTime() > FEED_MS) return;
        }
        from = to;
      }
    } catch (error) {
      await connections.note(connection, { fault: error instanceof Error ? error.message : String(error) });
    }
  }

  async #changedBetween(connection: CardConnection, from: Date, to: Date): Promise<readonly string[]> {
    const ids = new Set<string>();
    for await (const { cardRef } of connection.issuer.changedSince(from, to)) {
      const card = await this.byRef(connection, cardRef);
      if (card !== null && !isCheck(card)) ids.add(card.transactionId);
    }
    const unseenTo = new Date(Math.min(to.getTime(), this.#dependencies.clock().getTime() - UNSEEN_MS));
    const askedAt = { $gte: from, $lte: unseenTo };
    for await (const { transactionId } of this.#cards.find({ connectionId: connection.id, askedAt }))
      ids.add(transactionId);
    return [...ids];
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
