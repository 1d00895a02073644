import type { DisputeReason, RailBooks } from "../domain/ledger/books.ts";
import type { CategoryLists } from "../domain/rules/restrictions.ts";
import type { Unavailable } from "../lib/unavailable.ts";

/**
 * The port of card issuers. An adapter speaks one issuer's API for one connected account, and keeps no state of its own: the rail
 * does, and an adapter can be made anew at any time. A call without a usable answer throws `IssuerUnreachable`: nothing is known
 * then, and the rail repeats it. Card numbers, codes and keys appear in no argument, answer, error or log.
 */

/** A kind of issuer, registered once. */
export interface CardIssuerKind {
  /** As the API's paths name it, `stripe`. */
  readonly name: string;
  /** Opens an account. Makes no call. */
  open(account: IssuerAccount): CardIssuer;
  readonly elements: CardElements;
}

/** The issuer's script that shows a card's number and code to a person, in frames of its own. */
export interface CardElements {
  readonly scriptUrl: string;
  /** Origins of the scripts, of their frames, and of what they call. */
  readonly scripts: readonly string[];
  readonly frames: readonly string[];
  readonly calls: readonly string[];
}

/** Everything that an adapter needs for an account; the rail stores it sealed. */
export interface IssuerAccount {
  /** The restricted key. */
  readonly apiKey: string;
  /** The key with which pages run the issuer's script; null: not given. No secret. */
  readonly publishableKey: string | null;
  /** What `setUp` has made; null before. */
  readonly made: IssuerObjects | null;
  /** Secret of the real-time authorization's signature, which a person copies from the issuer; null: not yet. */
  readonly authorizationSecret: string | null;
}

/** Objects of the service in the issuer's account. */
export interface IssuerObjects {
  /** The issuer's id of the account, by which its events are told from others'. */
  readonly accountId: string;
  /** Whether the account moves no real money. */
  readonly isTest: boolean;
  readonly cardholderId: string;
  readonly eventEndpointId: string;
  /** Secret of the events' signature. */
  readonly eventSecret: string;
}

/** An issuer gave no usable answer: time-out, connection, 429, 5xx. */
export class IssuerUnreachable extends Error implements Unavailable {
  override readonly name = "IssuerUnreachable";
  readonly isUnavailable = true;
}

/** An issuer has refused a call for good. `reason` is for people, and names no secret. */
export interface IssuerRefusal {
  readonly code: "KEY_REFUSED" | "REFUSED" | "INSUFFICIENT_FUNDS";
  readonly reason: string;
}

export type IssuerResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: IssuerRefusal };

/** A payment's card, as it is ordered. */
export interface CardOrder {
  /** Also the idempotency key; the issuer's card names it in its metadata. */
  readonly transactionId: string;
  readonly agentId: string;
  /** The card's limit over all its life, in whole cents. */
  readonly amountCents: number;
  /** Categories of merchants at which the card may be used, as far as the issuer can have them exactly. */
  readonly categories: CategoryLists;
  /** Whether the order may have been placed before: then the issuer's cards are searched for it first. */
  readonly isRepeated: boolean;
}

export interface IssuedCard {
  /** The issuer's id of the card. */
  readonly cardRef: string;
  readonly last4: string;
}

export interface CardIssuer {
  /** Makes the virtual card of a payment, active, its all-time limit the amount. Once for a transaction id. */
  arm(order: CardOrder): Promise<IssuerResult<IssuedCard>>;
  /** Cancels a card for good; nothing new is authorized once it resolves. Repeatable. */
  disarm(cardRef: string): Promise<IssuerResult<null>>;
  /** Verifies the signature over the raw bytes, then parses. Makes no call. */
  read(raw: RawMessage, now: Date): Incoming;
  /** The answer to a request: approved where `refusal` is null. */
  answer(request: NetworkRequest, refusal: string | null): IssuerAnswer;
  /** All that the network has done with a card; empty: nothing. */
  booksOf(cardRef: string): Promise<readonly RailBooks[]>;
  /** Cards whose authorizations or transactions have changed since, the oldest change first; a card may come more than once. */
  changedSince(since: Date): AsyncIterable<ChangedCard>;
  /** The parts with which the issuer's iframe shows a card to a person; `nonce` comes from the issuer's script in their browser. */
  cardView(cardRef: string, nonce: string): Promise<IssuerResult<CardView>>;
  /** Disputes what was captured on a card. Repeatable: a captured amount is disputed once. */
  dispute(cardRef: string, dispute: CardDispute): Promise<IssuerResult<null>>;
  /** Cents available for authorizations. */
  balance(): Promise<IssuerResult<number>>;
  /** Makes cardholder and event endpoint where the account has none of ours. Repeatable with the same `connectionId`. */
  setUp(given: SetUp): Promise<IssuerResult<IssuerObjects>>;
  /** Has the network try a card, as a merchant would: the request arrives at our URL. Only of an account in test mode. */
  tryAuthorization(cardRef: string, amountCents: number): Promise<IssuerResult<Trial>>;
  /** Removes the event endpoint. Repeatable. */
  tearDown(): Promise<IssuerResult<null>>;
}

/** The end of a trial authorization. */
export interface Trial {
  readonly isApproved: boolean;
  /** Why, and what to do about it where the service was not asked; whole sentences. */
  readonly reason: string;
}

export interface SetUp {
  readonly connectionId: string;
  readonly organizationName: string;
  readonly eventsUrl: string;
}

export interface RawMessage {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

/** A message of an issuer. */
export type Incoming =
  /** The signature is missing, wrong or too old. */
  | { readonly kind: "forged" }
  | ({ readonly kind: "request" } & NetworkRequest)
  /** Something has happened to a card: read it. */
  | { readonly kind: "hint"; readonly eventId: string; readonly cardRef: string }
  /** Money for authorizations has arrived. */
  | {
      readonly kind: "deposit";
      readonly eventId: string;
      readonly depositId: string;
      readonly amountCents: number;
    }
  /** Of no interest, or of another account. */
  | { readonly kind: "other" };

/** The network asks whether a card may be charged. */
export interface NetworkRequest {
  readonly cardRef: string;
  readonly authorization: string;
  /** The request's number among those of its authorization, from 0. */
  readonly position: number;
  /** How much more it asks for, in the card's currency; 0: only whether the card is good. */
  readonly amountMc: number;
  /** Upper case, `USD`. */
  readonly currency: string;
  readonly merchant: NetworkMerchant;
}

export interface NetworkMerchant {
  readonly name: string;
  /** The merchant's category, a four-digit code; null: not named. */
  readonly category: string | null;
  readonly networkId: string | null;
  /** ISO 3166-1 alpha-2; null: not named. */
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

/** Opaque to the service: the page hands it to the issuer's script. */
export interface CardView {
  readonly cardRef: string;
  readonly ephemeralKey: string;
  readonly expiresAt: Date;
}

export interface CardDispute {
  readonly reason: DisputeReason;
  readonly explanation: string;
  /** Left out: all of it. */
  readonly amountCents?: number;
}
