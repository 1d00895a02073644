import type { RailBooks } from "../../domain/ledger/books.ts";
import type { Payment, RailOutcome, StoredPayment } from "../../domain/ledger/payment.ts";
import type { AgentProfile } from "../../domain/agent/state.ts";
import type {
  ChangedPayment,
  ChangeFeed,
  Detachment,
  FencedPlace,
  RailBalance,
  RailNetwork,
  RailPort,
  SendOutcome,
} from "../../payments/ports.ts";
import type { PaymentRulings } from "../../payments/rules/payment-rules.ts";
import { type CardConnection, type CardConnections, IssuerUnusable } from "./connections.ts";
import { type IssuedCards, issuedOutcome, type Ordered, orderedFor } from "./issued.ts";
import type { IssuedDocument } from "./places.ts";
import type { CardSandbox } from "./rail.ts";

export interface CardRailDependencies {
  readonly sandbox: CardSandbox;
  readonly cards: IssuedCards;
  readonly connections: CardConnections;
  readonly rulings: Pick<PaymentRulings, "categoriesOver">;
}

/** Card payments, on cards of the organization's connected issuer, else in the sandbox. A payment stays where it began. */
export class CardRail implements RailPort, RailNetwork {
  readonly capabilities = { finality: "instant" } as const;
  readonly network = this;
  readonly #cards: IssuedCards;
  readonly #connections: CardConnections;
  readonly #rulings: CardRailDependencies["rulings"];
  readonly #sandbox: CardSandbox;

  constructor({ cards, connections, rulings, sandbox }: CardRailDependencies) {
    this.#rulings = rulings;
    this.#cards = cards;
    this.#connections = connections;
    this.#sandbox = sandbox;
  }

  async send(profile: AgentProfile, payment: Payment, permit: number): Promise<SendOutcome> {
    const ordered = orderedFor(profile, payment);
    const { transactionId } = ordered;
    const connection = await this.#connections.of(profile.organizationId);
    const isNew = connection !== null && (await this.#order(profile, ordered, connection, permit));
    if (connection === null) {
      const outcome = await this.#sandbox.send(profile, payment, permit);
      if (outcome.status !== "fenced") return outcome;
    }
    const card = await this.#cards.of(transactionId);
    if (card !== null) return this.#cards.armed(ordered, card, !isNew);
    return (await this.#sandbox.query(payment)) ?? { status: "fenced" };
  }

  /** Whether this call has ordered it. */
  async #order(profile: AgentProfile, ordered: Ordered, connection: CardConnection, permit: number) {
    const categories = await this.#rulings.categoriesOver(profile);
    return (await this.#cards.order(ordered, connection, permit, categories)) === "ordered";
  }

  /**
   * Returns the payment's card at its issuer; null if it has none. Throws if the ledger knows of one whose order is no
   * longer recorded: what stands in its place does not tell what became of the card.
   */
  async #cardOf({ card, request: { transactionId } }: StoredPayment): Promise<IssuedDocument | null> {
    const issued = await this.#cards.of(transactionId);
    if (issued !== null || card === undefined) return issued;
    throw new IssuerUnusable(`the order of ${transactionId}'s card is gone`);
  }

  async query(payment: StoredPayment): Promise<RailOutcome | null> {
    const card = await this.#cardOf(payment);
    return card === null ? this.#sandbox.query(payment) : issuedOutcome(card);
  }

  settle(_profile: AgentProfile, payment: Payment): Promise<RailOutcome | null> {
    return this.query(payment);
  }

  /** Withdraws a payment. If a card was used before it was closed, the outcome is its books. */
  async withhold(profile: AgentProfile, payment: Payment): Promise<RailOutcome> {
    const { transactionId } = payment.request;
    if ((await this.#cardOf(payment)) === null) {
      if ((await this.#connections.of(profile.organizationId)) === null)
        return this.#sandbox.withhold(profile, payment);
      if (await this.#cards.withhold(transactionId)) return { status: "withheld" };
    }
    if ((await this.#cards.of(transactionId)) === null) return this.#sandbox.withhold(profile, payment);
    await this.#cards.close(transactionId, orderedFor(profile, payment));
    const books = await this.booksOf(transactionId);
    if (books.length > 0) return { status: "charged", books };
    const card = await this.#cards.of(transactionId);
    return (card === null ? null : issuedOutcome(card)) ?? { status: "withheld" };
  }

  /**
   * Keeps card orders out, as it keeps captures out. A pause needs no more: the ledger declines the networks' requests.
   */
  fence(places: readonly FencedPlace[]): Promise<void> {
    return this.#sandbox.fence(places);
  }

  async booksOf(transactionId: string): Promise<readonly RailBooks[]> {
    const card = await this.#cards.of(transactionId);
    return card === null ? this.#sandbox.booksOf(transactionId) : this.#cards.booksOf(card);
  }

  changedSince(since: Date): AsyncIterable<ChangedPayment> {
    return this.#sandbox.changedSince(since);
  }

  async *feeds(): AsyncIterable<ChangeFeed> {
    yield* this.#sandbox.feeds();
    yield* this.#cards.feeds();
  }

  keepUnbooked(transactionId: string): Promise<void> {
    return this.#sandbox.keepUnbooked(transactionId);
  }

  close(transactionId: string): Promise<void> {
    return this.#cards.close(transactionId);
  }

  play(transactionId: string, number: number): Promise<"played" | "not_yet" | "never"> {
    return this.#sandbox.play(transactionId, number);
  }

  balance(): Promise<RailBalance> {
    return this.#sandbox.balance();
  }

  detach(): Promise<Detachment> {
    return this.#sandbox.detach();
  }
}
