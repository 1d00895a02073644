import type { Db } from "mongodb";
import type { RailModes } from "../contract/rails.ts";
import type { Rail } from "../domain/ledger/payment.ts";
import type { TimedEffect } from "../messages/rail-network.ts";
import type { AgentProfile } from "../domain/agent/state.ts";
import type { Clock, RailPort } from "../payments/ports.ts";
import type { Collections } from "../store/collections.ts";
import type { AgentDocument, TransactionDocument } from "../store/documents.ts";
import type { PaymentEntry, RailFinding } from "./findings.ts";
import type { CardConnectionDocument, CardConnections } from "./card/connections.ts";
import type { PaymentRulings } from "../payments/rules/payment-rules.ts";
import type { IssuedCards } from "./card/issued.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import type { PocketKeys } from "./pocket/pocket-keys.ts";
import type { RailStep } from "./rail-steps.ts";
import type { Wallets } from "./wallet/index.ts";

export interface RailsDependencies {
  readonly db: Db;
  readonly clock: Clock;
  readonly networkScripts: NetworkScripts;
  readonly cards: IssuedCards;
  readonly rulings: Pick<PaymentRulings, "categoriesOver">;
  readonly cardConnections: CardConnections;
  /** Whether an agent's record is unchanged since the service wrote it. */
  readonly isAgentGenuine: (agent: AgentDocument) => boolean;
  /** Null if no chain is set up. */
  readonly wallets: Pick<Wallets, "rail"> | null;
  /** Rail for the wallet's payments that buy from shops. Null if no chain is set up. */
  readonly purchases: RailPort | null;
}

export type ConnectedIssuer = Pick<CardConnectionDocument, "isTest">;

/** Plays a sandbox network's effects on a payment after its authorization, each at its time. */
export interface NetworkScripts {
  /** Starts the effects. Repeatable, and allowed before the payment is sent. */
  begin(
    rail: Rail,
    profile: AgentProfile,
    transactionId: string,
    effects: readonly TimedEffect[],
  ): Promise<void>;
}

/** Collections with the rails' own books. */
export type RailCollections = Pick<
  Collections,
  "agents" | "cardLedger" | "chainTransactions" | "pocketAuthorizations"
>;

/** Sources of a comparison. Payments are read first. */
export interface RailSources {
  readonly collections: RailCollections;
  readonly db: Db;
  readonly env: NodeJS.ProcessEnv;
  /** Null: a pocket's address is taken from the authorizations it signed. */
  readonly pocketKeys: PocketKeys | null;
  /** Proofs of the rails' records; null without a master key. */
  readonly accessProofs: Pick<AccessProofs, "isGenuine"> | null;
  /** Null without a master key, which opens the connections' records. */
  readonly cardConnections: Pick<CardConnections, "fresh"> | null;
  readonly chainRpcUrl: string | null;
  readonly organizationId: string;
  readonly payments: readonly PaymentEntry[];
  /** Payments to compare; null: all. */
  readonly paymentIds: ReadonlySet<string> | null;
}

export interface RailReconciliation {
  readonly kind: "card_ledger_differs" | "card_issuer_differs" | "chain_differs" | "pocket_differs";
  readonly advice: string;
  /** Returns the findings, or a text that says why the rail's books could not be read. */
  findings(sources: RailSources): Promise<readonly RailFinding[] | string>;
}

export type StepsOf = (collections: RailCollections, payment: TransactionDocument) => Promise<RailStep[]>;

/** A rail to which the service pushes payments. */
export interface PushRailFolder<R extends Rail> {
  readonly kind: "push";
  open(given: RailsDependencies): RailPort;
  mode(wallets: Pick<Wallets, "sandbox"> | null, issuer: ConnectedIssuer | null): RailModes[R];
  /** Returns a payment's entries on the rail's books. */
  readonly stepsOf: StepsOf;
  readonly reconciliations: readonly RailReconciliation[];
}

/** Everything of a rail that the product uses. Kinds of rails other than push are added to this union. */
export type RailFolder<R extends Rail> = PushRailFolder<R>;
