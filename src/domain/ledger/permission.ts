import type { StoredPayment, Rail } from "./payment.ts";

/**
 * Permits and fences. A permit is the account's revision when the ledger gave the permit. A fence is the account's
 * revision when the agent was stopped, laid at the rail in the place where sending leaves its trace. A rail sends
 * nothing past a fence above the permit, so no clock and no process decides whether a stopped payment is sent.
 * Revisions only rise, even when a ledger is restored.
 */

/** The ledger's reply to a process that is about to send a decided payment. */
export type Permission =
  | { readonly kind: "send"; readonly permit: number }
  /** The agent is paused: the rail keeps what it has and gets nothing else. */
  | { readonly kind: "wait"; readonly fence: number }
  /** The payment is released unless the rail already has it. */
  | { readonly kind: "withdraw" };

/** Payments of a stopped agent that a process may be about to send, and the fence against it. */
export interface Fence {
  readonly fence: number;
  /** Transaction ids. */
  readonly payments: Readonly<Record<Rail, readonly string[]>>;
}

/** Whether the payment is decided and not final, so that any server or sweep may send it, or send it again. */
export const isInFlight = ({ phase, status }: StoredPayment): boolean =>
  status === "pending" && (phase === "sending" || phase === "following");
