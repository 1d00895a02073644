import type { DisputeReason, RailBooks } from "../domain/ledger/books.ts";
import type { CategoryLists } from "../domain/rules/restrictions.ts";
import type { Unavailable } from "../lib/unavailable.ts";

/**
 * Port of card issuers. An adapter speaks one issuer's API for one connected account and keeps no state; the rail does.
 * Adapters can be recreated at any time. A call without a usable answer throws `IssuerUnreachable`: its outcome is
 * unknown, and the rail repeats it. Card numbers, codes and keys appear in no argument, answer, error or log.
 */

/** A kind of issuer; registered once. */
export interface CardIssuerKind {
  /** Name in the API's paths, such as `stripe`. */
  readonly name: string;
  /** Opens an account without making a call. */
  open(account: IssuerAccount): CardIssuer;
  readonly elements: CardElements;
}

/** The issuer's script that shows a card's number and code to a person, in frames of its own. */
export interface CardElements {
  readonly scriptUrl: string;
  /** Origins of scripts, of frames, and of the endpoints they call. */
  readonly scripts: readonly string[];
  readonly frames: readonly string[];
  readonly calls: readonly string[];
}

/** Everything that an adapter needs for an account. The rail stores it sealed. */
export interface IssuerAccount {
  /** Restricted key. */
  readonly apiKey: string;
  /** Key with which pages run the issuer's script; null if not given. Not secret. */
  readonly publishableKey: string | null;
  /** Objects created by `setUp`; null before. */
  readonly made: IssuerObjects | null;
  /** Secret of the real-time authorizations' signature, copied from the issuer by a person; null until then. */
  readonly authorizationSecret: string | null;
}

export interface IssuerObjects {
  /** The issuer's id of the account, which identifies the account's events. */
  readonly accountId: string;
  readonly isTest: boolean;
  readonly cardholderId: string;
  readonly eventEndpointId: string;
  readonly eventSecret: string;
}

/** An issuer gave no usable answer: timeout, connection error, 429 or 5xx. */
export class IssuerUnreachable extends Error implements Unavailable {
  override readonly name = "IssuerUnreachable";
  readonly isUnavailable = true;
}

/** An issuer's permanent refusal of a call. `reason` is for people and contains no secret. */
export interface IssuerRefusal {
  readonly code: "KEY_REFUSED" | "REFUSED" | "INSUFFICIENT_FUNDS";
  readonly reason: string;
}

export type IssuerResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: IssuerRefusal };

export interface CardOrder {
  /** Also the idempotency key; stored in the metadata of the issuer's card. */
  readonly transactionId: string;
  readonly agentId: string;
  /** Lifetime limit of the card, in whole cents. */
  readonly amountCents: number;
  /** Merchant categories at which the card may be used, as far as the issuer has them exactly. */
  readonly categories: CategoryLists;
  /** Whether the order may have been placed before, so that the issuer's cards are searched for it first. */
  readonly isRepeated: boolean;
}

export interface IssuedCard {
  readonly cardRef: string;
  readonly last4: string;
}

export interface CardIssuer {
  /** Creates a payment's active virtual card, with the amount as its lifetime limit; at most one per transaction id. */
  arm(order: CardOrder): Promise<IssuerResult<IssuedCard>>;
  /** Cancels a card for good; once resolved, nothing new is authorized. Repeatable. */
  disarm(cardRef: string): Promise<IssuerResult<null>>;
  /** Verifies the signature over the raw bytes, then parses. Makes no call. */
  read(raw: RawMessage, now: Date): Incoming;
  /** Builds the answer to a request: an approval if `refusal` is null. */
  answer(request: NetworkRequest, refusal: string | null): IssuerAnswer;
  /** Returns everything that the network has done with a card; empty if nothing. */
  booksOf(cardRef: string): Promise<readonly RailBooks[]>;
  /**
   * Yields cards whose authorizations or transactions have changed in a period, oldest change first; cards may repeat.
   */
  changedSince(since: Date, until?: Date): AsyncIterable<ChangedCard>;
  /**
   * Returns the data with which the issuer's iframe shows a card to a person. `nonce` comes from the issuer's script in
   * the person's browser.
   */
  cardView(cardRef: string, nonce: string): Promise<IssuerResult<CardView>>;
  /** Disputes the captured amount of a card. Repeatable: a captured amount is disputed once. */
  dispute(cardRef: string, dispute: CardDispute): Promise<IssuerResult<null>>;
  /** Returns the cents available for authorizations. */
  balance(): Promise<IssuerResult<number>>;
  /** Creates cardholder and event endpoint if this service has none there. Repeatable per `connectionId`. */
  setUp(given: SetUp): Promise<IssuerResult<IssuerObjects>>;
  /** Makes the network try a card as a merchant would; the request arrives at the service's URL. Only in test mode. */
  tryAuthorization(cardRef: string, amountCents: number): Promise<IssuerResult<Trial>>;
  /** Removes the event endpoint. Repeatable. */
  tearDown(): Promise<IssuerResult<null>>;
}

export interface Trial {
  readonly isApproved: boolean;
  /** Whether the network decided by its own time-out setting, since no answer came in time. */
  readonly isTimedOut: boolean;
  /** Reason in whole sentences, with a remedy if the service was not asked. */
  readonly reason: string;
}

export interface SetUp {
  readonly connectionId: string;
  readonly organizationName: string;
  readonly eventsUrl: string;
  /** Address for real-time authorizations, where the issuer's API can register it. */
  readonly authorizationUrl: string;
}

export interface RawMessage {
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

export type Incoming =
  /** The signature is missing, wrong or too old. */
  | { readonly kind: "forged" }
  | ({ readonly kind: "request" } & NetworkRequest)
  /** Something has happened to a card; its books must be read. */
  | { readonly kind: "hint"; readonly eventId: string; readonly cardRef: string }
  /** Money for authorizations has arrived. */
  | {
      readonly kind: "deposit";
      readonly eventId: string;
      readonly depositId: string;
      readonly amountCents: number;
    }
  /** An irrelevant message, or one of another account. */
  | { readonly kind: "other" };

/** The network's question whether a card may be charged. */
export interface NetworkRequest {
  readonly cardRef: string;
  readonly authorization: string;
  /** Sequence number of the request within its authorization, from 0; null if the issuer does not tell it. */
  readonly position: number | null;
  /** Additional amount requested, in the card's currency; 0 only checks whether the card is valid. */
  readonly amountMc: number;
  /** Upper case, such as `USD`. */
  readonly currency: string;
  readonly merchant: NetworkMerchant;
}

export interface NetworkMerchant {
  readonly name: string;
  /** Merchant category, a four-digit code; null if not given. */
  readonly category: string | null;
  readonly networkId: string | null;
  /** ISO 3166-1 alpha-2; null if not given. */
  readonly country: string | null;
}

export interface IssuerAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ChangedCard {
  readonly cardRef: string;
  readonly changedAt: Date;
}

/** Opaque to the service; the page passes it to the issuer's script. */
export interface CardView {
  readonly cardRef: string;
  readonly ephemeralKey: string;
  readonly expiresAt: Date;
}

export interface CardDispute {
  readonly reason: DisputeReason;
  readonly explanation: string;
  /** Missing to dispute the whole amount. */
  readonly amountCents?: number;
}
