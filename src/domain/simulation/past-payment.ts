import { type Books, isBooked } from "../ledger/books.ts";
import type { PaymentRequest, Rail, TransactionStatus } from "../ledger/payment.ts";
import type { DenialCode } from "../ledger/policy.ts";
import { hostIn } from "../rules/shop-hosts.ts";
import { isPolicyDenial } from "../ledger/policy.ts";

/** Verdicts on a payment: accepted without a person, held for one, or refused by a restriction or a limit. */
export const SIDES = ["approved", "held", "denied"] as const;
export type Side = (typeof SIDES)[number];

/** A payment from its record. */
export interface PastPayment {
  readonly transactionId: string;
  readonly agentId: string;
  readonly sequence: number;
  readonly createdAt: number;
  readonly rail: Rail;
  readonly amountMc: number;
  readonly recipient: string;
  /** Recipient as compared by rules. */
  readonly comparedName: string;
  /** URL that was paid for; only of a purchase. */
  readonly resource?: string;
  readonly merchantCategory: string | null;
  readonly fingerprint: string;
  readonly status: TransactionStatus;
  readonly denialCode: DenialCode | null;
  /** Time of the denial, failure, expiry or reversal. */
  readonly deniedAt: number | null;
  readonly wasHeld: boolean;
  /** Instant at which the payment counts in windows, if other than `createdAt`: a held payment's approval. */
  readonly windowAt: number | null;
  readonly books: Books | null;
  readonly revision: number;
}

/** Whether the payment was refused when it was made. */
export const isDeniedAtOnce = ({ revision, status, wasHeld }: PastPayment): boolean =>
  status === "denied" && !wasHeld && revision === 1;

/** Whether policy refused the payment after a person had approved it. */
export const isRefusedOnApproval = ({ denialCode, status, wasHeld }: PastPayment): boolean =>
  wasHeld && status === "failed" && denialCode !== null && isPolicyDenial(denialCode);

/** Whether the payment was refused for a reason unknown to the simulation: its agent was paused or archived. */
export const isRefusedByStatus = (past: PastPayment): boolean =>
  isDeniedAtOnce(past) && past.denialCode !== null && !isPolicyDenial(past.denialCode);

export function sideOf(past: PastPayment): Side {
  if (isDeniedAtOnce(past) || isRefusedOnApproval(past)) return "denied";
  return past.wasHeld ? "held" : "approved";
}

/** Returns the time of a person's approval; null if nobody approved. */
export function approvedAt(past: PastPayment): number | null {
  if (!past.wasHeld) return null;
  return isRefusedOnApproval(past) ? past.deniedAt : past.windowAt;
}

/** Whether the payment was sent to its rail. */
export const isLetThrough = (past: PastPayment): boolean =>
  sideOf(past) === "approved" || (sideOf(past) === "held" && approvedAt(past) !== null);

/** Returns when the amount was released without a charge; null if it was not. */
export const releasedAt = ({ books, deniedAt, status }: PastPayment): number | null =>
  (status === "failed" || status === "denied") && (books === null || !isBooked(books)) ? deniedAt : null;

/** Returns the names by which an agent's earlier payees are recognized. */
export function payeesOf({ agentId, comparedName, rail, resource }: PastPayment): readonly string[] {
  const payee = `${agentId} ${rail} ${comparedName}`;
  return resource === undefined ? [payee] : [payee, `${agentId} host:${hostIn(resource)}`];
}

/** Returns the request to judge again, under ids of its own. */
export const requestOf = (past: PastPayment): PaymentRequest => ({
  transactionId: past.transactionId,
  approvalId: past.transactionId,
  keyHash: past.transactionId,
  payloadHash: "",
  rail: past.rail,
  amountMc: past.amountMc,
  currency: "USD",
  recipient: past.recipient,
  ...(past.resource === undefined ? {} : { resource: past.resource }),
  merchantCategory: past.merchantCategory,
  purpose: "",
  fingerprint: past.fingerprint,
  proof: "",
});
