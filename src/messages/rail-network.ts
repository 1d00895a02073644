import type { Rail } from "../domain/ledger/payment.ts";

/** Names and payloads of the workflow that plays a sandbox network's part after a payment was sent. */

export const RAIL_NETWORK_WORKFLOW = "railNetwork";
export const railNetworkWorkflowId = (transactionId: string): string => `network/${transactionId}`;

/** Something that a network does with a payment so long after it was sent; the rail knows the rest. */
export interface TimedEffect {
  readonly afterSeconds: number;
}

/** A time for each rail, in epoch milliseconds: what its network did until then is booked. */
export type NetworkTimes = Readonly<Record<Rail, number>>;

export interface RailNetworkInput {
  readonly rail: Rail;
  readonly transactionId: string;
  readonly effects: readonly TimedEffect[];
}

export interface NetworkEffectInput {
  readonly rail: Rail;
  readonly transactionId: string;
  /** Its place among the payment's effects, from 0. */
  readonly number: number;
}
