import type { Payment } from "./payment.ts";

/** Whether a process may send a payment that was decided; see `src/domain/ledger/sending.ts`. */
export type Lease =
  | "send"
  /** The agent is paused: what the rail has already goes on, and nothing else. */
  | "wait"
  /** It is released, unless the rail has it already. */
  | "withdraw";

/** The holder of a lease begins to send within so long, counted from before the request. */
export const LEASE_MS = 1_000;

/** The ledger waits so much longer than the lease is good for: its engine's clocks may differ by that. */
const CLOCK_SKEW_MAX_MS = 250;

/** Until when a lease that is given now may be made use of, as the ledger counts. */
export const leaseUntil = (now: number): number => now + LEASE_MS + CLOCK_SKEW_MAX_MS;

/** Decided and on its way to its end: it may be sent, or sent again, by any server or sweep. */
export const isInFlight = ({ phase, status }: Payment): boolean =>
  status === "pending" && (phase === "sending" || phase === "following");
