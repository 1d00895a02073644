import type { StoredPayment, Rail } from "./payment.ts";

/**
 * Permits and fences. A permit is the account's revision when the ledger gave it; a fence is the account's revision when the agent
 * was stopped, laid at the rail in the place where sending leaves its trace. A rail sends nothing past a fence above the permit, so
 * no clock and no process decides whether a stopped payment is sent. Revisions only grow, also when a ledger is restored.
 */

/** The ledger's reply to a process that is about to send a decided payment. */
export type Permission =
  | { readonly kind: "send"; readonly permit: number }
  /** The agent is paused: the rail keeps what it has, and is given nothing else. */
  | { readonly kind: "wait"; readonly fence: number }
  /** The payment is released, unless the rail has it already. */
  | { readonly kind: "withdraw" };

/** The payments of a stopped agent that a process may be about to send, and the fence that stops it. */
export interface Fence {
  readonly fence: number;
  /** Transaction ids. */
  readonly payments: Readonly<Record<Rail, readonly string[]>>;
}

/** Decided and on its way to its end: it may be sent, or sent again, by any server or sweep. */
export const isInFlight = ({ phase, status }: StoredPayment): boolean =>
  status === "pending" && (phase === "sending" || phase === "following");
