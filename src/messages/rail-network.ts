import type { Rail } from "../domain/ledger/payment.ts";

/** Names and payloads of the workflow that plays a sandbox network's part after a payment was sent. */

export const RAIL_NETWORK_WORKFLOW = "railNetwork";
export const railNetworkWorkflowId = (transactionId: string): string => `network/${transactionId}`;

/** An action of a network on a payment, at a delay after its sending. The rail knows the details. */
export interface TimedEffect {
  readonly afterSeconds: number;
}

/** Epoch milliseconds per rail up to which the network's changes are booked. */
export type NetworkTimes = Readonly<Record<Rail, number>>;

export interface RailNetworkInput {
  readonly rail: Rail;
  readonly transactionId: string;
  readonly effects: readonly TimedEffect[];
}

export interface NetworkEffectInput {
  readonly rail: Rail;
  readonly transactionId: string;
  /** Index among the payment's effects, from 0. */
  readonly number: number;
}
