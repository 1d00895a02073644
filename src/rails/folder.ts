import type { Db } from "mongodb";
import type { RailModes } from "../contract/rails.ts";
import type { Rail } from "../domain/ledger/payment.ts";
import type { TimedEffect } from "../messages/rail-network.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { Clock, RailPort } from "../payments/ports.ts";
import type { Collections } from "../store/collections.ts";
import type { TransactionDocument } from "../store/documents.ts";
import type { PaymentEntry, RailFinding } from "./findings.ts";
import type { CardConnectionDocument, CardConnections } from "./card/connections.ts";
import type { PaymentRulings } from "../payments/rules/payment-rules.ts";
import type { IssuedCards } from "./card/issued.ts";
import type { PocketKeys } from "./pocket/pocket-keys.ts";
import type { RailStep } from "./rail-steps.ts";
import type { Wallets } from "./wallet/index.ts";

/** Parts that a process gives its rails. */
export interface RailsDependencies {
  readonly db: Db;
  readonly clock: Clock;
  readonly networkScripts: NetworkScripts;
  readonly cards: IssuedCards;
  readonly rulings: Pick<PaymentRulings, "categoriesOver">;
  readonly cardConnections: CardConnections;
  /** Null: no chain is set up. */
  readonly wallets: Pick<Wallets, "rail"> | null;
  /** Makes the wallet's payments that buy from shops; null as above. */
  readonly purchases: RailPort | null;
}

/** An organization's account at a card issuer. */
export type ConnectedIssuer = Pick<CardConnectionDocument, "isTest">;

/** Plays what a sandbox's network does with a payment after its authorization, each effect at its time. */
export interface NetworkScripts {
  /** Repeatable, also before the payment is sent. */
  begin(
    rail: Rail,
    profile: AgentProfile,
    transactionId: string,
    effects: readonly TimedEffect[],
  ): Promise<void>;
}

/** Collections that rails read their own books from. */
export type RailCollections = Pick<
  Collections,
  "agents" | "cardLedger" | "chainTransactions" | "pocketAuthorizations"
>;

/** Sources of a comparison; payments were read before. */
export interface RailSources {
  readonly collections: RailCollections;
  readonly db: Db;
  readonly env: NodeJS.ProcessEnv;
  /** Null: pockets' addresses are those of what they have signed. */
  readonly pocketKeys: PocketKeys | null;
  /** Null: there is no master key, which opens their records. */
  readonly cardConnections: Pick<CardConnections, "fresh"> | null;
  readonly chainRpcUrl: string | null;
  readonly organizationId: string;
  readonly payments: readonly PaymentEntry[];
  /** Payments to compare; null: all. */
  readonly paymentIds: ReadonlySet<string> | null;
}

/** Comparison of payments' records with the rail's own books. */
export interface RailReconciliation {
  readonly kind: "card_ledger_differs" | "card_issuer_differs" | "chain_differs" | "pocket_differs";
  readonly advice: string;
  /** A text: why the rail's books could not be read. */
  findings(sources: RailSources): Promise<readonly RailFinding[] | string>;
}

export type StepsOf = (collections: RailCollections, payment: TransactionDocument) => Promise<RailStep[]>;

/** A rail that the service pushes payments to. */
export interface PushRailFolder<R extends Rail> {
  readonly kind: "push";
  open(given: RailsDependencies): RailPort;
  mode(wallets: Pick<Wallets, "sandbox"> | null, issuer: ConnectedIssuer | null): RailModes[R];
  /** Returns a payment's entries on the rail's books. */
  readonly stepsOf: StepsOf;
  readonly reconciliations: readonly RailReconciliation[];
}

/** Everything of a rail that the product uses. Kinds of rails other than push join here. */
export type RailFolder<R extends Rail> = PushRailFolder<R>;
